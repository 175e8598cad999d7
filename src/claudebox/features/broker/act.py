"""Starts the broker beside the box: a process that holds the credential, and listens for the box.

The broker ends when the parent of the box does, and the parent ends the box when the broker has ended.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem
from claudebox.features.broker.decide import OTHERWISE, address_of
from claudebox.files import c_call
from claudebox.host.variables import BASE_URL
from claudebox.model import Broker, Launch
from claudebox.process.companion import Companion, start_beside, watch_own_end
from claudebox.process.isolation import NEW_NETWORK_NAMESPACE, enter_as_owner
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed

BACKLOG = 1024  # connections that wait to be accepted: beyond it, one fails at once
TOKEN_BYTES = 32
SET_DUMPABLE = 4


class Channel(Record):
    """Of this launch: the socket that leads to the broker."""

    to_broker: int


def beside(launch: Launch) -> Companion:
    """Start the broker. The launch gets a token, and the way to the broker."""
    from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair

    broker = launch.get(Broker)
    end = watch_own_end("for --auth broker", "--auth none")
    token, port = f"claudebox-{os.urandom(TOKEN_BYTES).hex()}", broker.port
    ours, theirs = (one.detach() for one in socketpair(AF_UNIX, SOCK_SEQPACKET))
    life = start_beside(lambda report: _serve(broker, token, end, report), (end,), (ours, theirs))
    if not port:  # the box has this host's network
        port = _listen(0, life)
    made = {broker.token_name: token, BASE_URL: address_of(port)}
    launch.environment = tuple(one.replace(value=made.get(one.name, one.value)) for one in launch.environment)
    launch.keep(Channel(life))
    return Companion(life, ended, failed)


def made(launch: Launch, root: str) -> Deed:
    """Make the broker's listener in the box's own network, before a program starts there."""
    port = launch.get(Broker).port
    if port:
        child = os.fork()
        if child == 0:
            try:
                if enter_as_owner(f"{os.path.dirname(root)}/ns/net", NEW_NETWORK_NAMESPACE):
                    _listen(port, launch.get(Channel).to_broker)
                    os._exit(0)
            finally:
                os._exit(1)
        if os.waitpid(child, 0)[1] != 0:
            raise Problem("the kernel does not let the broker listen in the box's network", OTHERWISE)
    return lambda _: None


def _listen(port: int, channel: int) -> int:
    """Listen in this network, and hand the listener over to the broker. Returns the port, which may be a new one."""
    import sys
    from _socket import AF_INET, AF_UNIX, SCM_RIGHTS, SOCK_SEQPACKET, SOCK_STREAM, SOL_SOCKET, socket

    listener = socket(AF_INET, SOCK_STREAM)
    listener.bind(("127.0.0.1", port))
    listener.listen(BACKLOG)
    descriptor = listener.fileno().to_bytes(4, sys.byteorder)
    other = socket(AF_UNIX, SOCK_SEQPACKET, 0, channel)
    try:
        other.sendmsg([b"listener"], [(SOL_SOCKET, SCM_RIGHTS, descriptor)])
    except OSError:
        pass  # it has ended, which the parent notices by itself
    other.detach()
    return int(listener.getsockname()[1])


def _serve(broker: Broker, token: str, end: int, channel: int) -> None:
    c_call("prctl", SET_DUMPABLE, 0, 0, 0, 0)  # no other program of the user looks into its memory
    from claudebox.servers.broker import run

    run(broker, token, end, channel)


def ended() -> Problem:
    return Problem("the broker was ended, and the box with it", "start it again, and go on with --continue")


def failed() -> Problem:
    return Problem("the broker ended before it had begun", OTHERWISE)
