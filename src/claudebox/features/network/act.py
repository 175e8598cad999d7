"""Connects the box with the internet, and with nothing else.

The process that will become bwrap moves into a network namespace of its own and loads the filter there. A child of it,
which stayed on the host's network, becomes pasta and carries the packets. The box starts only when both are done: no
program ever runs without the filter.

None of these processes outlives the others: see launch/attend.py. pasta holds one end of a pipe, and the box
ends when that pipe does.
"""

from __future__ import annotations

import os

from claudebox.features.network.decide import published_by_pasta
from claudebox.features.network.uplink import is_about_tun
from claudebox.model import Network, Plan, Port, Uplink
from claudebox.problem import Problem
from claudebox.process.isolation import advice, enter_network_namespace
from claudebox.process.programs import (
    become_program,
    filter_problem,
    load_ruleset,
    log_content,
    make_log,
    port_problem,
    start_carrier,
)
from claudebox.settings.types import LAST_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

CONNECTION_PATIENCE_MS = 10_000
PID_SIZE = 32
BACKLOG = 128
# When everything is set up, and not before, pasta writes its number into the pipe that is its standard output.
ATTACHED = ("--foreground", "--netns", "/proc/self/fd/0", "--no-netns-quit", "--pid", "/proc/self/fd/1")

# Settings of the new namespace: IPv6 addresses can be used at once, and everybody may ping.
KERNEL_SETTINGS = (
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv4/ping_group_range", "0 0"),
)


def inside(plan: Plan, life: int, pastas_end: int) -> None:
    network = plan.network
    assert network.uplink is not None
    if not network.published:
        connect(network, network.uplink, life, pastas_end)
        return
    listening = listening_ports(network.published, {port.host for port in network.host_ports})
    connect(network, _leading_to(listening, network, network.uplink), life, pastas_end)
    _carry_on(network.published, listening)


def listening_ports(published: tuple[Port, ...], taken: set[int]) -> dict[int, int]:
    """For each published port of the host, the port of the box at which the carrier listens: none that is asked for."""
    free = (port for port in range(LAST_PORT, 0, -1) if port not in taken | {one.box for one in published})
    return {port.host: number for port, number in zip(published, free, strict=False)}


def _carry_on(published: tuple[Port, ...], listening: dict[int, int]) -> None:
    """Carry what pasta brings into the box's network on to a server there, at 127.0.0.1 or at ::1.

    pasta keeps the kind of address: what came to 127.0.0.1 of this host goes to 127.0.0.1 of the box. Many development
    servers listen at ::1 alone. So pasta leads each published port to a listener of a process in the box's network; all
    that the box can do with it is to reach its own ports.
    """
    import socket

    listeners = [
        (socket.create_server(("127.0.0.1", listening[port.host]), backlog=BACKLOG).detach(), port.box)
        for port in published
    ]
    start_carrier(listeners)


def _leading_to(listening: dict[int, int], network: Network, uplink: Uplink) -> Uplink:
    """The uplink whose published ports lead to the carrier. A command that was pasted has none: there pasta does it."""
    ways = {published_by_pasta(port): published_by_pasta(port, listening[port.host]) for port in network.published}
    return uplink.replace(options=tuple(ways.get(option, option) for option in uplink.options))


def connect(network: Network, uplink: Uplink, life: int, pastas_end: int) -> None:
    """Move into a network namespace with this uplink, whose life is that of pasta."""
    log = make_log("pasta")
    go, permission = os.pipe()
    number = os.readlink("/proc/self")
    if os.fork() == 0:
        os.close(permission)
        _become_pasta(uplink, number, go, pastas_end, log)
    os.close(pastas_end)
    os.close(go)
    enter_network_namespace((*KERNEL_SETTINGS, *uplink.sysctls))
    os.write(permission, b".")
    os.close(permission)
    refusal = load_ruleset(uplink.nft, uplink.ruleset)
    if refusal:
        raise filter_problem(refusal)
    if not _is_ready(life):
        raise _pasta_problem(network, log_content(log))


def _become_pasta(uplink: Uplink, parent: str, go: int, life: int, log: int) -> NoReturn:
    """Become pasta, in a session of its own: no key of the terminal is meant for it."""
    try:
        os.setsid()
        if os.read(go, 1):
            # New versions close every other descriptor, and may not look into /proc of their parent.
            namespace = os.open(f"/proc/{parent}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            become_program(uplink.pasta, ("pasta", *ATTACHED, *uplink.options), (namespace, life, log))
    finally:
        os._exit(1)


def _is_ready(life: int) -> bool:
    """Whether pasta has set up everything. False if it has ended, or takes too long."""
    import select

    poll = select.poll()
    poll.register(life, select.POLLIN)
    return bool(poll.poll(CONNECTION_PATIENCE_MS)) and bool(os.read(life, PID_SIZE))


def _pasta_problem(network: Network, log: str) -> Problem:
    lines = log.splitlines() or ["it did not answer"]
    refusal = next((line for line in lines if "bind" in line or "Listen failed" in line), "")
    if refusal and network.published:
        # It names the option that pasta was given, or the address that pasta made of it.
        named = refusal.translate(dict.fromkeys(map(ord, ":/',"), " ")).split()
        ports = [port for port in network.published if str(port.host) in named]
        return port_problem(ports or [*network.published], refusal)
    known = network.uplink.tun_hint if network.uplink and is_about_tun(lines[-1]) else ""
    return Problem(f"pasta cannot connect the box: {lines[-1]}", known or advice()[0])
