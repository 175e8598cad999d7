#!/usr/bin/env python3
"""What the network tiers cost, as ratios against others in one run.

usage: bench/network.py [--rounds N] [--transfers N] [--seconds N] [--link RATE] [--user NAME]
                        [--pasta PATH]

As root, because it makes a small internet: a router and a server behind it, in namespaces of their own, which are gone
when it ends, however it ends. The boxes run as an ordinary user. The order changes from round to round, because the
kernel clears one namespace away while the next command is already running. Prints Markdown tables. A transfer that
stalls counts as 0, and is counted. slirp4netns is left out where it is not installed, and said to be.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path

from rounds import Times, in_rounds, rows

CHECKOUT = Path(__file__).resolve().parent.parent
TRAFFIC = Path(__file__).resolve().with_name("traffic.py")
PORT = 8080
SERVER = "198.51.100.10"
WARM_UP = 2
LOW_NUMBERS = 60
TRANSFERS = ("download", "50 downloads", "upload", "50 uploads")
INSIDE = "CLAUDEBOX_BENCH_INSIDE"
UNITS = {
    **dict.fromkeys(TRANSFERS, ("Gbit/s", 1e-09)),
    **dict.fromkeys(("connect", "first byte", "round trip"), ("µs", 1000000.0)),
}

Process = subprocess.Popen[bytes]
Way = Callable[[list[str]], AbstractContextManager[Process]]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=40, help="how often each box is started")
    options.add_argument("--transfers", type=int, default=5, help="how often each way's traffic is measured")
    options.add_argument("--seconds", type=float, default=1.0, help="how long one transfer takes")
    options.add_argument("--link", default="1gbit", help="the slower one of the two links that are measured")
    options.add_argument("--user", default=os.environ.get("SUDO_USER", "nobody"), help="who runs the boxes")
    options.add_argument("--pasta", default=shutil.which("pasta"))
    chosen = options.parse_args()
    if os.geteuid() != 0:
        sys.exit("error: the test network needs root")
    if os.environ.pop(INSIDE, None) is None:
        start_again_in_namespaces()
    occupy_low_numbers()
    router = make_network()
    with tempfile.TemporaryDirectory(prefix="claudebox-bench-", dir="/var/tmp") as home:
        ways = find_ways(Account(chosen.user, Path(home)), chosen.pasta)
        probe = ["python3", "traffic.py", "probe", SERVER, str(chosen.seconds)]
        print(start_table(measure_starts(ways, chosen.rounds)), end="\n\n")
        print(traffic_table("no limit", measure_traffic(ways, probe, chosen.transfers)), end="\n\n")
        print(memory_table(measure_memory(ways, probe)), end="\n\n")
        limit_link(router, chosen.link)
        print(traffic_table(chosen.link, measure_traffic(ways, probe, chosen.transfers)))


class Account:
    """An ordinary user, with a home and a project made for this run."""

    def __init__(self, name: str, home: Path) -> None:
        self.entry = pwd.getpwnam(name)
        self.home = home
        self.project = home / "project"
        self.project.mkdir()
        shutil.copy(TRAFFIC, self.project)
        for path in (home, self.project):
            os.chown(path, self.entry.pw_uid, self.entry.pw_gid)

    def start(self, command: list[str], inherited: tuple[int, ...] = ()) -> Process:
        return subprocess.Popen(
            command,
            cwd=self.project,
            env={"HOME": str(self.home), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8"},
            user=self.entry.pw_uid,
            group=self.entry.pw_gid,
            extra_groups=[],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=inherited,
        )


def start_again_in_namespaces() -> None:
    """As the first process of a pid namespace: the kernel ends with it all that is started here, and so the network."""
    os.environ[INSIDE] = "1"
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])  # noqa: S606


def occupy_low_numbers() -> None:
    """In its own pid namespace bwrap looks for its child in our /proc, where that number has to exist.

    Elsewhere threads of the kernel have these numbers.
    """
    for _ in range(LOW_NUMBERS):
        threading.Thread(target=threading.Event().wait, daemon=True).start()


def make_network() -> int:
    """We are the user's machine, in a LAN. The server is behind its router, whose pid we give."""
    here = os.getpid()
    router = start_in_own_network("sleep", "infinity")
    server = start_in_own_network(sys.executable, str(TRAFFIC), "serve")
    ip(here, f"link add eth0 type veth peer name lan netns {router}")
    ip(router, f"link add wan type veth peer name eth0 netns {server}")
    for where, device, *addresses in (
        (here, "lo"),
        (here, "eth0", "192.168.50.10/24", "2001:db8:50::10/64"),
        (router, "lan", "192.168.50.1/24", "2001:db8:50::1/64"),
        (router, "wan", "198.51.100.1/24", "2001:db8:1::1/64"),
        (server, "eth0", f"{SERVER}/24", "2001:db8:1::10/64"),
    ):
        ip(int(where), f"link set {device} up")
        for address in addresses:
            ip(int(where), f"address add {address} dev {device}" + " nodad" * (":" in str(address)))
    for where, gateways in ((here, ("192.168.50.1", "2001:db8:50::1")), (server, ("198.51.100.1", "2001:db8:1::1"))):
        for gateway in gateways:
            ip(where, f"route add default via {gateway}")
    forwarding = "for file in ipv4/ip_forward ipv6/conf/all/forwarding; do echo 1 > /proc/sys/net/$file; done"
    subprocess.run(["nsenter", f"--net=/proc/{router}/ns/net", "sh", "-c", forwarding], check=True)
    wait_until(is_server_there)
    return router


def start_in_own_network(*command: str) -> int:
    pid = subprocess.Popen(["unshare", "--net", *command]).pid
    wait_until(lambda: os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"))
    return pid


def ip(where: int, words: str) -> None:
    family = ["-6"] if "::" in words else []
    subprocess.run(["nsenter", f"--net=/proc/{where}/ns/net", "ip", *family, *words.split()], check=True)


def limit_link(router: int, rate: str) -> None:
    """Both ways: as fast as memory is not what people have to their internet."""
    for device in ("lan", "wan"):
        limit = f"tc qdisc add dev {device} root tbf rate {rate} burst 256kb latency 20ms"
        subprocess.run(["nsenter", f"--net=/proc/{router}/ns/net", *limit.split()], check=True)


def is_server_there() -> bool:
    with suppress(OSError), socket.create_connection((SERVER, PORT), timeout=1):
        return True
    return False


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not holds():
        if time.monotonic() > end:
            sys.exit("error: the test network does not come up")
        time.sleep(0.02)


def find_ways(account: Account, pasta: str) -> dict[str, Way]:
    """By name, what starts a program with that kind of network."""
    claudebox = ["env", f"CLAUDEBOX_PASTA={pasta}", str(CHECKOUT / "claudebox"), "--yes", "--network"]
    ways: dict[str, Way] = {
        tier: partial(directly, account, [*claudebox, tier, "--run"]) for tier in ("full", "none", "inet")
    }
    listed = [*claudebox, "allowlist", "--allow", f"{SERVER}:{PORT}", "--run"]
    ways["allowlist"] = partial(directly, account, listed)
    ways["bare pasta"] = partial(directly, account, [pasta, "--config-net", "--"])
    if slirp4netns := shutil.which("slirp4netns"):
        ways["bare slirp4netns"] = partial(with_slirp4netns, account, slirp4netns)
    else:
        print("slirp4netns is not installed: left out", file=sys.stderr)
    return ways


@contextmanager
def directly(account: Account, prefix: list[str], program: list[str]) -> Iterator[Process]:
    with ended(account.start([*prefix, *program])) as process:
        yield process


@contextmanager
def with_slirp4netns(account: Account, slirp4netns: str, program: list[str]) -> Iterator[Process]:
    """It starts nothing itself: a process with namespaces waits until they are connected, and becomes the program."""
    waiting = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'echo; read go; exec "$@"', "sh"]
    with ended(account.start([*waiting, *program])) as process:
        assert process.stdout
        assert process.stdin
        process.stdout.readline()
        ready, write_end = os.pipe()
        # The mtu that others give it, and pasta's own.
        options = ["--configure", "--mtu=65520", f"--ready-fd={write_end}", str(process.pid), "tap0"]
        with ended(account.start([slirp4netns, *options], (write_end,))):
            os.close(write_end)
            os.read(ready, 1)
            os.close(ready)
            process.stdin.write(b"\n")
            process.stdin.flush()
            yield process


@contextmanager
def ended(process: Process) -> Iterator[Process]:
    with process:
        try:
            yield process
        finally:
            process.kill()


def measure_starts(ways: dict[str, Way], rounds: int) -> Times:
    def start(name: str) -> float:
        begin = time.perf_counter()
        with ways[name](["true"]) as process:
            check(process.wait(), name)
            return time.perf_counter() - begin

    return in_rounds({name: partial(start, name) for name in ways}, rounds, WARM_UP)


def in_random_order(ways: dict[str, Way]) -> list[str]:
    return random.sample(list(ways), len(ways))


def check(status: int, name: str) -> None:
    if status != 0:
        sys.exit(f"error: {name}: exit status {status}")


def measure_traffic(ways: dict[str, Way], probe: list[str], rounds: int) -> dict[str, dict[str, float]]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ways if name != "none"}
    for _ in range(rounds):
        for name in in_random_order(ways):
            if name in found:
                with ways[name](probe) as process:
                    output, _nothing = process.communicate()
                    check(process.returncode, name)
                    found[name].append(json.loads(output))
    return {name: summary(probes) for name, probes in found.items()}


def summary(probes: list[dict[str, float]]) -> dict[str, float]:
    """Medians, and how many transfers stalled."""
    medians = {what: statistics.median(probe[what] for probe in probes) for what in UNITS}
    return medians | {f"stalled: {what}": sum(probe[what] == 0 for probe in probes) for what in TRANSFERS}


def measure_memory(ways: dict[str, Way], probe: list[str]) -> dict[str, list[int | None]]:
    """What a box keeps running, beside the program: at rest, and when much has gone through it."""
    return {
        name: [memory_at_rest(way), memory_after(way, probe) if name != "none" else None] for name, way in ways.items()
    }


def memory_at_rest(way: Way) -> int:
    program = ["sleep", "1d"]  # unlike the router
    before = processes()
    with way(program):
        wait_until(lambda: program in processes().values())
        time.sleep(0.3)
        return memory_beside(program, before)


def memory_after(way: Way, probe: list[str]) -> int:
    program = [*probe, "stay"]
    before = processes()
    with way(program) as process:
        assert process.stdout
        process.stdout.readline()
        return memory_beside(program, before)


def processes() -> dict[int, list[str]]:
    """The arguments of all there are: nobody else's are in our pid namespace."""
    found = {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdecimal()):
        with suppress(OSError):
            found[pid] = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    return found


def memory_beside(program: list[str], before: dict[int, list[str]]) -> int:
    """In bytes. Pages that several processes share are divided between them."""
    others = [pid for pid, arguments in processes().items() if pid not in before and arguments != program]
    return sum(proportional_set_size(pid) for pid in others)


def proportional_set_size(pid: int) -> int:
    with suppress(OSError):  # it has ended
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return 1024 * int(line.split()[1])
    return 0


def start_table(times: Times) -> str:
    head = ["| start of `true` | median, ms | ratio to full |", "|---|---:|---:|"]
    return "\n".join([*head, *rows(times, "full", 1000)])


def traffic_table(link: str, found: dict[str, dict[str, float]]) -> str:
    rows = [f"| link: {link} | {' | '.join(found)} |", "|---|" + "---:|" * len(found)]
    for what, (unit, factor) in UNITS.items():
        cells = [f"{found['full'][what] * factor:.1f}"]
        cells += [f"{found[name][what] / found['full'][what]:.2f} ×" for name in found if name != "full"]
        rows.append(f"| {what}, {unit} | {' | '.join(cells)} |")
    for what in (f"stalled: {each}" for each in TRANSFERS):
        rows.append(f"| {what} | {' | '.join(str(values[what]) for values in found.values())} |")
    return "\n".join(rows)


def memory_table(found: dict[str, list[int | None]]) -> str:
    rows = ["| memory beside the program, MB | at rest | after traffic |", "|---|---:|---:|"]
    for name, sizes in found.items():
        rows.append(f"| {name} | {' | '.join('' if size is None else f'{size / 1e6:.1f}' for size in sizes)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
