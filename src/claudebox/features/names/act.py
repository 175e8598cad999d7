"""Connects a box on tier `names`: a process that knows the list starts beside it, and its network is made inside.

The process stays on the host's network. The child that becomes bwrap enters a network without any way out, makes
listeners there and hands them over. Until they are served, what the box opens waits in the kernel. If the process
ends, its sockets do, and the parent ends the box.
"""

from __future__ import annotations

import _socket
import os
import sys

from claudebox.features.names.terms import ALL, FOR_IPV6, LIFE, LONGEST_WORDS, MAKER, MEMORY, READY
from claudebox.model import Plan, Port
from claudebox.problem import Problem
from claudebox.process.descriptors import close_all_but
from claudebox.process.lifetime import Companion, detach, die_with_parent, has_ended, watch_own_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from claudebox.allowed import Names

LOCALHOST = "127.0.0.1"
BACKLOG = 128
LAST_BREATH_MILLISECONDS = 500
FIRST_FREE_PORT = 1024


def beside(plan: Plan) -> tuple[Plan, Companion]:
    """Start the process outside. The plan gets the socket that leads to it, for `inside`, and what it tells `after`."""
    assert plan.names is not None
    from mmap import mmap

    end = watch_own_end("for --network names", "--network inet, or --network none")
    published = [(_open_port(port), port.box) for port in plan.network.published]
    names = plan.names.replace(refused=mmap(-1, MEMORY))
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    life, report = os.pipe()
    if os.fork() == 0:
        _become_relay(names, theirs.detach(), published, end, report)
    theirs.close()
    for descriptor in (end, report, *(listener for listener, _ in published)):
        os.close(descriptor)
    companion = Companion(
        life=life,
        require_ready=lambda box: require_ready(life, box),
        why_ended=lambda: why_ended(life),
        clear=lambda: None,
    )
    return plan.replace(names=names.replace(channel=ours.detach())), companion


def _open_port(port: Port) -> int:
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        listener.bind((LOCALHOST, port.host))
        listener.listen(BACKLOG)
    except OSError as error:
        is_low = port.host < FIRST_FREE_PORT
        hint = "choose one from 1024 on: --publish 8080:80" if is_low else "see who has it: ss -ltnp"
        message = f"{port.origin.shown}: port {port.host} of this host cannot be opened: {error.strerror}"
        raise Problem(message, hint) from None
    return listener.detach()


def _become_relay(names: Names, channel: int, published: list[tuple[int, int]], end: int, report: int) -> None:
    try:
        detach((channel, end, report, *(listener for listener, _ in published)))
        from claudebox.features.names.server.run import run

        run(names, channel, published, end, report)
    finally:
        os._exit(0)


def why_ended(life: int) -> Problem | None:
    """Why the box was ended. A process that is killed closes its pipes one after another, and this may be the last."""
    import select

    poll = select.poll()
    poll.register(life, 0)
    poll.poll(LAST_BREATH_MILLISECONDS)
    return ended() if has_ended(life) else None


def ended() -> Problem:
    return Problem("the process that knows the box's list of names was ended, and the box with it", "start it again")


def require_ready(life: int, box: int) -> None:
    """Wait until the process has taken the box's sockets, or the box has ended."""
    import select

    poll = select.poll()
    for descriptor in (life, box):
        poll.register(descriptor, select.POLLIN)
    if life in dict(poll.poll()) and os.read(life, len(READY)) != READY:
        raise ended()


def inside(plan: Plan, life: int, others_end: int) -> None:
    """Make the box's network, and hand its sockets over: with them goes the end of the pipe that the box lives by."""
    assert plan.names is not None
    from claudebox.features.names.namespace import make_network

    os.close(life)
    channel = _socket.socket(fileno=plan.names.channel)
    made = make_network(plan.names.nft, tuple(port.host for port in plan.network.host_ports))
    try:
        for words, own in made:
            _hand_over(channel, words, own.fileno())
        if plan.network.published:
            _hand_over(channel, MAKER, _start_maker())
        _hand_over(channel, LIFE, others_end)
        channel.send(ALL.encode())
    except OSError:
        raise ended() from None
    channel.close()
    os.close(others_end)


def _hand_over(channel: _socket.socket, words: str, descriptor: int) -> None:
    assert len(words) < LONGEST_WORDS
    rights = descriptor.to_bytes(4, sys.byteorder)
    channel.sendmsg([words.encode()], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])


def _start_maker() -> int:
    """Start the process that makes sockets in the box's network. Returns the end of its channel for the one outside."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        try:
            os.setsid()
            die_with_parent()
            close_all_but([theirs.fileno()])
            while family := theirs.recv(1):
                _make_socket(theirs, _socket.AF_INET6 if family == FOR_IPV6 else _socket.AF_INET)
        finally:
            os._exit(0)
    theirs.close()
    return ours.detach()


def _make_socket(channel: _socket.socket, family: int) -> None:
    try:
        made = _socket.socket(family, _socket.SOCK_STREAM)
    except OSError:
        channel.send(b".")  # a kernel may know no IPv6
        return
    _hand_over(channel, ".", made.fileno())
    made.close()


def after(plan: Plan) -> Callable[[bool], None]:
    """Return what says, when the box has ended, which names were refused. With `--quiet` only the journal has them."""
    names = plan.names
    assert names is not None

    def report(_: bool) -> None:
        if plan.is_quiet:
            return
        from claudebox.features.names.report import refused_text
        from claudebox.terminal import say

        assert names is not None
        text = refused_text(bytes(names.refused or b""))
        if text:
            say(text)

    return report
