"""The values of settings: one by one, and merged. types.py says how they are written, table.py which there are."""

from __future__ import annotations

from claudebox.model import BY_DEFAULT, Finding, Origin, Port
from claudebox.record import Record

PROJECT_FILE = ".claudebox.toml"


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


class Amount(Record):
    """How much of something."""

    text: str  # as it was written
    number: int  # bytes, processes, microseconds in each second, or what the broker counts
    origin: Origin
    of: str = ""  # what the broker counts


Value = MountWish | EnvWish | Word | Amount | Port


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
    hide: tuple[Word, ...] = ()
    env: tuple[EnvWish, ...] = ()
    drop_env: tuple[Word, ...] = ()
    bwrap: Word | None = None
    claude: Word | None = None
    pasta: Word | None = None
    nft: Word | None = None
    auth: Word = Word("passthrough", BY_DEFAULT)
    auth_limits: tuple[Amount, ...] = ()
    network: Word = Word("full", BY_DEFAULT)
    allow: tuple[Word, ...] = ()
    ask: Word = Word("off", BY_DEFAULT)
    publish: tuple[Port, ...] = ()
    host_ports: tuple[Port, ...] = ()
    path: tuple[Word, ...] = ()
    claude_args: tuple[Word, ...] = ()
    nix: Word = Word("auto", BY_DEFAULT)
    packages: tuple[Word, ...] = ()
    reveal: tuple[Word, ...] = ()
    writable: tuple[Word, ...] = ()
    review: Word = Word("guarded", BY_DEFAULT)
    land: Word = Word("ask", BY_DEFAULT)
    userns: Word = Word("off", BY_DEFAULT)
    program: Word = Word("claude", BY_DEFAULT)
    memory: Amount | None = None
    pids: Amount | None = None
    cpu: Amount | None = None
    toolchains: Word = Word("auto", BY_DEFAULT)
    cache: Word = Word("project", BY_DEFAULT)
    tmp_size: Amount | None = None
    profiles: tuple[Word, ...] = ()
    findings: tuple[Finding, ...] = ()  # about the files with settings
