"""The one table of settings: its rows give the options, the variables, the help text and the validation."""

from __future__ import annotations

from claudebox.record import Record

MODE = "mode"  # does something else instead of starting claude
SWITCH = "switch"
VALUE = "value"  # the last one wins
LIST = "list"  # each value adds to those before
COMMAND = "command"  # takes the rest of the line
OPERAND = "operand"  # says what a mode works on

# How a setting is written in a file.
TEXT = "a string"
TEXTS = "an array of strings"
PORTS = "an array of ports"
TABLE = "a table of strings"
MOUNTS = "an array of tables"


class Setting(Record):
    """One thing that the user can set: by an option, a variable, or a key of a file."""

    name: str
    kind: str
    help: str
    short: str = ""
    metavar: str = ""
    variable: str = ""  # the environment variable with the same meaning
    key: str = ""  # the key of a file with the same meaning
    shape: str = ""
    choices: tuple[str, ...] = ()  # each gives less than the one before it
    tightens: bool = False  # it takes something away, so a project's file gets it without a yes
    is_users: bool = False  # it decides what runs on the host, so a project's file may never set it
    in_files_only: bool = False
    help_in_files: str = ""  # the help for the key, if it differs from that of the option

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")


PASSTHROUGH = "passthrough"
BROKER = "broker"
NONE = "none"
FULL = "full"
INET = "inet"
NAMES = "names"
NO_NETWORK = "none"
TIERS = (FULL, INET, NAMES, NO_NETWORK)
LAST_PORT = 65535
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

SETTINGS = (
    Setting("yes", SWITCH, "start without asking", short="-y"),
    Setting("quiet", SWITCH, "say nothing but questions, errors and what looks secret and is new", short="-q"),
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
        *("auth", VALUE, "Claude's login: passthrough (default), broker (it stays outside) or none"),
        metavar="HOW",
        variable="CLAUDEBOX_AUTH",
        key="auth",
        shape=TEXT,
        choices=(PASSTHROUGH, BROKER, NONE),
    ),
    Setting(
        *("auth_limit", LIST, "the most that a box may ask of the broker: requests, tokens, streams or minutes"),
        metavar="WHAT=N",
        key="auth_limits",
        shape=TEXTS,
        tightens=True,
    ),
    Setting(
        *(
            "network",
            VALUE,
            "what the box reaches: full (default), inet (the internet), names (what --allow lists) or none",
        ),
        metavar="TIER",
        variable="CLAUDEBOX_NETWORK",
        key="network",
        shape=TEXT,
        choices=TIERS,
    ),
    Setting(
        *(
            "allow",
            LIST,
            "with --network names: let the box reach a host; *.HOST for those below it, @NAME for a group",
        ),
        metavar="HOST[:PORT]",
        key="allow",
        shape=TEXTS,
    ),
    Setting(
        *("deny", LIST, "with --network names: keep this host out, although --allow or a group has it"),
        metavar="HOST",
        key="deny",
        shape=TEXTS,
        tightens=True,
    ),
    Setting(
        *("ask", VALUE, "with --network names: ask about a host while the box runs: off (default) or desktop"),
        metavar="HOW",
        key="ask",
        shape=TEXT,
        choices=(DESKTOP, OFF),
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
        *("package", LIST, "put this Nix package on PATH: a name in nixpkgs, or a flake reference"),
        metavar="NAME",
        key="packages",
        shape=TEXTS,
    ),
    Setting("strict", SWITCH, "do not start if a package is not available"),
    Setting(
        *("reveal", LIST, "show PATH in the project as it is, although it looks secret; PATH:KEY for one value of it"),
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
        *("review", VALUE, "keep what the box changes until you land it; list, show, land or discard what is kept"),
        metavar="[HOW]",
        variable="CLAUDEBOX_REVIEW",
        key="review",
        shape=TEXT,
        choices=(OFF, GUARDED, ON),
        help_in_files="what is kept until you land it: nothing (off), what this host runs (guarded, default), all (on)",
    ),
    Setting(
        *("land", VALUE, "with --review, what lands at the end: ask (default), all, or safe (not what this host runs)"),
        metavar="WHAT",
        key="land",
        shape=TEXT,
        choices=(ALL, SAFE, ASK),
        is_users=True,
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
    Setting(
        *(
            "toolchains",
            VALUE,
            "programs in your home that PATH would run (nvm, pyenv, rustup): auto (default) or off",
        ),
        metavar="HOW",
        key="toolchains",
        shape=TEXT,
        choices=(AUTO, OFF),
    ),
    Setting(
        *("cache", VALUE, "what package managers download: kept for the project (default), over the host's, or none"),
        metavar="WHERE",
        key="cache",
        shape=TEXT,
        choices=(HOST, PROJECT, NONE),
        help_in_files="where what package managers download is kept: host means over this host's own, read-only",
    ),
    Setting(
        *(
            "tmp_size",
            VALUE,
            "the most that /tmp may hold, and the home as much again (default: a quarter of the memory)",
        ),
        metavar="SIZE",
        key="tmp_size",
        shape=TEXT,
    ),
    Setting(
        *("program", VALUE, "start another agent than claude: codex, gemini, opencode or aider"),
        metavar="AGENT",
        variable="CLAUDEBOX_PROGRAM",
        key="program",
        shape=TEXT,
        choices=PROGRAMS,
        is_users=True,
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
    Setting(
        *(
            "instances",
            MODE,
            "list all that is kept, by project; gc: remove what is gone; drop-cache: this project's cache",
        ),
        metavar="[HOW]",
    ),
    Setting("uninstall", MODE, "remove everything that claudebox keeps, after a question"),
    Setting("explain", MODE, "say why something is in the box or not, start nothing", metavar="THING"),
    Setting("audit", MODE, "show everything about the box, start nothing"),
    Setting("dry_run", MODE, "print the command to paste, start nothing"),
    Setting("auth_log", MODE, "show what boxes of this project asked of the broker"),
    Setting("network_log", MODE, "show what boxes of this project reached by name, and what was refused"),
    Setting("suggest", SWITCH, "with --network-log: the settings that would allow it"),
    Setting("check", MODE, "check this machine, say how to fix it"),
    Setting("setup", MODE, "try what this machine can do of the strict box, and make it your choice"),
    Setting("prove", MODE, "attack the box that these options build, from inside, and say what held"),
    Setting("against", OPERAND, "with --prove: attack what this command starts instead", metavar="CMD"),
    Setting("json", SWITCH, "with what prints data, such as --audit, --check or --instances: as JSON"),
    Setting("demo", MODE, "watch an agent try to take fake secrets; needs no account"),
    Setting("completion", MODE, "print what makes a shell complete options", metavar="bash|zsh|fish"),
    Setting("man", MODE, "print the manual page"),
    Setting(
        "schema", MODE, "print the JSON Schema of your files with settings, or of a project's", metavar="[project]"
    ),
    Setting("help", MODE, "show this help", short="-h"),
    Setting("version", MODE, "show the versions of claudebox and its programs"),
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
