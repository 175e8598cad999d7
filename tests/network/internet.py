"""A small internet made of network namespaces, with real servers: where a box is started to see whom it can reach.

                        peer                         intranet   10.9.9.9 …, private, behind the router
                         │ tailscale0                   │
    neighbour ──┐      ┌─┴──┐            ┌────────┐     ├── translator   64:ff9b::/96, 2002::/16, 2001::/32 …
                ├──────┤host├── eth0 ────┤ router ├─────┤
    cloud ──────┘  LAN └────┘            └────────┘     └── internet     198.51.100.10, 2001:db8:1::10

    with Internet() as internet:                    # in tests: the fixture `internet`
        internet.host.path                          # for `nsenter --net=…`, and for `ip … netns …`
        internet.host.run("ip", "route")            # a command there, which has to succeed
        with internet.neighbour.entered():          # this thread is there: sockets made now belong there,
            socket.create_connection(…)             # and programs started now run there
        internet.heard("words")                     # the machines that received these words over TCP or UDP
        internet.lookups("nas.lan")                 # the machines that were asked for this name
        Resident.moving(account, internet.host)     # an account whose programs run on the host of this network

Every machine answers on TCP and UDP port 8080, and on TCP port 8081, on all of its addresses, with its name. The host,
the router, the peer and the internet machine resolve names, each those of its zone (see ZONES).

A namespace has no name and no file, only a descriptor of this process: when the process ends, however it ends, the
kernel takes all of it away, and two runs cannot disturb each other. Nothing touches the network of the machine itself.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from conftest import Account
from network.servers import Servers, Zone
from patience import PATIENCE

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)

# Addresses and routes of each machine, as `ip` reads them. Addresses for documentation play the public ones.
CONFIGURATION = {
    "host": """
        address add 192.168.50.10/24 dev eth0
        address add fd00:50::10/64 dev eth0 nodad
        address add 2001:db8:50::10/64 dev eth0 nodad
        address add 203.0.113.10/26 dev eth0
        address add 203.0.113.65 peer 203.0.113.66 dev ppp0
        address add 100.64.0.10/10 dev tailscale0
        address add fd7a:115c:a1e0::10/48 dev tailscale0 nodad
        route add default via 192.168.50.1
        route add 169.254.0.0/16 dev eth0 scope link
        route add 203.0.113.130 dev eth0 scope link
        route add default via fe80::1 dev eth0
    """,
    "router": """
        address add 192.168.50.1/24 dev lan
        address add fe80::1/64 dev lan nodad
        address add fd00:50::1/64 dev lan nodad
        address add 2001:db8:50::1/64 dev lan nodad
        address add 198.51.100.1/24 dev wan
        address add 2001:db8:1::1/64 dev wan nodad
        route add 168.63.129.16 via 192.168.50.3
        route add fd00:ec2::/64 via fd00:50::3
        route add 10.0.0.0/8 via 198.51.100.20
        route add 172.16.0.0/12 via 198.51.100.20
        route add 192.168.99.0/24 via 198.51.100.20
        route add 192.0.0.0/24 via 198.51.100.20
        route add 192.88.99.0/24 via 198.51.100.20
        route add 198.18.0.0/15 via 198.51.100.20
        route add 240.0.0.0/4 via 198.51.100.20
        route add fd00:9::/64 via 2001:db8:1::20
        route add fd00:c1a:de::/64 via 2001:db8:1::20
        route add fec0::/10 via 2001:db8:1::20
        route add 4000::/16 via 2001:db8:1::20
        route add 64:ff9b::/96 via 2001:db8:1::30
        route add 64:ff9b:1::/48 via 2001:db8:1::30
        route add 2001::/32 via 2001:db8:1::30
        route add 2002::/16 via 2001:db8:1::30
        route add ::/96 via 2001:db8:1::30
        route add ::ffff:0:0:0/96 via 2001:db8:1::30
    """,
    "neighbour": """
        address add 192.168.50.2/24 dev eth0
        address add 203.0.113.2/26 dev eth0
        address add 203.0.113.130/32 dev eth0
        address add fe80::2/64 dev eth0 nodad
        address add fd00:50::2/64 dev eth0 nodad
        address add 2001:db8:50::2/64 dev eth0 nodad
        route add default via 192.168.50.1
        route add default via fe80::1 dev eth0
    """,
    "cloud": """
        address add 192.168.50.3/24 dev eth0
        address add 169.254.169.254/16 dev eth0
        address add 168.63.129.16/32 dev eth0
        address add fd00:50::3/64 dev eth0 nodad
        address add fd00:ec2::254/128 dev eth0 nodad
        route add default via 192.168.50.1
        route add default via fe80::1 dev eth0
    """,
    "peer": """
        address add 100.64.0.7/10 dev eth0
        address add 100.100.100.100/32 dev eth0
        address add fd7a:115c:a1e0::7/48 dev eth0 nodad
        address add 203.0.113.66 peer 203.0.113.65 dev ppp0
    """,
    "intranet": """
        address add 198.51.100.20/24 dev eth0
        address add 2001:db8:1::20/64 dev eth0 nodad
        route add default via 198.51.100.1
        route add default via 2001:db8:1::1
        route add local 10.0.0.0/8 dev lo
        route add local 172.16.0.0/12 dev lo
        route add local 192.168.99.0/24 dev lo
        route add local 192.0.0.0/24 dev lo
        route add local 192.88.99.0/24 dev lo
        route add local 198.18.0.0/15 dev lo
        route add local 240.0.0.0/4 dev lo
        route add local fd00:9::/64 dev lo
        route add local fd00:c1a:de::/64 dev lo
        route add local fec0::/10 dev lo
        route add local 4000::/16 dev lo
    """,
    "translator": """
        address add 198.51.100.30/24 dev eth0
        address add 2001:db8:1::30/64 dev eth0 nodad
        route add default via 198.51.100.1
        route add default via 2001:db8:1::1
        route add local 64:ff9b::/96 dev lo
        route add local 64:ff9b:1::/48 dev lo
        route add local 2001::/32 dev lo
        route add local 2002::/16 dev lo
        route add local ::/96 dev lo
        route add local ::ffff:0:0:0/96 dev lo
    """,
    "internet": """
        address add 198.51.100.10/24 dev eth0
        address add 198.51.100.11/24 dev eth0
        address add 2001:db8:1::10/64 dev eth0 nodad
        route add default via 198.51.100.1
        route add default via 2001:db8:1::1
    """,
}

# Who is connected to whom: (machine, its interface, the other machine, its interface).
CABLES = (
    ("host", "eth0", "router", "lan0"),
    ("neighbour", "eth0", "router", "lan1"),
    ("cloud", "eth0", "router", "lan2"),
    ("internet", "eth0", "router", "wan0"),
    ("intranet", "eth0", "router", "wan1"),
    ("translator", "eth0", "router", "wan2"),
    ("host", "tailscale0", "peer", "eth0"),
    ("host", "ppp0", "peer", "ppp0"),
)

# What is sent to many at once; a neighbour on the LAN listens.
GROUPS = ("224.0.0.251", "239.255.255.250", "255.255.255.255", "192.168.50.255", "203.0.113.63", "ff02::1", "ff02::fb")

# Names for lists: some that a box may be allowed, and where they lead.
LISTED = {
    "allowed.example": ("198.51.100.10", "2001:db8:1::10"),
    "four.example": ("198.51.100.10",),
    "six.example": ("2001:db8:1::10",),
    "deep.wild.example": ("198.51.100.10",),
    "refused.example": ("198.51.100.10", "2001:db8:1::10"),
    "rebind.example": ("192.168.50.2", "fd00:50::2"),
    "metadata.example": ("169.254.169.254",),
    "loopback.example": ("127.0.0.1", "::1", "0.0.0.0"),
    "translated.example": ("64:ff9b::c0a8:3202",),
    "mapped.example": ("::ffff:192.168.50.2",),
    "hosts.example": ("203.0.113.10",),
    "api.anthropic.com": ("198.51.100.11",),  # as its stand-in
    "mixed.example": ("192.168.50.2", "198.51.100.10"),
}
PUBLIC = {
    **LISTED,
    "internet.example": ("198.51.100.10", "2001:db8:1::10"),
    "large.example": tuple(f"198.51.100.{number}" for number in range(100, 160)),  # 512 < answer < 1232 bytes
}
LONG_TEXT = "long " * 600  # more than any answer over UDP
ZONES = {
    "internet": Zone({**PUBLIC, "public.example": ("198.51.100.10",)}, {"long.example": LONG_TEXT}),
    "router": Zone({**PUBLIC, "nas.lan": ("192.168.50.2", "fd00:50::2")}, {"long.example": LONG_TEXT}),
    "host": Zone({**PUBLIC, "stub.example": ("198.51.100.10",)}, {"long.example": LONG_TEXT}),
    "peer": Zone({**PUBLIC, "peer.tailnet.ts.net": ("100.64.0.7", "fd7a:115c:a1e0::7")}),
}


class Machine:
    """One network namespace."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.descriptor = _new_namespace()

    @property
    def path(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self.descriptor}"

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Have this thread on the machine: the sockets that it makes and the programs that it starts."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            _check(_libc.setns(self.descriptor, CLONE_NEWNET))
            yield
        finally:
            _check(_libc.setns(before, CLONE_NEWNET))
            os.close(before)

    def run(self, *command: str, input: str = "") -> str:
        """The output of a program that has to succeed here."""
        with self.entered():
            done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, f"{self.name}: {done.stderr}"
        return done.stdout

    def configure(self, lines: str) -> None:
        """Lines for `ip`; IPv6 is what has a colon in its address."""
        commands = [line.strip() for line in lines.splitlines() if line.strip()]
        for family in ("-4", "-6"):
            batch = [line for line in commands if ("-6" if "::" in line else "-4") == family]
            self.run("ip", family, "-batch", "-", input="\n".join(batch))

    def close(self) -> None:
        os.close(self.descriptor)


def _new_namespace() -> int:
    """A network namespace that lives as long as the descriptor. Made by a thread that ends: this one stays at home."""
    made: list[int] = []

    def make() -> None:
        _check(_libc.unshare(CLONE_NEWNET))
        made.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))

    maker = threading.Thread(target=make)
    maker.start()
    maker.join()
    assert made, "no network namespace can be made here"
    return made[0]


def _check(status: int) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Internet:
    """All machines, connected and serving."""

    host: Machine
    router: Machine
    neighbour: Machine
    cloud: Machine
    peer: Machine
    intranet: Machine
    translator: Machine
    internet: Machine

    def __init__(self) -> None:
        self.machines = {name: Machine(name) for name in CONFIGURATION}
        vars(self).update(self.machines)
        self.servers = Servers(GROUPS)

    def __enter__(self) -> Self:
        try:
            self._connect()
            self._serve()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.servers.close()
        for machine in self.machines.values():
            machine.close()

    def _connect(self) -> None:
        for machine in self.machines.values():
            with machine.entered():  # no search for others with the same address, which takes seconds
                Path("/proc/sys/net/ipv6/conf/default/accept_dad").write_text("0")
            machine.run("ip", "link", "set", "lo", "up")
        for bridge in ("lan", "wan"):
            self.router.run("ip", "link", "add", bridge, "up", "type", "bridge", "mcast_snooping", "0")
        for name, interface, other, other_interface in CABLES:
            cable = ["ip", "link", "add", interface, "type", "veth", "peer", "name", other_interface]
            self.machines[name].run(*cable, "netns", self.machines[other].path)
            self.machines[name].run("ip", "link", "set", interface, "up")
            self.machines[other].run("ip", "link", "set", other_interface, "up")
            if other == "router":
                self.router.run("ip", "link", "set", other_interface, "master", other_interface[:3])
        for name, lines in CONFIGURATION.items():
            self.machines[name].configure(lines)
        with self.router.entered():
            Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
            Path("/proc/sys/net/ipv6/conf/all/forwarding").write_text("1")

    def _serve(self) -> None:
        for name, machine in self.machines.items():
            with machine.entered():
                self.servers.listen(name, in_groups=name == "neighbour")
                if name in ZONES:
                    self.servers.resolve(name, ZONES[name])
        self.servers.start()

    def heard(self, words: str) -> set[str]:
        """The machines that received just these words, over whichever protocol."""
        return {heard.machine for heard in self.servers.heard if heard.words == words}

    def lookups(self, name: str) -> list[str]:
        """The machines that were asked for a name, in order."""
        return [heard.machine for heard in self.servers.heard if heard.protocol == "dns" and heard.words == name]


RESOLVER_ON_THE_LAN = "nameserver 192.168.50.1\n"
# In a mount namespace of its own, with other files of resolvers and hosts, and then no longer as root.
MOVE = """
    mount --bind "$1" /etc/resolv.conf && mount --bind "$2" /etc/hosts && resident=$3 group=$4 && shift 4 &&
    exec setpriv --reuid "$resident" --regid "$group" --clear-groups -- "$@"
"""


@dataclass
class Resident(Account):
    """An account whose programs run on a machine of the test network, with the resolvers of that network."""

    machine: Machine | None = None
    resolv_conf: str = RESOLVER_ON_THE_LAN
    hosts: str = "127.0.0.1 localhost\n"

    @classmethod
    def moving(cls, account: Account, machine: Machine) -> Resident:
        return cls(**{each.name: getattr(account, each.name) for each in fields(Account)}, machine=machine)

    def becoming(self, *command: str) -> tuple[str, ...]:
        """Root goes there and becomes this account there."""
        assert self.machine is not None
        files = [str(self._file(content)) for content in (self.resolv_conf, self.hosts)]
        there = ("nsenter", f"--net={self.machine.path}", "unshare", "--mount")
        return (*there, "sh", "-c", MOVE, "move", *files, str(self.uid), str(self.gid), *command)

    def _file(self, content: str) -> Path:
        """For this one start: another may want other resolvers while this one runs."""
        descriptor, name = tempfile.mkstemp(prefix="of-network-", dir=self.home)
        with open(descriptor, "w") as file:
            file.write(content)
        os.chmod(name, 0o644)
        return Path(name)
