"""Connects a box on tier `names`: a process that knows the list starts beside it, and its network is made inside.

The process stays on the host's network. The child that becomes bwrap enters a network without any way out, makes
listeners there and hands them over. Until they are served, what the box opens waits in the kernel. If the process
ends, its sockets do, and the parent ends the box.

With --publish, the ports of the host are opened here, and a process in the box's network carries on what arrives.
"""

from __future__ import annotations

import os
import socket

from claudebox.errors import Problem
from claudebox.model import Launch, Names
from claudebox.process.companion import Companion, open_port, start_beside, start_carrier, watch_own_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed

# What goes from the child to the process outside: words that say what a descriptor is for, with the descriptor.
LIFE = "life"  # the end of a pipe by which the box lives
ALL = "all"  # there are no more
# What comes back: memory in which the process outside says what it refused, a line for each: how often, and what.
MEMORY = 8192
LENGTH = 4  # bytes at its beginning, in which the length of the rest is said
HELPS = "+"  # before a line: a longer list would allow it
MOST_SHOWN = 6


def beside(launch: Launch) -> Companion:
    """Start the process outside. The launch gets what `inside` and `after` need: the socket that leads to it, the ports
    of this host that were opened, and the memory in which it says what it refused."""
    from mmap import mmap

    end = watch_own_end("for --network names", "--network inet, or --network none")
    listeners = tuple(map(open_port, launch.plan.network.published))
    ours, theirs = (one.detach() for one in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    names = launch.get(Names).replace(refused=mmap(-1, MEMORY))
    life = start_beside(lambda report: _serve(names, theirs, end, report), (theirs, end))
    launch.keep(names.replace(channel=ours, listeners=listeners))
    return Companion(life, ended)


def ended() -> Problem:
    return Problem("the process that knows the box's list of names was ended, and the box with it", "start it again")


def _serve(names: Names, channel: int, end: int, report: int) -> None:
    from claudebox.features.names.server.relay import run

    run(names, channel, end, report)


def inside(launch: Launch, life: int, others_end: int) -> None:
    """Make the box's network, and hand its sockets over: with them goes the end of the pipe that the box lives by."""
    from claudebox.features.names.namespace import make_network

    names, network = launch.get(Names), launch.plan.network

    os.close(life)
    made = make_network(names.nft, tuple(port.host for port in network.host_ports))
    channel = socket.socket(fileno=names.channel)
    try:
        for words, own in (*((words, own.fileno()) for words, own in made), (LIFE, others_end)):
            socket.send_fds(channel, [words.encode()], [own])
        channel.send(ALL.encode())
    except OSError:
        raise ended() from None
    channel.close()
    os.close(others_end)
    boxes = [port.box for port in network.published]
    start_carrier(list(zip(names.listeners, boxes, strict=True)))


def after(launch: Launch) -> Deed:
    """Return what says, when the box has ended, which names were refused. With `--quiet` only the journal has them."""
    names = launch.get(Names)

    def report(_: bool) -> None:
        text = "" if launch.is_quiet else refused_text(bytes(names.refused or b""))
        if text:
            from claudebox.terminal import say

            say(text)

    return report


def refused_text(memory: bytes) -> str:
    """What the process outside has written about refusals, for people; "" if there were none."""
    from claudebox.text import escape, fill

    size = int.from_bytes(memory[:LENGTH], "big")
    lines = memory[LENGTH : LENGTH + size].decode(errors="replace").splitlines()
    rows = [(line.startswith(HELPS), line.removeprefix(HELPS).partition(" ")) for line in lines]
    found = [(int(times), escape(name), helps) for helps, (times, _, name) in rows if times.isdigit() and name]
    if not found:
        return ""
    shown = sorted(found, reverse=True)[:MOST_SHOWN]
    refused = ", ".join(name if times == 1 else f"{name} ({times} times)" for times, name, _ in shown)
    more = f", and {len(found) - len(shown)} more (--network-log)" if len(found) > len(shown) else ""
    options = " ".join(f"--allow {name}" for _, name, helps in shown if helps)
    text = f"claudebox: refused by --network names: {refused}{more}"
    # What is to be pasted stays on one line, however long it is.
    allowing = [f"  to allow: {options}"] if options else []
    return "\n".join([*fill(text.split(), 0, break_words=False), *allowing]) + "\n"
