"""Starts the broker beside the box: a process that holds the credential, and a socket that the box gets instead.

The broker ends when the parent of the box does, and the parent ends the box when the broker has ended.
"""

from __future__ import annotations

import os

from claudebox.features.broker.decide import AT_START
from claudebox.features.broker.server.preflight import OTHERWISE, check
from claudebox.features.broker.terms import BACKLOG, LONGEST_MESSAGE, READY, SOCKET
from claudebox.files import make_private
from claudebox.model import Broker, Plan
from claudebox.problem import Problem
from claudebox.process.isolation import c_function
from claudebox.process.lifetime import Companion, detach, has_ended, watch_own_end

NOT_YET = "not-yet"
TOKEN_BYTES = 32
SET_DUMPABLE = 4


def beside(plan: Plan) -> tuple[Plan, Companion]:
    assert plan.broker is not None
    plan, life, directory = start_broker(plan, plan.broker)
    return plan, Companion(
        life=life,
        require_ready=lambda end: require_ready(life, end),
        why_ended=lambda: ended() if has_ended(life) else None,
        clear=lambda: remove(directory),
    )


def ended() -> Problem:
    return Problem("the broker was ended, and the box with it", "start it again, and go on with --continue")


def require_ready(life: int, end: int) -> None:
    """Wait until the broker has tried itself, or the box has ended. Raises a Problem with the broker's reason."""
    import select

    poll = select.poll()
    for descriptor in (life, end):
        poll.register(descriptor, select.POLLIN)
    if life not in dict(poll.poll()):
        return
    said = os.read(life, LONGEST_MESSAGE)
    if said != READY:
        message, _, hint = said.decode(errors="replace").partition("\0")
        raise Problem(message or "the broker ended before it had begun", hint or OTHERWISE)


def start_broker(plan: Plan, broker: Broker) -> tuple[Plan, int, str]:
    """Start it. Returns the plan with the socket and the token of this launch, a pipe that ends with the broker, and
    the directory of the socket."""
    check(broker, dict(os.environ))
    os.close(watch_own_end("for --auth broker", "--auth none"))  # before anything is made
    directory = f"{broker.sockets}/{os.getpid()}-{os.urandom(8).hex()}"
    token = f"claudebox-{os.urandom(TOKEN_BYTES).hex()}"
    try:
        make_private(directory)
        listener = listen(directory)
    except OSError as error:
        raise Problem(f"the broker cannot be started: {broker.sockets}: {error.strerror}", OTHERWISE) from None
    life, report = os.pipe()
    end = os.pidfd_open(os.getpid())
    if os.fork() == 0:
        _become_broker(broker, token, listener, end, report, directory)
    for descriptor in (listener, end, report):
        os.close(descriptor)
    mounts = tuple(mount.replace(source=directory) if mount.path == broker.place else mount for mount in plan.mounts)
    variables = tuple(
        variable.replace(value=token) if variable.value == AT_START else variable for variable in plan.environment
    )
    return plan.replace(mounts=mounts, environment=variables), life, directory


def listen(directory: str) -> int:
    import _socket

    listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    # The path of a socket may have 107 bytes, and that of a home more.
    parent = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    listener.bind(f"/proc/self/fd/{parent}/{NOT_YET}")
    os.close(parent)
    listener.listen(BACKLOG)
    # Under its own name, another broker would have taken it for one on which nobody listens any more (remove_dead).
    os.rename(f"{directory}/{NOT_YET}", f"{directory}/{SOCKET}")
    return listener.detach()


def _become_broker(broker: Broker, token: str, listener: int, end: int, report: int, directory: str) -> None:
    try:
        detach((listener, end, report))
        control = c_function("prctl")
        if control is not None:
            control(SET_DUMPABLE, 0, 0, 0, 0)  # no other program of the user looks into its memory
        from claudebox.features.broker.server.run import run

        run(broker, token, listener, end, report)
    finally:
        remove(directory)
        os._exit(0)


def remove(directory: str) -> None:
    for act, path in ((os.unlink, f"{directory}/{SOCKET}"), (os.rmdir, directory)):
        try:
            act(path)
        except OSError:
            pass
