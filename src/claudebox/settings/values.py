"""The values of settings: one by one, and merged. table.py says which settings exist."""

from __future__ import annotations

from claudebox.model import BY_DEFAULT, Finding, Origin, Port, Preparation
from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.settings.table import (
    ASK,
    AUTO,
    BY_NAME,
    CLAUDE,
    FULL,
    GUARDED,
    LIST,
    OFF,
    OTHER_VARIABLES,
    PASSTHROUGH,
    PROJECT,
    SETTINGS,
    VALUE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from claudebox.settings.table import Setting

PROJECT_FILE = ".claudebox.toml"
WORDS = "claude_args"


class MountWish(Record):
    """A mount that somebody asked for, with the paths as they were written."""

    access: str
    source: str
    destination: str  # "" means the same path as on the host
    origin: Origin
    is_new: bool = False  # a file that will be made before the box starts
    is_optional: bool = False  # the source may be missing


class EnvWish(Record):
    """A variable that somebody asked for. Without a value, it has the host's."""

    name: str
    value: str | None
    origin: Origin


class Word(Record):
    """A word that somebody wrote: a program, a profile, a path to hide, one of the choices of a setting."""

    text: str
    origin: Origin


Value = MountWish | EnvWish | Word | Port


class Profile(Record):
    """Settings that can be asked for by name."""

    name: str
    file: str  # as people see it
    description: str


class Statement(Record):
    """One value that somebody gave to a setting. The value knows where it was written."""

    name: str  # the name of the setting
    value: Value


class Settings(Record):
    """The settings of all layers, merged. Each value knows its origin."""

    mounts: tuple[MountWish, ...] = ()
    hides: tuple[Word, ...] = ()
    env: tuple[EnvWish, ...] = ()
    dropped: tuple[Word, ...] = ()
    bwrap: Word | None = None
    claude: Word | None = None
    pasta: Word | None = None
    nft: Word | None = None
    auth: str = PASSTHROUGH
    auth_limits: tuple[Word, ...] = ()
    network: Word = Word(FULL, BY_DEFAULT)
    allow: tuple[Word, ...] = ()
    ask: Word = Word(OFF, BY_DEFAULT)
    publish: tuple[Port, ...] = ()
    host_ports: tuple[Port, ...] = ()
    path: tuple[Word, ...] = ()
    claude_args: tuple[Word, ...] = ()
    nix: Word = Word(AUTO, BY_DEFAULT)
    packages: tuple[Word, ...] = ()
    reveals: tuple[Word, ...] = ()
    writable: tuple[Word, ...] = ()
    review: Word = Word(GUARDED, BY_DEFAULT)
    land: Word = Word(ASK, BY_DEFAULT)
    userns: Word = Word(OFF, BY_DEFAULT)
    program: Word = Word(CLAUDE, BY_DEFAULT)
    memory: Word | None = None
    pids: Word | None = None
    cpu: Word | None = None
    toolchains: Word = Word(AUTO, BY_DEFAULT)
    cache: Word = Word(PROJECT, BY_DEFAULT)
    tmp_size: Word | None = None
    profiles: tuple[Word, ...] = ()
    findings: tuple[Finding, ...] = ()  # about the files with settings
    preparations: tuple[Preparation, ...] = ()  # they make reading those files faster the next time


def merge(said: Iterable[Statement]) -> Settings:
    """Merge statements in the order of the layers: the last value wins, lists add up, and nothing undoes a hide."""
    lists: dict[str, list[Any]] = {}
    last: dict[str, Any] = {}
    for one in said:
        if BY_NAME[one.name].kind == VALUE:
            last[one.name] = one.value
        else:
            lists.setdefault(LIST_OF.get(one.name, one.name), []).append(one.value)
    if "auth" in last:
        last["auth"] = last["auth"].text
    # Claude may need the same word twice.
    last |= {name: tuple(values if name == WORDS else dict.fromkeys(values)) for name, values in lists.items()}
    settings = Settings(**last)
    _check_ports(settings.publish)
    return settings


# The merged list of a setting, if it has another name than the setting.
LIST_OF = {
    "mount_ro": "mounts",
    "mount_rw": "mounts",
    "hide": "hides",
    "pass_env": "env",
    "drop_env": "dropped",
    "host_port": "host_ports",
    "auth_limit": "auth_limits",
    "profile": "profiles",
    "package": "packages",
    "reveal": "reveals",
}


def _check_ports(published: tuple[Port, ...]) -> None:
    seen: dict[int, Port] = {}
    for port in published:
        first = seen.setdefault(port.host, port)
        if first.box != port.box:
            raise Problem(
                f"{port.origin.shown}: port {port.host} of the host already leads to port {first.box} of the box "
                f"({first.origin.shown})",
                "choose another",
            )


def from_options(words: tuple[tuple[str, str], ...]) -> list[Statement]:
    """Parse what was typed: pairs of a setting's name and its text."""
    typed = [(BY_NAME[name], text) for name, text in words if BY_NAME[name].kind in (VALUE, LIST)]
    return [_said(setting, text, Origin.of_option(setting.option)) for setting, text in typed]


def from_variables(environ: dict[str, str]) -> list[Statement]:
    _refuse_unknown_variables(environ)
    said = []
    for setting in SETTINGS:
        text = environ.get(setting.variable, "") if setting.variable else ""
        parts = [part.strip() for part in text.split(",")] if setting.kind == LIST else [text]
        said += [_said(setting, part, Origin.of_variable(setting.variable)) for part in parts if part]
    return said


def _refuse_unknown_variables(environ: dict[str, str]) -> None:
    """Refuse a variable that is nearly ours: whoever set it believes that it counts."""
    suspects = [name for name in environ if name.startswith("CLAUD") and "BOX_" in name]
    known = [setting.variable for setting in SETTINGS if setting.variable] if suspects else []
    for name in suspects:
        if name not in known and name not in OTHER_VARIABLES:
            from claudebox.settings.mistakes import refuse_variable

            refuse_variable(name, known)


def _said(setting: Setting, text: str, origin: Origin) -> Statement:
    # Imported late: most launches have no such setting.
    from claudebox.settings.parsing import read_text

    return Statement(setting.name, read_text(setting, text, origin))
