"""The user's own files of settings and the project's, and who answers for that one."""

from pathlib import Path

import pytest

from claudebox.consent import wishes_text
from claudebox.errors import Problem
from claudebox.files import prepare
from claudebox.host import Host
from claudebox.settings import PROJECT_FILE
from claudebox.settings.files import note_decision
from claudebox.settings.gather import Said
from claudebox.text import Style
from hosts.machine import Machine
from saying import gather, parse

WISHES = """\
extra_env_passthrough = ["EDITOR_TOKEN"]
network = "full"
mounts = [{ host = "~/other" }]
"""
STATE = "home/alice/.claudebox"
DECISIONS = "decisions"


def own_file(machine: Machine, name: str, text: str) -> Path:
    path = machine.root / STATE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def profile(machine: Machine, name: str, text: str) -> Path:
    return own_file(machine, f"profiles/{name}", text)


def variables(machine: Machine, *words: str) -> dict[str, str]:
    return {variable.name: variable.value for variable in machine.plan(*words).environment}


def refusal(machine: Machine, *words: str) -> Problem:
    with pytest.raises(Problem) as caught:
        machine.plan(*words)
    return caught.value


def says(machine: Machine, text: str | bytes, project: str = "shop") -> Path:
    path = machine.root / "home/alice" / project / PROJECT_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def layers(machine: Machine, *words: str) -> Said:
    return gather(machine.host(), parse(list(words)))


def granted(machine: Machine) -> bool | None:
    project = layers(machine).project
    assert project is not None
    return project.granted


def answer(machine: Machine, *, granted: bool) -> None:
    """As the question does it."""
    project = layers(machine).project
    assert project is not None
    host = machine.host()
    for one in note_decision(host, project.content_id, granted=granted):
        prepare((one.replace(path=f"{machine.root}{one.path}"),))


def shown(host: Host) -> str:
    project = gather(host, parse([])).project
    assert project is not None
    return wishes_text(project.wishes, Style(False))
