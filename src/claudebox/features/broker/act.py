"""Starts the broker beside the box: a process that holds the credential, and a socket that the box gets instead.

The broker ends when the parent of the box does, and the parent ends the box when the broker has ended.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem
from claudebox.features.broker.decide import AT_START, OTHERWISE, SOCKET, TOKEN_URL
from claudebox.files import make_private
from claudebox.host.variables import BASE_URL, read_address
from claudebox.model import Broker, Launch
from claudebox.process.companion import Companion, start_beside, watch_own_end
from claudebox.process.isolation import c_call

NOT_YET = "not-yet"
BACKLOG = 1024  # connections that wait to be accepted: beyond it, one fails at once
TOKEN_BYTES = 32
SET_DUMPABLE = 4
PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


def beside(launch: Launch) -> Companion:
    """Start the broker. The launch gets its socket and a token."""
    broker = launch.get(Broker)
    check(broker, dict(os.environ))
    end = watch_own_end("for --auth broker", "--auth none")  # before anything is made
    directory = f"{broker.sockets}/{os.getpid()}-{os.urandom(8).hex()}"
    token = f"claudebox-{os.urandom(TOKEN_BYTES).hex()}"
    try:
        make_private(directory)
        listener = listen(directory)
    except OSError as error:
        raise Problem(f"the broker cannot be started: {broker.sockets}: {error.strerror}", OTHERWISE) from None
    life = start_beside(lambda report: _serve(broker, token, listener, end, report, directory), (listener, end))
    launch.mounts = tuple(
        mount.replace(source=directory) if mount.path == broker.place else mount for mount in launch.mounts
    )
    launch.environment = tuple(
        variable.replace(value=token) if variable.value == AT_START else variable for variable in launch.environment
    )
    return Companion(life, ended, failed, lambda: remove(directory))


def ended() -> Problem:
    return Problem("the broker was ended, and the box with it", "start it again, and go on with --continue")


def failed() -> Problem:
    return Problem("the broker ended before it had begun", OTHERWISE)


def check(broker: Broker, environ: dict[str, str]) -> None:
    """Raise a Problem if the broker could not reach or trust the API, as far as next to no time tells."""
    for path in filter(None, (broker.certificates, broker.extra_certificates)):
        if not os.access(path, os.R_OK):
            raise no_trust(f"{path} cannot be read")
    # A closer look than this costs as much as the rest of a launch.
    is_usual = not broker.url or (read_address(broker.url) or ("",))[0] == "https"
    if not is_usual or any(environ.get(name) for name in (*PROXIES, TOKEN_URL)):
        from claudebox.features.broker.server import upstream

        upstream.find_proxy(environ, upstream.read_address(broker.url or upstream.API, BASE_URL))
        upstream.read_address(environ.get(TOKEN_URL) or upstream.API, TOKEN_URL)


def no_trust(reason: str) -> Problem:
    return Problem(f"the broker cannot read the certificates that this host trusts: {reason}", OTHERWISE)


def listen(directory: str) -> int:
    import socket

    listener = socket.socket(socket.AF_UNIX)
    # The path of a socket may have 107 bytes, and that of a home more.
    parent = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    listener.bind(f"/proc/self/fd/{parent}/{NOT_YET}")
    os.close(parent)
    listener.listen(BACKLOG)
    # Under its own name, another broker would have taken it for one on which nobody listens any more (remove_dead).
    os.rename(f"{directory}/{NOT_YET}", f"{directory}/{SOCKET}")
    return listener.detach()


def _serve(broker: Broker, token: str, listener: int, end: int, report: int, directory: str) -> None:
    try:
        c_call("prctl", SET_DUMPABLE, 0, 0, 0, 0)  # no other program of the user looks into its memory
        from claudebox.features.broker.server.run import run

        run(broker, token, listener, end, report)
    finally:
        remove(directory)


def remove(directory: str) -> None:
    for act, path in ((os.unlink, f"{directory}/{SOCKET}"), (os.rmdir, directory)):
        try:
            act(path)
        except OSError:
            pass
