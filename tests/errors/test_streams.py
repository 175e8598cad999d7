"""What is said of input and output."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from claudebox.errors import FAILED, Problem
from claudebox.model import Launch
from claudebox.output import terminal
from claudebox.process import isolation
from claudebox.sandbox.launch import launch
from claudebox.sandbox.terminal import open_users_terminal, relay, session
from errors.scene import Problems, Scene


@contextmanager
def in_its_place(stream: int, descriptor: int) -> Iterator[None]:
    """Have a standard stream be something else for a while."""
    kept = os.dup(stream)
    os.dup2(descriptor, stream)
    try:
        yield
    finally:
        os.dup2(kept, stream)
        os.close(kept)
        os.close(descriptor)


def directory_as_standard_input(scene: Scene) -> None:
    with in_its_place(0, os.open("/", os.O_RDONLY)):
        launch(Launch(scene.machine.plan()))


def standard_input_cannot_be_read(scene: Scene) -> None:
    with in_its_place(0, os.open(scene.machine.root / "file", os.O_WRONLY | os.O_CREAT)):
        launch(Launch(scene.machine.plan()))


def standard_output_closed(scene: Scene) -> None:
    scene.monkeypatch.setattr(sys, "stdout", None)
    terminal.show("text")


def standard_output_full(_: Scene) -> None:
    with in_its_place(1, os.open("/dev/full", os.O_WRONLY)):
        terminal.show("text")


def socket_as_standard_input(_: Scene) -> None:
    with in_its_place(0, socket.socket().detach()):
        isolation.refuse_internet_sockets()


def no_pseudoterminals(scene: Scene) -> None:
    def refuse() -> tuple[int, int]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    scene.monkeypatch.setattr(os, "openpty", refuse)
    session.fork_on_terminal(-1, into_namespaces=False)


def terminal_of_somebody_else(scene: Scene) -> None:
    scene.monkeypatch.setattr(os, "isatty", lambda _: True)
    scene.monkeypatch.setattr(os, "open", lambda *_: os.lstat("/no/such/terminal"))
    open_users_terminal()


def two_terminals(scene: Scene) -> None:
    pairs = [os.openpty(), os.openpty()]
    try:
        relay.require_one_terminal(pairs[0][1], (pairs[0][1], pairs[1][1]))
    except Problem as problem:
        # The number is another each time.
        problem.message = problem.message.replace(str(pairs[1][1]), "1", 1)
        raise
    finally:
        for descriptor in (*pairs[0], *pairs[1]):
            os.close(descriptor)


PROBLEMS: Problems = {
    "input-is-a-socket": (socket_as_standard_input, FAILED),
    "input-unreadable": (standard_input_cannot_be_read, FAILED),
    "output-closed": (standard_output_closed, FAILED),
    "output-full": (standard_output_full, FAILED),
    "pseudoterminals": (no_pseudoterminals, FAILED),
    "streams-directory": (directory_as_standard_input, FAILED),
    "terminal-of-somebody-else": (terminal_of_somebody_else, FAILED),
    "two-terminals": (two_terminals, FAILED),
}
