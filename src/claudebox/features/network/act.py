"""Connects the box with the internet, and with nothing else.

The process that will become bwrap moves into a network namespace of its own and loads the filter there. A child of it,
which stayed on the host's network, becomes pasta and carries the packets. The box starts only when both are done: no
program ever runs without the filter.

None of these processes outlives the others: see launch/attend.py. pasta holds one end of a pipe, and the box
ends when that pipe does.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem
from claudebox.features.network.uplink import is_about_tun
from claudebox.model import Launch, Uplink
from claudebox.process.companion import (
    become_program,
    filter_problem,
    load_ruleset,
    log_content,
    make_log,
    open_port,
)
from claudebox.process.isolation import advice, enter_network_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

CONNECTION_PATIENCE_MS = 10_000
PID_SIZE = 32
# When everything is set up, and not before, pasta writes its number into the pipe that is its standard output. It
# publishes nothing: it keeps the kind of address, and many development servers in the box listen at ::1 alone.
ATTACHED = (
    *("--foreground", "--netns", "/proc/self/fd/0", "--no-netns-quit", "--pid", "/proc/self/fd/1"),
    *("--tcp-ports", "none"),
)

# Settings of the new namespace: IPv6 addresses can be used at once, and everybody may ping.
KERNEL_SETTINGS = (
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv4/ping_group_range", "0 0"),
)


def inside(launch: Launch, life: int, pastas_end: int) -> None:
    network = launch.plan.network
    assert network.uplink is not None
    # They are opened here, and stay this host's. A process in the box's network carries on what arrives at them.
    listeners = [(open_port(port), port.box) for port in network.published]
    connect(network.uplink, life, pastas_end)
    if listeners:
        from claudebox.servers import start_carrier

        start_carrier(listeners)


def connect(uplink: Uplink, life: int, pastas_end: int) -> None:
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
        raise _pasta_problem(uplink, log_content(log))


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


def _pasta_problem(uplink: Uplink, log: str) -> Problem:
    last = (log.splitlines() or ["it did not answer"])[-1]
    known = uplink.tun_hint if is_about_tun(last) else ""
    return Problem(f"pasta cannot connect the box: {last}", known or advice()[0])
