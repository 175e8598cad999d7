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
from claudebox.state.claude_settings import HELPERS, KEY_HELPER, RUNNING, SANDBOX, SCRIPT_ENDINGS, commands_in

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


def users_servers(state: dict[str, Any], project: str) -> dict[str, Any]:
    """The user's MCP servers: those of all projects, and those that `claude mcp add` noted for this one."""
    projects = state.get("projects")
    own = projects.get(project) if isinstance(projects, dict) else None
    blocks = (state.get("mcpServers"), own.get("mcpServers") if isinstance(own, dict) else None)
    return {name: server for block in blocks if isinstance(block, dict) for name, server in block.items()}


def named_files(servers: dict[str, Any], passed: frozenset[str], home: str) -> tuple[str, ...]:
    """The paths in the commands of the servers that could enter."""
    usable = [_as_passed(one, passed) for one in servers.values() if not _server_trouble(one, passed, lambda _: True)]
    words = (word.replace("${HOME}", "~", 1) for one in usable for word in _command(one))
    paths = dict.fromkeys(normalize(expand_home(word, home)) for word in words if _is_path(word))
    return tuple(path for path in paths if path.isprintable())


def admit_servers(servers: dict[str, Any], passed: frozenset[str], can_run: Callable[[str], bool]) -> Admitted:
    """The user's MCP servers whose program is in the box, and which need no secret but variables that are passed."""
    troubles = {name: _server_trouble(server, passed, can_run) for name, server in servers.items()}
    kept = {name: _as_passed(server, passed) for name, server in servers.items() if not troubles[name]}
    return Admitted(kept, tuple(f"MCP server {name}: {why}" for name, why in troubles.items() if why))


def _server_trouble(server: Any, passed: frozenset[str], can_run: Callable[[str], bool]) -> str:
    if not isinstance(server, dict):
        return "it is not described as a server"
    entering = _as_passed(server, passed)
    filled = _filled(entering, passed)  # what is left of a reference is one to a variable that the box lacks
    variables, headers = (one if isinstance(one := filled.get(key), dict) else {} for key in ("env", "headers"))
    secret = [str(name) for name, value in variables.items() if _holds_secret(value, str(name))]
    lacking = [one for name in secret for one in (_references(str(variables[name])) or [name])]
    lacking += [one for text in headers.values() for one in _references(str(text))]
    texts = (*_command(filled), str(filled.get("url", "")))
    lacking += [one for text in texts for one in _references(text) if looks_secret(one, one)]
    if lacking:
        return f"it needs a secret; export it, then: --env {' --env '.join(dict.fromkeys(lacking))}"
    # Of a header, nobody can say whether it is a secret.
    unnamed = [text for name, text in headers.items() if text == entering["headers"][name]]
    if unnamed or entering.get("headersHelper") or _holds_secret({**filled, "headers": [*headers.values()]}):
        return "it needs a secret; write ${NAME} in its place, export it, then: --env NAME"
    scripts = [word for word in _command(entering)[1:] if word.startswith("/") and word.endswith(SCRIPT_ENDINGS)]
    if "url" in entering or all(map(can_run, (str(entering.get("command", "")), *scripts))):
        return ""
    return "its program is not in the box; to show it: --mount-ro PATH"


def _command(server: dict[str, Any]) -> list[str]:
    arguments = server.get("args")
    return [str(server.get("command", "")), *(map(str, arguments) if isinstance(arguments, list) else ())]


def _as_passed(server: dict[str, Any], passed: frozenset[str]) -> dict[str, Any]:
    """The server without values of its own for variables that the box has: a server gets those of Claude."""
    variables = server.get("env")
    if not isinstance(variables, dict) or passed.isdisjoint(variables):
        return server
    return {**server, "env": {name: value for name, value in variables.items() if name not in passed}}


def _references(text: str) -> list[str]:
    """The variables that Claude puts into a text, as in `Bearer ${NAME}`."""
    return [part.partition("}")[0].partition(":-")[0] for part in text.split("${")[1:]]


def _filled(value: Any, passed: frozenset[str]) -> Any:
    """The value without references to variables that are passed."""
    if isinstance(value, dict):
        return {name: _filled(inner, passed) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, passed) for inner in value]
    if isinstance(value, str):
        for name in passed.intersection(_references(value)):
            value = value.replace(f"${{{name}}}", "")
    return value


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
        return self._has_program(words[0]) and all(self.is_there(word) for word in words[1:] if _is_path(word))

    def _has_program(self, word: str) -> bool:
        if word.startswith(PROJECT_VARIABLES) or word in SHELL_WORDS:
            return True
        if _is_path(word):
            return self.is_there(word)
        return any(
            self.tree.is_executable(f"{place}/{word}") and self.is_there(f"{place}/{word}") for place in self.path
        )

    def is_there(self, word: str) -> bool:
        path = normalize(expand_home(word.replace("$HOME", "~", 1), self.home))
        decisive = find_holder(path, self.mounts)
        if decisive is None or decisive.kind not in FROM_HOST:
            return path.startswith("/dev/")
        return self.tree.exists(move(path, decisive.path, decisive.source))


def _is_path(word: str) -> bool:
    return word.startswith(("/", "~/", "$HOME/"))
