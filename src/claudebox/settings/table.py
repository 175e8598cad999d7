"""What a setting is, and the settings of claudebox itself and of several features. A feature has its own in its folder.

The rows give the options, the variables, the keys of files, the help text, completion and the validation.
"""

from __future__ import annotations

from claudebox.model import RO, RW
from claudebox.record import Generic, Record
from claudebox.settings.types import (
    LIST,
    VALUE,
    Argument,
    Choice,
    Command,
    List,
    Mode,
    Mounted,
    Operand,
    PassedVariable,
    Path,
    PortNumber,
    Program,
    ProjectPath,
    Switch,
    Text,
    Type,
    Variable,
    VariableName,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)
else:
    T_co = None

# What settings are about. Help shows them in this order.
START, SHOWN, REACH, CHANGE, AMOUNT, LOOK, TEND = GROUPS = (
    "What starts",
    "What the box has",
    "Network and login",
    "What the agent may change",
    "How much it may use",
    "To look, and start nothing",
    "To set up, to try and to clean up",
)


class Setting(Record, Generic[T_co]):
    """One thing that the user can set: by an option, a variable, or a key of a file."""

    name: str
    group: str
    help: str  # the short help says what is before the first semicolon
    type: Type[T_co]
    short: str = ""
    usage: str = ""  # how the help shows its value, if not as the type does
    variable: str = ""  # the environment variable with the same meaning
    called: str = ""  # the key of a file with the same meaning, if it is not the name
    adds_to: str = ""  # the key of the setting that its values are added to, and which is the one to read
    implies: tuple[str, str] = ("", "")  # another key and its value, if the option is typed and nothing says that one
    tightens: bool = False  # a project's file may say, without a question, what gives no more than what is known
    is_users: bool = False  # it decides what runs on the host, so a project's file may never set it
    in_files_only: bool = False  # no option sets it; a variable may
    help_in_files: str = ""  # the help for the key, if it differs from that of the option
    is_daily: bool = False  # the short help has it

    @property
    def kind(self) -> str:
        return self.type.kind

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def key(self) -> str:
        """What a file calls it; "" if no file says it."""
        return self.called or ("" if self.adds_to or self.type.kind not in (VALUE, LIST) else self.name)

    @property
    def field(self) -> str:
        """Where its value is in the merged settings."""
        return self.adds_to or self.key

    @property
    def metavar(self) -> str:
        return self.usage or self.type.metavar

    @property
    def choices(self) -> tuple[str, ...]:
        return self.type.choices


class Table:
    """All settings, by what they are about, and each by what people call it."""

    def __init__(self, settings: tuple[Setting[object], ...]) -> None:
        self.settings = settings = tuple(one for group in GROUPS for one in settings if one.group == group)
        self.by_name = {one.name: one for one in settings}
        self.by_key = {key: one for one in settings if (key := one.key)}
        self.by_variable = {one.variable: one for one in settings if one.variable}
        self.by_option = {one.option: one for one in settings if not one.in_files_only}
        self.by_option |= {one.short: one for one in settings if one.short}

    def __iter__(self) -> Iterator[Setting[object]]:
        return iter(self.settings)


# What several features and rooms ask for. The choices go from the one that gives most to the one that gives least.

CLAUDE = "claude"
PROGRAM = Setting(
    *("program", START, "start another agent than claude: codex, gemini, opencode or aider"),
    Choice(CLAUDE, "codex", "gemini", "opencode", "aider", default=CLAUDE),
    usage="AGENT",
    variable="CLAUDEBOX_PROGRAM",
    is_users=True,
)
CLAUDE_ARGS = Setting("claude_args", START, "arguments for claude", List(Argument()), in_files_only=True)

PROFILE = Setting(
    *("profile", SHOWN, "use the settings of a profile; without a name: list them"),
    List(Text()),
    usage="NAME",
    variable="CLAUDEBOX_PROFILE",
    called="profiles",
    help_in_files="profiles to build on",
    is_daily=True,
)
MOUNTS = Setting(
    *("mount_ro", SHOWN, "show PATH in the box, read-only"),
    List(Mounted(RO)),
    called="mounts",
    help_in_files="files and directories to show in the box",
    is_daily=True,
)
MOUNT_RW = Setting(
    "mount_rw", SHOWN, "show PATH in the box, writable", List(Mounted(RW)), adds_to=MOUNTS.key, is_daily=True
)
HIDES = Setting("hide", SHOWN, "hide PATH, whatever shows it", List(Path()), tightens=True)
ENV = Setting(
    *("env", SHOWN, "pass a variable, or set it"),
    List(Variable()),
    help_in_files="variables with a value that is the same each time, as it is written; no secrets",
    is_daily=True,
)
PASS_ENV = Setting(
    *("pass_env", SHOWN, "variables of this host to pass, by name"),
    List(PassedVariable()),
    variable="CLAUDEBOX_EXTRA_ENV",
    called="extra_env_passthrough",
    adds_to=ENV.key,
    in_files_only=True,
)

DROP_ENV = Setting("drop_env", SHOWN, "keep a variable out", List(VariableName()), tightens=True)

PASSTHROUGH, BROKER, NONE = "passthrough", "broker", "none"
AUTH = Setting(
    *("auth", REACH, "login and keys: passthrough (default), broker or none; the broker keeps them outside"),
    Choice(PASSTHROUGH, BROKER, NONE, default=PASSTHROUGH),
    variable="CLAUDEBOX_AUTH",
    tightens=True,
    is_daily=True,
)
FULL, INET, ALLOWLIST, NO_NETWORK = TIERS = ("full", "inet", "allowlist", "none")
# What somebody gets who chooses a tier.
REACHES = {
    FULL: "reaches everything that this host reaches, its own localhost too",
    INET: "reaches the internet, and nothing near",
    ALLOWLIST: "reaches only what --allow lists",
    NO_NETWORK: "reaches nothing",
}
NETWORK = Setting(
    *("network", REACH),
    "the network: full (default), inet, allowlist or none; inet is the internet, allowlist what --allow lists",
    Choice(*TIERS, default=FULL),
    usage="TIER",
    variable="CLAUDEBOX_NETWORK",
    tightens=True,
    is_daily=True,
)
PUBLISH = Setting(
    *("publish", REACH, "open a port of the box on this host's localhost; of two, the first is the host's"),
    List(PortNumber(is_pair=True)),
)
HOST_PORTS = Setting(
    "host_port", REACH, "let the box reach PORT of this host's localhost", List(PortNumber()), called="host_ports"
)

WRITABLE = Setting(
    *("writable", CHANGE, "let the agent change PATH in the project, although this host may run it later"),
    List(ProjectPath()),
)
OFF, GUARDED, ON = "off", "guarded", "on"
REVIEW = Setting(
    *("review", CHANGE),
    "keep what the box changes until you land it; list, show, land or discard what is kept",
    Choice(OFF, GUARDED, ON, default=GUARDED),
    usage="[HOW]",
    variable="CLAUDEBOX_REVIEW",
    tightens=True,
    help_in_files="what is kept until you land it: nothing (off), what this host runs (guarded, default), all (on)",
    is_daily=True,
)

AUTO, DAEMON, PRIVATE, STORE = "auto", "daemon", "private", "store"
NIX = Setting(
    *("nix", SHOWN, "Nix in the box: auto (default), daemon, private, store or off"),
    Choice(DAEMON, AUTO, PRIVATE, STORE, OFF, default=AUTO),
    variable="CLAUDEBOX_NIX",
    tightens=True,
)
FROM_HOME = Setting(
    *("toolchains", SHOWN, "programs in your home that PATH would run (nvm, pyenv, rustup): auto (default) or off"),
    Choice(AUTO, OFF, default=AUTO),
    tightens=True,
)
USERNS = Setting(
    *("userns", SHOWN, "user namespaces in the box, for Chromium or bwrap: off (default) or on"),
    Choice(ON, OFF, default=OFF),
    tightens=True,
)

ALL, SAFE, ASK = "all", "safe", "ask"
LAND = Setting(
    *("land", CHANGE),
    "with --review, what lands at the end: ask (default), all, or safe (not what this host runs)",
    Choice(ALL, SAFE, ASK, default=ASK),
    usage="WHAT",
    is_users=True,
)

BWRAP_PATH, CLAUDE_PATH, PASTA_PATH, NFT_PATH = PATHS = tuple(
    Setting(
        *(name, TEND, f"use this {name}"),
        Program(),
        variable=f"CLAUDEBOX_{name.upper()}",
        is_users=True,
        in_files_only=True,
    )
    for name in ("bwrap", "claude", "pasta", "nft")
)

# What may follow --instances.
COLLECT, DROP_CACHE, DROP_CACHES = "gc", "drop-cache", "drop-caches"  # the cache of this project, or of all

OWN: tuple[Setting[object], ...] = (
    Setting("yes", START, "start without asking", Switch(), short="-y", is_daily=True),
    Setting("quiet", START, "say nothing but questions, errors and what looks secret and is new", Switch(), short="-q"),
    *(PROFILE, MOUNTS, MOUNT_RW, HIDES, ENV, PASS_ENV, AUTH, NETWORK, PUBLISH, HOST_PORTS, CLAUDE_ARGS),
    *(WRITABLE, REVIEW, LAND, PROGRAM),
    Setting("run", START, "run CMD in the box instead of claude", Command(), usage="CMD ARG…", is_daily=True),
    Setting("shell", START, "start a shell in the box instead of claude", Switch()),
    *PATHS,
    Setting(
        *("instances", TEND),
        "list all that is kept, by project; gc: remove what is gone; drop-cache: this project's cache",
        Mode(COLLECT, DROP_CACHE, DROP_CACHES),
        usage="[HOW]",
    ),
    Setting("uninstall", TEND, "remove everything that claudebox keeps, after a question", Mode()),
    Setting(*("explain", LOOK, "say why something is in the box or not"), Mode(), usage="THING", is_daily=True),
    Setting("law", LOOK, "say what any box here may have of PATH, whatever the rules say", Mode(), usage="PATH"),
    Setting("audit", LOOK, "show everything about the box", Mode(), is_daily=True),
    Setting("dry_run", LOOK, "print the command that would start it, to paste", Mode()),
    Setting("report", LOOK, "show again, in full, what the last box of this project left", Mode()),
    Setting("auth_log", LOOK, "show what boxes of this project asked of the broker", Mode()),
    Setting("network_log", LOOK, "show what boxes of this project reached by name, and what was refused", Mode()),
    Setting("suggest", LOOK, "with --network-log: the settings that would allow it", Switch()),
    Setting("check", LOOK, "check this machine, say how to fix it", Mode(), is_daily=True),
    Setting("import_history", TEND, "copy the conversations that claude had in this project outside of boxes", Mode()),
    Setting("setup", TEND, "try what this machine can do of the strict box, and make it your choice", Mode()),
    Setting("prove", TEND, "attack the box that these options build, from inside, and say what held", Mode()),
    Setting("against", TEND, "with --prove: attack what this command starts instead", Operand(), usage="CMD"),
    Setting("json", LOOK, "with what prints data, such as --audit, --check or --instances: as JSON", Switch()),
    Setting("demo", TEND, "watch an agent try to take fake secrets; needs no account", Mode()),
    Setting(
        *("help", LOOK, "show what is used daily; all: every option, variable and key"),
        Mode(ALL),
        short="-h",
        usage="[all]",
    ),
    Setting("version", LOOK, "show the version", Mode()),
)

# Variables of ours that are no settings.
OTHER_VARIABLES = (
    "CLAUDEBOX_TOKEN_URL",  # where the broker renews a login, if it is not the usual place
    "CLAUDEBOX_PROVE_CANARY",  # what --prove looks for in the box
    "CLAUDEBOX_TEST_CACHE",  # of the tests
)
