"""A user's own files of settings."""

import os
from pathlib import Path

import pytest

from claudebox.errors import Problem
from hosts.machine import EVERYONE, TREES, Machine


def profile(machine: Machine, name: str, text: str) -> Path:
    return own_file(machine, f"profiles/{name}", text)


def own_file(machine: Machine, name: str, text: str) -> Path:
    path = machine.root / f"home/alice/.claudebox/{name}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def variables(machine: Machine, *words: str) -> dict[str, str]:
    return {variable.name: variable.value for variable in machine.plan(*words).environment}


def refusal(machine: Machine, *words: str) -> Problem:
    with pytest.raises(Problem) as caught:
        machine.plan(*words)
    return caught.value


def users_machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    made.uid = os.getuid()
    return made
