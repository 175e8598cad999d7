"""What is said of input and output."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from claudebox import terminal
from claudebox.launch import launch
from claudebox.problem import FAILED
from claudebox.process import descriptors
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
            descriptors.refuse_internet_sockets()
        finally:
            os.dup2(kept, 0)
            os.close(kept)


PROBLEMS: Problems = {
    "input-is-a-socket": (socket_as_standard_input, FAILED),
    "input-unreadable": (standard_input_cannot_be_read, FAILED),
    "output-closed": (standard_output_closed, FAILED),
    "output-full": (standard_output_full, FAILED),
    "streams-directory": (directory_as_standard_input, FAILED),
}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_says_exactly_this(name: str, stage: Stage) -> None:
    stage.check("streams", name, *PROBLEMS[name])
