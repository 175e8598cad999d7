"""The one table of settings: its rows give the options, the variables, the help text and the validation."""

from __future__ import annotations

from claudebox.model import RO, RW, Origin, Port
from claudebox.problem import Problem
from claudebox.record import Record

MODE = "mode"  # what to do instead of starting claude
SWITCH = "switch"
VALUE = "value"  # the last one wins
LIST = "list"  # each one adds
COMMAND = "command"  # takes the rest of the line


class Setting(Record):
    """One thing that the user can say."""

    name: str
    kind: str
    help: str
    short: str = ""
    metavar: str = ""
    variable: str = ""  # the environment variable that says the same

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")


SETTINGS = (
    Setting("yes", SWITCH, "start without asking", short="-y"),
    Setting("mount_ro", LIST, "show PATH in the box, read-only", metavar="PATH[:DEST]"),
    Setting("mount_rw", LIST, "show PATH in the box, writable", metavar="PATH[:DEST]"),
    Setting("env", LIST, "pass a variable, or set it", metavar="NAME[=VALUE]"),
    Setting("auth", VALUE, "Claude's login: passthrough (default) or none", metavar="HOW", variable="CLAUDEBOX_AUTH"),
    Setting(
        "network",
        VALUE,
        "what the box reaches: full (default), inet (the internet alone) or none",
        metavar="TIER",
        variable="CLAUDEBOX_NETWORK",
    ),
    Setting("publish", LIST, "open PORT of the box on this host's localhost", metavar="[HOST:]PORT"),
    Setting("host_port", LIST, "let the box reach PORT of this host's localhost", metavar="PORT"),
    Setting("run", COMMAND, "run CMD in the box instead of claude", metavar="CMD ARG…"),
    Setting("shell", SWITCH, "start a shell in the box instead of claude"),
    Setting("bwrap", VALUE, "use this bwrap", metavar="PATH", variable="CLAUDEBOX_BWRAP"),
    Setting("claude", VALUE, "use this claude", metavar="PATH", variable="CLAUDEBOX_CLAUDE"),
    Setting("pasta", VALUE, "use this pasta", metavar="PATH", variable="CLAUDEBOX_PASTA"),
    Setting("nft", VALUE, "use this nft", metavar="PATH", variable="CLAUDEBOX_NFT"),
    Setting("instances", MODE, "list the state kept for each project; with gc: remove what is gone", metavar="[gc]"),
    Setting("audit", MODE, "show everything about the box, start nothing"),
    Setting("dry_run", MODE, "print the command to paste, start nothing"),
    Setting("check", MODE, "check this machine, say how to fix it"),
    Setting("json", SWITCH, "with --audit, --dry-run or --check: as JSON"),
    Setting("demo", MODE, "watch an agent try to take fake secrets; needs no account"),
    Setting("help", MODE, "show this help", short="-h"),
    Setting("version", MODE, "show the versions of claudebox and its programs"),
)

BY_OPTION = {setting.option: setting for setting in SETTINGS} | {
    setting.short: setting for setting in SETTINGS if setting.short
}

EXTRA_ENV = "CLAUDEBOX_EXTRA_ENV"
PASSTHROUGH = "passthrough"
NONE = "none"
FULL = "full"
INET = "inet"
NO_NETWORK = "none"
TIERS = (FULL, INET, NO_NETWORK)
LAST_PORT = 65535


class MountWish(Record):
    """A mount that somebody asked for, paths as written."""

    access: str
    source: str
    destination: str  # "" means the same path as on the host
    origin: Origin
    is_new: bool = False  # a file that will be made before the box starts


class EnvWish(Record):
    """A variable that somebody asked for. No value: take the host's."""

    name: str
    value: str | None
    origin: Origin


class Named(Record):
    """A program that the user names."""

    path: str
    origin: Origin


class Tier(Record):
    """Which network the user wants."""

    tier: str
    origin: Origin


class Settings(Record):
    """All that was said, each with where it was said."""

    mounts: tuple[MountWish, ...] = ()
    env: tuple[EnvWish, ...] = ()
    bwrap: Named | None = None
    claude: Named | None = None
    pasta: Named | None = None
    nft: Named | None = None
    auth: str = PASSTHROUGH
    network: Tier = Tier(FULL, Origin("default"))
    publish: tuple[Port, ...] = ()
    host_ports: tuple[Port, ...] = ()


def gather(said: tuple[tuple[str, str], ...], environ: dict[str, str]) -> Settings:
    """Options, as (setting, value) in order, over environment variables."""
    extra = tuple(
        _env_wish(name.strip(), Origin(EXTRA_ENV)) for name in environ.get(EXTRA_ENV, "").split(",") if name.strip()
    )
    return Settings(
        mounts=tuple(_mount_wish(name, value) for name, value in said if name in ("mount_ro", "mount_rw")),
        env=extra + tuple(_env_wish(value, Origin("--env")) for name, value in said if name == "env"),
        bwrap=_named("bwrap", said, environ),
        claude=_named("claude", said, environ),
        pasta=_named("pasta", said, environ),
        nft=_named("nft", said, environ),
        auth=_auth(said, environ),
        network=_network(said, environ),
        publish=_ports("publish", said),
        host_ports=_ports("host_port", said),
    )


def _auth(said: tuple[tuple[str, str], ...], environ: dict[str, str]) -> str:
    named = _named("auth", said, environ)
    if named is None:
        return PASSTHROUGH
    if named.path not in (PASSTHROUGH, NONE):
        raise Problem(f"{named.origin.rule}: `{named.path}` is not a way to log in", "passthrough or none")
    return named.path


def _network(said: tuple[tuple[str, str], ...], environ: dict[str, str]) -> Tier:
    named = _named("network", said, environ)
    if named is None:
        return Tier(FULL, Origin("default"))
    if named.path not in TIERS:
        raise Problem(f"{named.origin.rule}: `{named.path}` is not a network tier", "full, inet or none")
    return Tier(named.path, named.origin)


def _ports(name: str, said: tuple[tuple[str, str], ...]) -> tuple[Port, ...]:
    """By port of the host, of which each can lead to one place only."""
    setting = next(setting for setting in SETTINGS if setting.name == name)
    ports: dict[int, Port] = {}
    for said_name, text in said:
        if said_name == name:
            port = _port(text, setting)
            if ports.setdefault(port.host, port) != port:
                raise Problem(f"{setting.option}: port {port.host} of the host is published twice", "choose another")
    return tuple(ports.values())


def _port(text: str, setting: Setting) -> Port:
    host, separator, box = text.partition(":")
    numbers = [_number(part) for part in ((host, box) if separator else (host,))]
    if not all(numbers) or (separator and setting.name != "publish"):
        raise Problem(f"{setting.option}: `{text}` is not a port", f"{setting.option} {setting.metavar}, 1 to 65535")
    return Port(numbers[0], numbers[-1], Origin(setting.option))


def _number(text: str) -> int:
    """A port, or 0."""
    is_port = text.isascii() and text.isdigit() and len(text) <= len(str(LAST_PORT)) and int(text) <= LAST_PORT
    return int(text) if is_port else 0


def _named(name: str, said: tuple[tuple[str, str], ...], environ: dict[str, str]) -> Named | None:
    setting = next(setting for setting in SETTINGS if setting.name == name)
    for said_name, value in reversed(said):
        if said_name == name:
            return Named(value, Origin(setting.option))
    value = environ.get(setting.variable, "")
    return Named(value, Origin(setting.variable)) if value else None


def _mount_wish(name: str, text: str) -> MountWish:
    access = RO if name == "mount_ro" else RW
    origin = Origin("--" + name.replace("_", "-"))
    source, separator, destination = text.rpartition(":")
    if not separator or not destination.startswith(("/", "~")):
        source, destination = text, ""
    if not source:
        raise Problem(f"{origin.rule} needs a path", f"{origin.rule} PATH or {origin.rule} PATH:DEST")
    return MountWish(access, source, destination, origin)


def _env_wish(text: str, origin: Origin) -> EnvWish:
    name, separator, value = text.partition("=")
    if not is_variable_name(name):
        raise Problem(
            f"{origin.rule}: `{name}` is not a variable name", "use letters, digits and _: NAME or NAME=VALUE"
        )
    return EnvWish(name, value if separator else None, origin)


def is_variable_name(name: str) -> bool:
    return name.isascii() and name.isidentifier()
