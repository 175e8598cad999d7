"""The user's Claude settings, as far as the box depends on them: what leads requests elsewhere, and which files run.

Claude puts the `env` block of its settings above the variables of the host. So who gets a key is known only to whoever
reads both.
"""

from __future__ import annotations

from claudebox.errors import Problem, suppress
from claudebox.host.tree import Tree
from claudebox.host.variables import BASE_URL, JUDGED, LEADING, ROUTE_OF
from claudebox.paths import expand_home, normalize
from claudebox.record import Record
from claudebox.state.reach import TrustedSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from claudebox.facts import ClaudeHome

PROJECT_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")
LARGEST_FILE = 16 << 20
# Of the user's own configuration every box has these, empty if need be: from inside, a mount cannot be replaced by a
# symlink, into which a later launch would mount.
SHOWN_DIRECTORIES = ("agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills")
SHOWN_FILES = ("CLAUDE.md", "keybindings.json")
SCRIPT_ENDINGS = (".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl")
KEY_HELPER = "apiKeyHelper"
# Settings that name programs which Claude runs, besides hooks: those that hand out credentials, those that its own
# sandbox uses, and others.
HELPERS = (KEY_HELPER, *"awsAuthRefresh awsCredentialExport gcpAuthRefresh otelHeadersHelper proxyAuthHelper".split())
SANDBOX, SANDBOX_PROGRAMS = "sandbox", ("bwrapPath", "ripgrep", "socatPath")
RUNNING = tuple("statusLine subagentStatusLine fileSuggestion processWrapper policyHelper policyHelpers".split())


class UsersSettings(Record):
    """What is known about the user's settings.json."""

    path: str = ""  # "" if there is none that may be used
    leading: tuple[tuple[str, str], ...] = ()  # variables that lead requests somewhere, and their values
    holds: tuple[str, ...] = ()  # names of credentials in it
    runs: tuple[str, ...] = ()  # files that its commands name
    foreign: tuple[tuple[str, str], ...] = ()  # what leads somewhere in a file that an agent can have written

    def claudes_variables(self, environ: dict[str, str]) -> dict[str, str]:
        """The variables that lead or hold something, as Claude on the host has them."""
        names = JUDGED | LEADING | ROUTE_OF.keys()
        known = {name: value for name, value in environ.items() if name in names}
        return {name: value for name, value in (known | dict(self.leading)).items() if value}


def look(trusted: TrustedSource, home: ClaudeHome) -> UsersSettings:
    """Look at the user's settings."""
    tree, named = trusted.tree, f"{home.users}/settings.json"
    path = trusted.find(named, is_dir=False)
    if path is None:
        return UsersSettings(foreign=_foreign(tree, named))
    settings = load(tree, path)
    variables = read_variables(settings)
    return UsersSettings(
        path=path,
        leading=_leading(variables),
        holds=_credentials(settings, variables),
        runs=tuple(dict.fromkeys(_named_files(settings, home.all_projects.home))),
    )


def _leading(variables: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in variables.items() if name in LEADING)


def printable(lines: tuple[str, ...]) -> list[str]:
    """Others have chosen these names and commands: take out what could forge a line or command the terminal."""
    return ["".join(filter(str.isprintable, line)) for line in lines]


def load(tree: Tree, path: str) -> dict[str, Any]:
    """The settings. Raises a Problem if they cannot be understood."""
    content = tree.read_plain(path, limit=LARGEST_FILE) if path else None
    return parse_object(content, path) if content is not None else {}


def parse_object(content: bytes, path: str) -> dict[str, Any]:
    try:
        value = _parse(content)
    except (ValueError, RecursionError) as error:
        raise Problem(f"{path} is not valid JSON: {error}", "repair it, or move it away") from None
    if not isinstance(value, dict):
        raise Problem(f"{path} is not a JSON object", "repair it, or move it away")
    return value


class _Plain:
    """How `json` parses unless it is told otherwise."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_int = int
    parse_float = parse_constant = float


def _parse(content: bytes) -> object:
    """Like `json.loads`. To import that takes a tenth of a start, so only what is no plain JSON is left to it."""
    with suppress(ImportError, ValueError, StopIteration):
        from _json import make_scanner

        text = content.decode().strip(" \t\r\n")
        value, end = make_scanner(_Plain)(text, 0)  # type: ignore[arg-type]
        if end == len(text):
            return value
    import json

    return json.loads(content)


def _foreign(tree: Tree, path: str) -> tuple[tuple[str, str], ...]:
    """What leads somewhere for Claude on the host, although no box may have it."""
    content = tree.read(path, limit=LARGEST_FILE)
    try:
        variables = read_variables(parse_object(content, path)) if content else {}
    except Problem:
        return ()  # Claude cannot read it either
    return _leading(variables)


def read_variables(settings: dict[str, Any]) -> dict[str, str]:
    variables = settings.get("env")
    return {str(name): str(value) for name, value in variables.items()} if isinstance(variables, dict) else {}


def _credentials(settings: dict[str, Any], variables: dict[str, str]) -> tuple[str, ...]:
    """The names of what Claude on the host sends to a gateway, without the values."""
    names = [name for name, route in ROUTE_OF.items() if variables.get(name) and route == BASE_URL]
    return (*names, *([KEY_HELPER] if settings.get(KEY_HELPER) else []))


def programs(settings: dict[str, Any]) -> list[str]:
    """The settings that name programs, besides hooks and the status line, which everybody knows."""
    own = settings.get(SANDBOX)
    sandboxes = [f"{SANDBOX}.{name}" for name in SANDBOX_PROGRAMS if isinstance(own, dict) and name in own]
    return [*(name for name in (*HELPERS, *RUNNING[1:]) if name in settings), *sandboxes]


def _named_files(settings: dict[str, Any], home: str) -> list[str]:
    """Every path in the commands of settings and of hooks."""
    words = [word.strip("\"'") for command in commands(settings) for word in command.split()]
    paths = [word.replace("$HOME", "~", 1).replace("${HOME}", "~", 1) for word in words]
    return [normalize(expand_home(path, home)) for path in paths if path.startswith(("/", "~/"))]


def commands(settings: dict[str, Any]) -> list[str]:
    """The commands of settings and of hooks."""
    hooks = settings.get("hooks")
    events = [event for event in hooks.values() if isinstance(event, list)] if isinstance(hooks, dict) else []
    matchers = [matcher for event in events for matcher in event if isinstance(matcher, dict)]
    lists = [matcher.get("hooks") for matcher in matchers]
    entries = [entry for one in lists if isinstance(one, list) for entry in one]
    hooked = [str(entry["command"]) for entry in entries if isinstance(entry, dict) and entry.get("command")]
    return [*(command for name in RUNNING for command in commands_in(settings.get(name, {}))), *hooked]


def commands_in(value: Any) -> list[str]:
    """The commands in such a setting: `COMMAND`, `[WORD, …]`, `{command: COMMAND}`, or `{path: PROGRAM}` in a table."""
    if isinstance(value, list):
        return [" ".join(map(str, value))]
    if not isinstance(value, dict):
        return [str(value)]
    named = [str(value[name]) for name in ("command", "path") if name in value]
    return named or [command for inner in value.values() if isinstance(inner, dict) for command in commands_in(inner)]
