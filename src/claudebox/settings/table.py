"""The one table of settings: its rows give the options, the variables, the help text and the validation."""

from __future__ import annotations

from claudebox.model import RO, RW
from claudebox.record import Record
from claudebox.settings.types import (
    A_SECOND,
    COMMANDS,
    FILES,
    HOSTS,
    PROFILES,
    Argument,
    Choice,
    Limit,
    Mounted,
    Path,
    PortNumber,
    Program,
    ProjectPath,
    Quantity,
    Text,
    Variable,
    VariableName,
    Variables,
)

MODE = "mode"  # does something else instead of starting claude
SWITCH = "switch"
VALUE = "value"  # the last one wins
LIST = "list"  # each value adds to those before
COMMAND = "command"  # takes the rest of the line
OPERAND = "operand"  # says what a mode works on

# What settings are about. Help shows them in this order.
START, SHOWN, NETWORK, CHANGES, LIMITS, LOOK, TEND = GROUPS = (
    "What starts",
    "What the box has",
    "Network and login",
    "What the agent may change",
    "How much it may use",
    "To look, and start nothing",
    "To set up, to try and to clean up",
)


class Setting(Record):
    """One thing that the user can set: by an option, a variable, or a key of a file."""

    name: str
    kind: str
    group: str
    help: str  # the short help says what is before the first semicolon
    short: str = ""
    type: Text = Text()
    usage: str = ""  # how the help shows its value, if not as the type does
    variable: str = ""  # the environment variable with the same meaning
    called: str = ""  # the key of a file with the same meaning, if it is not the name
    field: str = ""  # of Settings, if it is not called like the key
    tightens: bool = False  # it takes something away, so a project's file gets it without a yes
    is_users: bool = False  # it decides what runs on the host, so a project's file may never set it
    in_files_only: bool = False  # no option sets it; a variable may
    help_in_files: str = ""  # the help for the key, if it differs from that of the option
    is_daily: bool = False  # the short help has it

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def key(self) -> str:
        """What a file calls it; "" if no file says it: what is only written into another's field has no key."""
        return self.called or ("" if self.field or self.kind not in (VALUE, LIST) else self.name)

    @property
    def metavar(self) -> str:
        return self.usage or self.type.metavar

    @property
    def choices(self) -> tuple[str, ...]:
        return self.type.choices

    @property
    def shape(self) -> str:
        """How a file says it."""
        return self.type.many if self.kind == LIST else self.type.one


PASSTHROUGH = "passthrough"
BROKER = "broker"
NONE = "none"
FULL = "full"
INET = "inet"
ALLOWLIST = "allowlist"
NO_NETWORK = "none"
TIERS = (FULL, INET, ALLOWLIST, NO_NETWORK)
AUTO = "auto"
DAEMON = "daemon"
PRIVATE = "private"
STORE = "store"
OFF = "off"
DESKTOP = "desktop"
ON = "on"
HOST, PROJECT = "host", "project"
ASK, ALL, SAFE = "ask", "all", "safe"
GUARDED = "guarded"
CLAUDE = "claude"
PROGRAMS = (CLAUDE, "codex", "gemini", "opencode", "aider")

SIZE = Quantity("4G", 16 << 20, is_size=True)
NUMBER = Quantity("500", 10, is_whole=True)
PROCESSORS = Quantity("1.5", A_SECOND // 100, unit=A_SECOND)

SETTINGS = (
    Setting("yes", SWITCH, START, "start without asking", short="-y", is_daily=True),
    Setting("quiet", SWITCH, START, "say nothing but questions, errors and what looks secret and is new", short="-q"),
    Setting(
        *("profile", LIST, SHOWN, "use the settings of a profile; without a name: list them"),
        type=Text(PROFILES),
        usage="NAME",
        variable="CLAUDEBOX_PROFILE",
        called="profiles",
        help_in_files="profiles to build on",
        is_daily=True,
    ),
    Setting(
        *("mount_ro", LIST, SHOWN, "show PATH in the box, read-only"),
        type=Mounted(RO),
        called="mounts",
        help_in_files="files and directories to show in the box",
        is_daily=True,
    ),
    Setting("mount_rw", LIST, SHOWN, "show PATH in the box, writable", type=Mounted(RW), field="mounts", is_daily=True),
    Setting("hide", LIST, SHOWN, "hide PATH, whatever shows it", type=Path(), tightens=True),
    Setting(
        *("env", LIST, SHOWN, "pass a variable, or set it"),
        type=Variables(),
        help_in_files="variables with a value that is the same each time, as it is written; no secrets",
        is_daily=True,
    ),
    Setting(
        *("pass_env", LIST, SHOWN, "variables of this host to pass, by name"),
        type=Variable(),
        variable="CLAUDEBOX_EXTRA_ENV",
        called="extra_env_passthrough",
        field="env",
        in_files_only=True,
    ),
    Setting("drop_env", LIST, SHOWN, "keep a variable out", type=VariableName(), tightens=True),
    Setting(
        *("auth", VALUE, NETWORK, "Claude's login: passthrough (default), broker or none; the broker keeps it outside"),
        type=Choice(PASSTHROUGH, BROKER, NONE),
        variable="CLAUDEBOX_AUTH",
        is_daily=True,
    ),
    Setting(
        *("auth_limit", LIST, NETWORK),
        "the most that a box may ask of the broker: requests, tokens, streams or minutes",
        type=Limit("requests", "tokens", "streams", "minutes"),
        called="auth_limits",
        tightens=True,
    ),
    Setting(
        *("network", VALUE, NETWORK),
        "the network: full (default), inet, allowlist or none; inet is the internet, allowlist what --allow lists",
        type=Choice(*TIERS),
        usage="TIER",
        variable="CLAUDEBOX_NETWORK",
        is_daily=True,
    ),
    Setting(
        *("allow", LIST, NETWORK),
        "reach this host, and only what is listed; *.HOST: those below it; @NAME: a group; implies --network allowlist",
        type=Text(HOSTS),
        usage="HOST[:PORT]",
        help_in_files="with network allowlist: a host to reach; *.HOST: those below it; @NAME: a group",
        is_daily=True,
    ),
    Setting(
        *(
            "ask",
            VALUE,
            NETWORK,
            "with --network allowlist: ask about a host while the box runs: off (default) or desktop",
        ),
        type=Choice(DESKTOP, OFF),
    ),
    Setting(
        *("publish", LIST, NETWORK, "open a port of the box on this host's localhost; of two, the first is the host's"),
        type=PortNumber(is_pair=True),
    ),
    Setting(
        *("host_port", LIST, NETWORK, "let the box reach PORT of this host's localhost"),
        type=PortNumber(),
        called="host_ports",
    ),
    Setting("path", LIST, SHOWN, "directories that come first in PATH", type=Path(), in_files_only=True),
    Setting("claude_args", LIST, START, "arguments for claude", type=Argument(), in_files_only=True),
    Setting(
        *("nix", VALUE, SHOWN, "Nix in the box: auto (default), daemon, private, store or off"),
        type=Choice(DAEMON, AUTO, PRIVATE, STORE, OFF),
        variable="CLAUDEBOX_NIX",
    ),
    Setting(
        *("package", LIST, SHOWN, "put this Nix package on PATH: a name in nixpkgs, or a flake reference"),
        usage="NAME",
        called="packages",
    ),
    Setting(
        *("reveal", LIST, SHOWN),
        "show PATH in the project as it is, although it looks secret; PATH:KEY for one value of it",
        type=ProjectPath(),
    ),
    Setting(
        *("writable", LIST, CHANGES, "let the agent change PATH in the project, although this host may run it later"),
        type=ProjectPath(),
    ),
    Setting(
        *("review", VALUE, CHANGES),
        "keep what the box changes until you land it; list, show, land or discard what is kept",
        type=Choice(OFF, GUARDED, ON),
        usage="[HOW]",
        variable="CLAUDEBOX_REVIEW",
        help_in_files="what is kept until you land it: nothing (off), what this host runs (guarded, default), all (on)",
        is_daily=True,
    ),
    Setting(
        *("land", VALUE, CHANGES),
        "with --review, what lands at the end: ask (default), all, or safe (not what this host runs)",
        type=Choice(ALL, SAFE, ASK),
        usage="WHAT",
        is_users=True,
    ),
    Setting(
        *("userns", VALUE, SHOWN, "user namespaces in the box, for Chromium or bwrap: off (default) or on"),
        type=Choice(ON, OFF),
    ),
    *(
        Setting(name, VALUE, LIMITS, f"the most {what}; needs systemd", type=how, tightens=True)
        for name, how, what in (
            ("memory", SIZE, "memory that the box may use, such as 4G"),
            ("pids", NUMBER, "processes and threads that the box may have"),
            ("cpu", PROCESSORS, "processors that the box may use, such as 1.5"),
        )
    ),
    Setting(
        *("toolchains", VALUE, SHOWN),
        "programs in your home that PATH would run (nvm, pyenv, rustup): auto (default) or off",
        type=Choice(AUTO, OFF),
    ),
    Setting(
        *("cache", VALUE, SHOWN),
        "what package managers download: kept for the project (default), over the host's, or none",
        type=Choice(HOST, PROJECT, NONE),
        usage="WHERE",
        help_in_files="where what package managers download is kept: host means over this host's own, read-only",
    ),
    Setting(
        *("tmp_size", VALUE, LIMITS),
        "the most that /tmp may hold, and the home as much again (default: a quarter of the memory)",
        type=SIZE,
    ),
    Setting(
        *("program", VALUE, START, "start another agent than claude: codex, gemini, opencode or aider"),
        type=Choice(*PROGRAMS),
        usage="AGENT",
        variable="CLAUDEBOX_PROGRAM",
        is_users=True,
    ),
    Setting("run", COMMAND, START, "run CMD in the box instead of claude", usage="CMD ARG…", is_daily=True),
    Setting("shell", SWITCH, START, "start a shell in the box instead of claude"),
    *(
        Setting(
            *(name, VALUE, TEND, f"use this {name}"),
            type=Program(),
            variable=f"CLAUDEBOX_{name.upper()}",
            is_users=True,
            in_files_only=True,
        )
        for name in ("bwrap", "claude", "pasta", "nft")
    ),
    Setting(
        *("instances", MODE, TEND),
        "list all that is kept, by project; gc: remove what is gone; drop-cache: this project's cache",
        usage="[HOW]",
    ),
    Setting("uninstall", MODE, TEND, "remove everything that claudebox keeps, after a question"),
    Setting(
        *("explain", MODE, LOOK),
        "say why something is in the box or not",
        type=Text(FILES),
        usage="THING",
        is_daily=True,
    ),
    Setting("audit", MODE, LOOK, "show everything about the box", is_daily=True),
    Setting("dry_run", MODE, LOOK, "print the command that would start it, to paste"),
    Setting("report", MODE, LOOK, "show again, in full, what the last box of this project left"),
    Setting("auth_log", MODE, LOOK, "show what boxes of this project asked of the broker"),
    Setting("network_log", MODE, LOOK, "show what boxes of this project reached by name, and what was refused"),
    Setting("suggest", SWITCH, LOOK, "with --network-log: the settings that would allow it"),
    Setting("check", MODE, LOOK, "check this machine, say how to fix it", is_daily=True),
    Setting("setup", MODE, TEND, "try what this machine can do of the strict box, and make it your choice"),
    Setting("prove", MODE, TEND, "attack the box that these options build, from inside, and say what held"),
    Setting(
        *("against", OPERAND, TEND, "with --prove: attack what this command starts instead"),
        type=Text(COMMANDS),
        usage="CMD",
    ),
    Setting("json", SWITCH, LOOK, "with what prints data, such as --audit, --check or --instances: as JSON"),
    Setting("demo", MODE, TEND, "watch an agent try to take fake secrets; needs no account"),
    Setting(
        "help", MODE, LOOK, "show what is used daily; all: every option, variable and key", short="-h", usage="[all]"
    ),
    Setting("version", MODE, LOOK, "show the versions of claudebox and its programs"),
)

# Variables of ours that are no settings.
OTHER_VARIABLES = (
    "CLAUDEBOX_TOKEN_URL",  # where the broker renews a login, if it is not the usual place
    "CLAUDEBOX_PROVE_CANARY",  # what --prove looks for in the box
    *("CLAUDEBOX_TEST_CACHE", "CLAUDEBOX_TEST_NEWEST"),  # of the tests
)

BY_NAME = {setting.name: setting for setting in SETTINGS}
BY_KEY = {setting.key: setting for setting in SETTINGS if setting.key}
BY_OPTION = {setting.option: setting for setting in SETTINGS if not setting.in_files_only} | {
    setting.short: setting for setting in SETTINGS if setting.short
}
