"""The values of settings: what was said, and all of it merged. Which settings there are: table.py."""

from __future__ import annotations

from claudebox.model import BY_DEFAULT, Finding, Origin, Port, Preparation
from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.settings.table import AUTO, BY_NAME, FULL, LIST, OFF, PASSTHROUGH, SETTINGS, VALUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from claudebox.settings.table import Setting

PROJECT_FILE = ".claudebox.toml"
WORDS = "claude_args"


class MountWish(Record):
    """A mount that somebody asked for, paths as written."""

    access: str
    source: str
    destination: str  # "" means the same path as on the host
    origin: Origin
    is_new: bool = False  # a file that will be made before the box starts
    is_optional: bool = False  # may be missing


class EnvWish(Record):
    """A variable that somebody asked for. No value: take the host's."""

    name: str
    value: str | None
    origin: Origin


class Named(Record):
    """A word of the user's: a program, a profile, a path to hide."""

    path: str
    origin: Origin


class Tier(Record):
    """Which network the user wants."""

    tier: str
    origin: Origin


Value = MountWish | EnvWish | Named | Tier | Port


class Said(Record):
    """One thing that somebody said somewhere. The value knows where."""

    name: str  # of the setting
    value: Value


class Settings(Record):
    """All that was said, merged, each with where it was said."""

    mounts: tuple[MountWish, ...] = ()
    hides: tuple[Named, ...] = ()
    env: tuple[EnvWish, ...] = ()
    dropped: tuple[Named, ...] = ()
    bwrap: Named | None = None
    claude: Named | None = None
    pasta: Named | None = None
    nft: Named | None = None
    auth: str = PASSTHROUGH
    auth_limits: tuple[Named, ...] = ()
    network: Tier = Tier(FULL, BY_DEFAULT)
    publish: tuple[Port, ...] = ()
    host_ports: tuple[Port, ...] = ()
    path: tuple[Named, ...] = ()
    claude_args: tuple[Named, ...] = ()
    nix: Named = Named(AUTO, BY_DEFAULT)
    packages: tuple[Named, ...] = ()
    reveals: tuple[Named, ...] = ()
    writable: tuple[Named, ...] = ()
    userns: Named = Named(OFF, BY_DEFAULT)
    memory: Named | None = None
    pids: Named | None = None
    cpu: Named | None = None
    profiles: tuple[Named, ...] = ()
    findings: tuple[Finding, ...] = ()  # about the files themselves
    preparations: tuple[Preparation, ...] = ()  # so that they are read faster the next time


def merge(said: Iterable[Said]) -> Settings:
    """In the order of the layers: the last value wins, lists add up, and what takes away is never outvoted."""
    lists: dict[str, list[Any]] = {}
    last: dict[str, Any] = {}
    for one in said:
        if BY_NAME[one.name].kind == VALUE:
            last[one.name] = one.value
        else:
            lists.setdefault(LIST_OF.get(one.name, one.name), []).append(one.value)
    if "auth" in last:
        last["auth"] = last["auth"].path
    # Of words for claude, the same one may be needed twice.
    last |= {name: tuple(values if name == WORDS else dict.fromkeys(values)) for name, values in lists.items()}
    settings = Settings(**last)
    _check_ports(settings.publish)
    return settings


# The names of the merged lists, where several settings fill one.
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
                f"{port.origin.shown}: port {port.host} of the host leads to {first.box} of the box already "
                f"({first.origin.shown})",
                "choose another",
            )


def from_options(words: tuple[tuple[str, str], ...]) -> list[Said]:
    """What was typed, as (setting, text)."""
    typed = [(BY_NAME[name], text) for name, text in words if BY_NAME[name].kind in (VALUE, LIST)]
    return [_said(setting, text, Origin.of_option(setting.option)) for setting, text in typed]


def from_variables(environ: dict[str, str]) -> list[Said]:
    said = []
    for setting in SETTINGS:
        text = environ.get(setting.variable, "") if setting.variable else ""
        parts = [part.strip() for part in text.split(",")] if setting.kind == LIST else [text]
        said += [_said(setting, part, Origin.of_variable(setting.variable)) for part in parts if part]
    return said


def _said(setting: Setting, text: str, origin: Origin) -> Said:
    # Most launches come without any.
    from claudebox.settings.parsing import read_text

    return Said(setting.name, read_text(setting, text, origin))
