"""Every setting is looked at wherever it stands, whether this box has a use for it or not."""

import json

import pytest

from claudebox.errors import FAILED, NOT_FOUND
from claudebox.features.table import SETTINGS
from claudebox.settings.table import Setting
from claudebox.settings.types import LIST, VALUE, Mounted, PortNumber, Variable
from hosts.machine import Machine
from layers.files import own_file, profile, refusal

# What no box can have, for each setting that has no list of choices.
BAD = {
    "profile": "no-such-profile",
    "mount_ro": "/nonexistent",
    "mount_rw": "/nonexistent",
    "hide": "",
    "env": "A-B=1",
    "pass_env": "A-B",
    "drop_env": "A-B",
    "auth_limit": "requests=abc",
    "allow": "ht!p://",
    "publish": "70000",
    "host_port": "70000",
    "path": "",
    "package": "a b",
    "reveal": "",
    "writable": "",
    "memory": "lots",
    "pids": "lots",
    "cpu": "lots",
    "tmp_size": "lots",
    "bwrap": "/nonexistent",
    "claude": "/nonexistent",
    "pasta": "/nonexistent",
    "nft": "/nonexistent",
}
ANYTHING_GOES = ("claude_args",)  # claude judges its own
# What a project asks for and may not have by itself is judged when the user has said yes; until then it gets nothing.
ONLY_AFTER_A_YES = ("profile", "mount_ro", "allow", "package")
CHOICE = "no-such-choice"


def places(setting: Setting[object]) -> list[str]:
    files = ["config", "profile", *(["project"] if setting.name not in ONLY_AFTER_A_YES else [])] if setting.key else []
    options = [] if setting.in_files_only else ["option"]
    return [*files, *(["variable"] if setting.variable else []), *options]


def bad(setting: Setting[object]) -> str:
    return CHOICE if setting.choices else BAD[setting.name]


def in_toml(setting: Setting[object]) -> str:
    text, kind = bad(setting), getattr(setting.type, "element", setting.type)
    if isinstance(kind, Variable):
        name, _, value = text.partition("=")
        return f"{setting.key} = {{ {json.dumps(name)} = {json.dumps(value)} }}\n"
    if isinstance(kind, Mounted):
        return f"{setting.key} = [{{ host = {json.dumps(text)} }}]\n"
    value = text if isinstance(kind, PortNumber) else json.dumps(text)
    return f"{setting.key} = {value if setting.kind == VALUE else f'[{value}]'}\n"


def say(machine: Machine, setting: Setting[object], place: str) -> tuple[str, ...]:
    """Say it there. Returns the words of the command line."""
    if place == "config":
        own_file(machine, "config.toml", in_toml(setting))
    elif place == "profile":
        profile(machine, "mine.toml", in_toml(setting))
        return ("--profile", "mine")
    elif place == "project":
        (machine.root / "home/alice/shop/.claudebox.toml").write_text(in_toml(setting))
    elif place == "variable":
        machine.environ[setting.variable] = bad(setting)
    else:
        return (f"{setting.option}={bad(setting)}",)
    return ()


SAID = [
    (setting, place)
    for setting in SETTINGS
    if setting.kind in (VALUE, LIST) and setting.name not in ANYTHING_GOES
    for place in places(setting)
]


@pytest.mark.req("WORK-02", "FAIL-01")
@pytest.mark.parametrize(("setting", "place"), SAID, ids=[f"{setting.name}-{place}" for setting, place in SAID])
def test_value_that_no_box_can_have_starts_nothing(machine: Machine, setting: Setting[object], place: str) -> None:
    problem = refusal(machine, *say(machine, setting, place))
    # Claude not being there has a status of its own, as in every shell.
    expected = NOT_FOUND if setting.name == "claude" and place != "project" else FAILED
    assert problem.status == expected
    assert problem.hint or setting.name == "claude"
