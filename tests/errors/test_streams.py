"""What is said of input and output."""

from __future__ import annotations

import errno
import os
import socket
import sys

import pytest

from claudebox import terminal
from claudebox.launch import keeper, launch, relay
from claudebox.problem import FAILED, Problem
from claudebox.process import isolation
from errors.scene import Problems, Scene, Stage


def directory_as_standard_input(scene: Scene) -> None:
    kept = os.dup(0)
    directory = os.open("/", os.O_RDONLY)
    os.dup2(directory, 0)
    try:
        launch(scene.machine.plan())
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(directory)


def standard_input_cannot_be_read(scene: Scene) -> None:
    kept = os.dup(0)
    file = os.open(scene.machine.root / "file", os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 0)
    try:
        launch(scene.machine.plan())
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(file)


def standard_output_closed(scene: Scene) -> None:
    scene.monkeypatch.setattr(sys, "stdout", None)
    terminal.show("text")


def standard_output_full(scene: Scene) -> None:
    kept = os.dup(1)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 1)
    try:
        terminal.show("text")
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(full)


def socket_as_standard_input(scene: Scene) -> None:
    kept = os.dup(0)
    with socket.socket() as stream:
        os.dup2(stream.fileno(), 0)
        try:
            isolation.refuse_internet_sockets()
        finally:
            os.dup2(kept, 0)
            os.close(kept)


def no_pseudoterminals(scene: Scene) -> None:
    def refuse() -> tuple[int, int]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    scene.monkeypatch.setattr(os, "openpty", refuse)
    keeper.fork_on_terminal(-1, into_namespaces=False)


def terminal_of_somebody_else(scene: Scene) -> None:
    scene.monkeypatch.setattr(os, "isatty", lambda _: True)
    scene.monkeypatch.setattr(os, "open", lambda *_: os.lstat("/no/such/terminal"))
    keeper.open_users_terminal()


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


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_says_exactly_this(name: str, stage: Stage) -> None:
    stage.check("streams", name, *PROBLEMS[name])
