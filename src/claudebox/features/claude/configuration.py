"""Chooses which of the user's settings and MCP servers enter the box: what would fail or leak there is left out, and
reported."""

from __future__ import annotations

from itertools import pairwise

from claudebox.host.secrets import looks_secret, secret_value
from claudebox.host.tree import Tree
from claudebox.host.variables import LEADING, ROUTE_OF, is_harmless
from claudebox.model import FROM_HOST, Mount
from claudebox.paths import expand_home, move, normalize
from claudebox.record import Record
from claudebox.sandbox.mounts import find_holder
from claudebox.state.claude_settings import HELPERS, KEY_HELPER, RUNNING, SANDBOX, commands_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Settings that do not enter, and why.
CREDENTIALS = "it hands out credentials, which stay outside"
OWN_SANDBOX = "Claude's own sandbox cannot start in the box, which takes its place"
KEPT_OUT = {
    **dict.fromkeys(HELPERS, CREDENTIALS),
    KEY_HELPER: f"{CREDENTIALS}; for a key: --env ANTHROPIC_API_KEY, or --auth broker",
    SANDBOX: OWN_SANDBOX,
}
# Variables of the `env` block that do not enter, and why, where "not known" says too little.
SCRUB = "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"
# What would let other sessions of the account into the box. What the user's own settings say counts.
UNLESS_SAID = {"crossSessionInbound": "refuse", "disableRemoteControl": True}
ALWAYS = {"skipDangerousModePermissionPrompt": True}  # the box is the permission layer


class Admitted(Record):
    """What enters the box, and a line for each thing that does not."""

    value: dict[str, Any]
    left_out: tuple[str, ...]


def admit_settings(settings: dict[str, Any], can_run: Callable[[str], bool]) -> Admitted:
    """The user's settings as the box gets them. `can_run` says whether the program of a command line is there."""
    left_out = [f"setting {name}: {reason}" for name, reason in KEPT_OUT.items() if name in settings]
    kept = {name: value for name, value in settings.items() if name not in KEPT_OUT}
    kept["env"], missing_variables = _split_variables(kept.get("env"))
    kept["hooks"], missing_hooks = _split_hooks(kept.get("hooks"), can_run)
    left_out += [*missing_variables, *missing_hooks]
    for name in [name for name in RUNNING if kept.get(name) and not _can_run_all(commands_in(kept[name]), can_run)]:
        del kept[name]
        left_out.append(f"setting {name}: its program is not in the box; to show it: --mount-ro PATH")
    secrets = [name for name, value in kept.items() if _holds_secret(value)]
    left_out += [f"setting {name}: it looks secret" for name in secrets]
    settled = {**UNLESS_SAID, **kept, **ALWAYS}
    settled = {name: value for name, value in settled.items() if name not in secrets and value not in ({}, None)}
    return Admitted(settled, tuple(left_out))


def _can_run_all(commands: list[str], can_run: Callable[[str], bool]) -> bool:
    return bool(commands) and all(map(can_run, commands))


def _split_variables(variables: Any) -> tuple[dict[str, Any], list[str]]:
    """The variables that are known to be configuration. What leads somewhere, the box gets as a variable of its own."""
    if not isinstance(variables, dict):
        return {}, []
    kept = {name: value for name, value in variables.items() if not _trouble(str(name), str(value))}
    others = sorted(str(name) for name in variables if name not in kept and name not in LEADING)
    return kept, [f"setting env {name}: {_trouble(name, str(variables.get(name)))}" for name in others]


def _trouble(name: str, value: str) -> str:
    """Why a variable of the settings does not enter; "" if it does."""
    if name == SCRUB:
        return OWN_SANDBOX
    if name in ROUTE_OF or looks_secret(name, value):
        return f"it looks secret; if the box needs it, export it, then: --env {name}"
    return "" if is_harmless(name, value) else "it is not known to be configuration; to pass it: --env NAME=VALUE"


def _split_hooks(hooks: Any, can_run: Callable[[str], bool]) -> tuple[dict[str, Any], list[str]]:
    """Each hook whose program is in the box and whose command holds no secret, and a line for each other."""
    kept: dict[str, Any] = {}
    left_out: list[str] = []
    for event, matchers in hooks.items() if isinstance(hooks, dict) else ():
        for matcher in matchers if isinstance(matchers, list) else ():
            entries = matcher.get("hooks") if isinstance(matcher, dict) else None
            usable = []
            for entry in entries if isinstance(entries, list) else ():
                command = str(entry.get("command", "")) if isinstance(entry, dict) else ""
                is_secret = _holds_secret(entry)
                if command and can_run(command) and not is_secret:
                    usable.append(entry)
                else:
                    shown = "a command with a secret" if is_secret else command or "of an unknown kind"
                    left_out.append(f"hook {event}: {shown} is not in the box")
            if usable:
                kept.setdefault(event, []).append({**matcher, "hooks": usable})
    return kept, left_out


def admit_servers(servers: Any, can_run: Callable[[str], bool]) -> Admitted:
    """The user's MCP servers whose program is in the box and that need no token."""
    kept: dict[str, Any] = {}
    left_out: list[str] = []
    for name, server in servers.items() if isinstance(servers, dict) else ():
        reason = _server_trouble(server, can_run)
        if reason:
            left_out.append(f"MCP server {name}: {reason}")
        else:
            kept[name] = server
    return Admitted(kept, tuple(left_out))


def _server_trouble(server: Any, can_run: Callable[[str], bool]) -> str:
    if not isinstance(server, dict):
        return "it is not described as a server"
    if server.get("headers") or server.get("headersHelper") or _holds_secret(server):
        return "it needs a secret"
    if "url" in server:
        return ""
    return "" if can_run(str(server.get("command", ""))) else "its program is not in the box"


def _holds_secret(value: Any, name: str = "") -> bool:
    """Whether a text anywhere inside looks secret, by itself or by its name."""
    if isinstance(value, dict):
        return any(secret_value(str(key)) or _holds_secret(inner, str(key)) for key, inner in value.items())
    if isinstance(value, list):
        words = [str(word) for word in value]
        named = [(option.lstrip("-"), word) for option, word in pairwise(words) if option.startswith("-")]
        return any(map(_holds_secret, value)) or any(looks_secret(*pair) for pair in named)
    if not isinstance(value, str):
        return False
    # Options, assignments in a command, and the query of an address have the form `name=value`.
    parts = [word.partition("=") for word in value.replace("?", " ").replace("&", " ").split()]
    pairs = [(name, value), *((option.lstrip("-"), said) for option, _, said in parts if said)]
    return any(looks_secret(*pair) for pair in pairs)


SHELL_WORDS = frozenset("&& || ; | ( ) { } if then for while echo cd true test [ exit".split())
PROJECT_VARIABLES = ("$CLAUDE_PROJECT_DIR", "${CLAUDE_PROJECT_DIR}", "$PWD", "${CLAUDE_PLUGIN_ROOT}")


class Runnable(Record):
    """Answers whether a command can run in the box, by what is mounted and where programs are looked for."""

    tree: Tree
    mounts: tuple[Mount, ...]
    path: tuple[str, ...]
    home: str

    def can_run(self, command: str) -> bool:
        """Judge by the first word, and by every absolute path after it: `python3 ~/bin/hook.py` needs both."""
        words = [word.strip("\"'") for word in command.split()]
        if not words:
            return False
        return self._has_program(words[0]) and all(self._is_there(word) for word in words[1:] if _is_path(word))

    def _has_program(self, word: str) -> bool:
        if word.startswith(PROJECT_VARIABLES) or word in SHELL_WORDS:
            return True
        if _is_path(word):
            return self._is_there(word)
        return any(
            self.tree.is_executable(f"{place}/{word}") and self._is_there(f"{place}/{word}") for place in self.path
        )

    def _is_there(self, word: str) -> bool:
        path = normalize(expand_home(word.replace("$HOME", "~", 1), self.home))
        decisive = find_holder(path, self.mounts)
        if decisive is None or decisive.kind not in FROM_HOST:
            return path.startswith("/dev/")
        return self.tree.exists(move(path, decisive.path, decisive.source))


def _is_path(word: str) -> bool:
    return word.startswith(("/", "~/", "$HOME/"))
