"""The one table of settings: its rows give the options, the variables, the help text and the validation."""

from __future__ import annotations

from claudebox.model import RO, RW, Finding, Origin, Port, Preparation
from claudebox.problem import Problem
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MODE = "mode"  # what to do instead of starting claude
SWITCH = "switch"
VALUE = "value"  # the last one wins
LIST = "list"  # each one adds
COMMAND = "command"  # takes the rest of the line
OPERAND = "operand"  # of a mode: says what that works on

# How a setting is written in a file.
TEXT = "a string"
TEXTS = "an array of strings"
PORTS = "an array of ports"
TABLE = "a table of strings"
MOUNTS = "an array of tables"


class Setting(Record):
    """One thing that the user can say: as an option, as a variable, as a key of a file."""

    name: str
    kind: str
    help: str
    short: str = ""
    metavar: str = ""
    variable: str = ""  # the environment variable that says the same
    key: str = ""  # of a file that says the same
    shape: str = ""
    choices: tuple[str, ...] = ()  # each gives less than the one before it
    tightens: bool = False  # takes something away: a project may ask for it and get it at once
    is_users: bool = False  # decides what runs on the host: never a project's to say
    in_files_only: bool = False
    help_in_files: str = ""  # where the key says less than the option, or more

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")


PASSTHROUGH = "passthrough"
NONE = "none"
FULL = "full"
INET = "inet"
NO_NETWORK = "none"
TIERS = (FULL, INET, NO_NETWORK)
LAST_PORT = 65535
AUTO = "auto"
DAEMON = "daemon"
PRIVATE = "private"
STORE = "store"
OFF = "off"
ON = "on"

SETTINGS = (
    Setting("yes", SWITCH, "start without asking", short="-y"),
    Setting(
        *("profile", LIST, "use the settings of a profile; without a name: list them"),
        metavar="NAME",
        variable="CLAUDEBOX_PROFILE",
        key="profiles",
        shape=TEXTS,
        help_in_files="profiles to build on",
    ),
    Setting(
        *("mount_ro", LIST, "show PATH in the box, read-only"),
        metavar="PATH[:DEST]",
        key="mounts",
        shape=MOUNTS,
        help_in_files="files and directories to show in the box",
    ),
    Setting("mount_rw", LIST, "show PATH in the box, writable", metavar="PATH[:DEST]"),
    Setting("hide", LIST, "hide PATH, whatever shows it", metavar="PATH", key="hide", shape=TEXTS, tightens=True),
    Setting(
        *("env", LIST, "pass a variable, or set it"),
        metavar="NAME[=VALUE]",
        key="env",
        shape=TABLE,
        help_in_files="variables with a value that is the same each time, as it is written; no secrets",
    ),
    Setting(
        "pass_env",
        LIST,
        "variables of this host to pass, by name",
        variable="CLAUDEBOX_EXTRA_ENV",
        key="extra_env_passthrough",
        shape=TEXTS,
        in_files_only=True,
    ),
    Setting("drop_env", LIST, "keep a variable out", metavar="NAME", key="drop_env", shape=TEXTS, tightens=True),
    Setting(
        *("auth", VALUE, "Claude's login: passthrough (default) or none"),
        metavar="HOW",
        variable="CLAUDEBOX_AUTH",
        key="auth",
        shape=TEXT,
        choices=(PASSTHROUGH, NONE),
    ),
    Setting(
        *("network", VALUE, "what the box reaches: full (default), inet (the internet alone) or none"),
        metavar="TIER",
        variable="CLAUDEBOX_NETWORK",
        key="network",
        shape=TEXT,
        choices=TIERS,
    ),
    Setting(
        "publish",
        LIST,
        "open a port of the box on this host's localhost; of two, the first is the host's",
        metavar="PORT[:PORT]",
        key="publish",
        shape=PORTS,
    ),
    Setting(
        "host_port",
        LIST,
        "let the box reach PORT of this host's localhost",
        metavar="PORT",
        key="host_ports",
        shape=PORTS,
    ),
    Setting("path", LIST, "directories that come first in PATH", key="path", shape=TEXTS, in_files_only=True),
    Setting("claude_args", LIST, "arguments for claude", key="claude_args", shape=TEXTS, in_files_only=True),
    Setting(
        *("nix", VALUE, "Nix in the box: auto (default), daemon, private, store or off"),
        metavar="HOW",
        variable="CLAUDEBOX_NIX",
        key="nix",
        shape=TEXT,
        choices=(DAEMON, AUTO, PRIVATE, STORE, OFF),
    ),
    Setting(
        *("package", LIST, "have this package of Nix on PATH: a name in nixpkgs, or a flake reference"),
        metavar="NAME",
        key="packages",
        shape=TEXTS,
    ),
    Setting("strict", SWITCH, "do not start if a package cannot be had"),
    Setting(
        *("reveal", LIST, "show PATH in the project as it is, although it looks secret"),
        metavar="PATH",
        key="reveal",
        shape=TEXTS,
    ),
    Setting(
        *("writable", LIST, "let the agent change PATH in the project, although this host may run it later"),
        metavar="PATH",
        key="writable",
        shape=TEXTS,
    ),
    Setting(
        *("userns", VALUE, "user namespaces in the box, for Chromium or bwrap: off (default) or on"),
        metavar="HOW",
        key="userns",
        shape=TEXT,
        choices=(ON, OFF),
    ),
    *(
        Setting(name, VALUE, f"the most {what}; needs systemd", metavar=how, key=name, shape=TEXT, tightens=True)
        for name, how, what in (
            ("memory", "SIZE", "memory that the box may use, such as 4G"),
            ("pids", "NUMBER", "processes and threads that the box may have"),
            ("cpu", "NUMBER", "processors that the box may use, such as 1.5"),
        )
    ),
    Setting("run", COMMAND, "run CMD in the box instead of claude", metavar="CMD ARG…"),
    Setting("shell", SWITCH, "start a shell in the box instead of claude"),
    *(
        Setting(
            *(name, VALUE, f"use this {name}"),
            metavar="PATH",
            variable=f"CLAUDEBOX_{name.upper()}",
            key=name,
            shape=TEXT,
            is_users=True,
        )
        for name in ("bwrap", "claude", "pasta", "nft")
    ),
    Setting("instances", MODE, "list the state kept for each project; with gc: remove what is gone", metavar="[gc]"),
    Setting("explain", MODE, "say why something is in the box or not, start nothing", metavar="THING"),
    Setting("audit", MODE, "show everything about the box, start nothing"),
    Setting("dry_run", MODE, "print the command to paste, start nothing"),
    Setting("check", MODE, "check this machine, say how to fix it"),
    Setting("prove", MODE, "attack the box that these options build, from inside, and say what held"),
    Setting("against", OPERAND, "with --prove: attack what this command starts instead", metavar="CMD"),
    Setting("json", SWITCH, "with --audit, --dry-run, --explain, --check or --prove: as JSON"),
    Setting("demo", MODE, "watch an agent try to take fake secrets; needs no account"),
    Setting("completion", MODE, "print what makes a shell complete options", metavar="bash|zsh|fish"),
    Setting("help", MODE, "show this help", short="-h"),
    Setting("version", MODE, "show the versions of claudebox and its programs"),
)

BY_NAME = {setting.name: setting for setting in SETTINGS}
BY_KEY = {setting.key: setting for setting in SETTINGS if setting.key}
BY_OPTION = {setting.option: setting for setting in SETTINGS if not setting.in_files_only} | {
    setting.short: setting for setting in SETTINGS if setting.short
}

PROJECT_FILE = ".claudebox.toml"


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
    network: Tier = Tier(FULL, Origin("default"))
    publish: tuple[Port, ...] = ()
    host_ports: tuple[Port, ...] = ()
    path: tuple[Named, ...] = ()
    claude_args: tuple[Named, ...] = ()
    nix: Named = Named(AUTO, Origin("default"))
    packages: tuple[Named, ...] = ()
    reveals: tuple[Named, ...] = ()
    writable: tuple[Named, ...] = ()
    userns: Named = Named(OFF, Origin("default"))
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
    last |= {name: tuple(dict.fromkeys(values)) for name, values in lists.items()}
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
    "profile": "profiles",
    "package": "packages",
    "reveal": "reveals",
}


def from_options(words: tuple[tuple[str, str], ...]) -> list[Said]:
    """What was typed, as (setting, text)."""
    return [
        Said(name, read_text(BY_NAME[name], text, Origin(BY_NAME[name].option)))
        for name, text in words
        if BY_NAME[name].kind in (VALUE, LIST)
    ]


def from_variables(environ: dict[str, str]) -> list[Said]:
    said = []
    for setting in SETTINGS:
        text = environ.get(setting.variable, "") if setting.variable else ""
        parts = [part.strip() for part in text.split(",")] if setting.kind == LIST else [text]
        said += [Said(setting.name, read_text(setting, part, Origin(setting.variable))) for part in parts if part]
    return said


def read_text(setting: Setting, text: str, origin: Origin) -> Value:
    """One value as an option, a variable or an element of an array has it. Raises a Problem if it is none."""
    if setting.name in ("mount_ro", "mount_rw"):
        return _mount_wish(setting, text, origin)
    if setting.name in ("env", "pass_env"):
        return _env_wish(text, origin)
    if setting.shape == PORTS:
        return _port(setting, text, origin)
    if setting.choices and text not in setting.choices:
        *others, last = setting.choices
        raise Problem(f"{origin.rule}: `{text}` is no value for {setting.name}", f"{', '.join(others)} or {last}")
    if setting.name == "network":
        return Tier(text, origin)
    if setting.name == "drop_env" and not is_variable_name(text):
        raise _bad_name(text, origin, "NAME")
    return Named(text, origin)


def _mount_wish(setting: Setting, text: str, origin: Origin) -> MountWish:
    source, separator, destination = text.rpartition(":")
    if not separator or not destination.startswith(("/", "~")):
        source, destination = text, ""
    if not source:
        raise Problem(f"{origin.rule} needs a path", f"{origin.rule} PATH or {origin.rule} PATH:DEST")
    return MountWish(RO if setting.name == "mount_ro" else RW, source, destination, origin)


def _env_wish(text: str, origin: Origin) -> EnvWish:
    name, separator, value = text.partition("=")
    if not is_variable_name(name):
        raise _bad_name(name, origin)
    return EnvWish(name, value if separator else None, origin)


def _bad_name(name: str, origin: Origin, usage: str = "NAME or NAME=VALUE") -> Problem:
    return Problem(f"{origin.rule}: `{name}` is not a variable name", f"use letters, digits and _: {usage}")


def is_variable_name(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _port(setting: Setting, text: str, origin: Origin) -> Port:
    host, separator, box = text.partition(":")
    numbers = [_number(part) for part in ((host, box) if separator else (host,))]
    if not all(numbers) or (separator and setting.name != "publish"):
        raise Problem(f"{origin.rule}: `{text}` is not a port", f"{setting.metavar}, 1 to {LAST_PORT}")
    return Port(numbers[0], numbers[-1], origin)


def _number(text: str) -> int:
    """A port, or 0."""
    is_port = text.isascii() and text.isdigit() and len(text) <= len(str(LAST_PORT)) and int(text) <= LAST_PORT
    return int(text) if is_port else 0


def _check_ports(published: tuple[Port, ...]) -> None:
    seen: dict[int, Port] = {}
    for port in published:
        first = seen.setdefault(port.host, port)
        if first.box != port.box:
            raise Problem(
                f"{port.origin.rule}: port {port.host} of the host leads to {first.box} of the box already "
                f"({first.origin.rule})",
                "choose another",
            )
