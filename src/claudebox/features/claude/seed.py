"""Decides which files claudebox writes into Claude's home, so that Claude starts without a question."""

from __future__ import annotations

from claudebox.errors import Problem, quote
from claudebox.facts import ClaudeHome, Draft, Facts
from claudebox.features.claude.decide import home_preparations
from claudebox.host.tree import Tree
from claudebox.host.variables import API_KEY
from claudebox.model import Finding, Plan, Preparation
from claudebox.settings.table import BROKER
from claudebox.state import check_state, memory
from claudebox.state.claude_settings import FORM, LARGEST_FILE, load, parse_object, printable, to_remember
from claudebox.state.memory import Form
from claudebox.state.reach import TrustedSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from claudebox.features.claude.configuration import Admitted

COPIED = Form("A file of yours as it was when boxes got a copy of it, and what was left out.")
ANSWERED = Form("What Claude need not ask: the project that it trusts, and the end of the API key that it may use.")
KEY_TAIL = 20  # of an API key, by which Claude remembers that it may be used


def complete(facts: Facts, draft: Draft, plan: Plan) -> Plan:
    """Prepare Claude's home. This needs the whole Plan: which of the user's hooks can run follows from all mounts."""
    claude, person = facts.claude, facts.host.person
    check_state(facts.tree, claude.all_projects, claude.instance, person.uid)

    def can_run(command: str) -> bool:
        from claudebox.features.claude.configuration import Runnable

        return Runnable(facts.tree, plan.mounts, draft.search_path, person.home).can_run(command)

    # Claude remembers the end of a key: with a broker not even that enters.
    key = next((one.value for one in plan.environment if one.name == API_KEY), "")
    key = "" if facts.settings.auth.text == BROKER else key
    preparations, left_out = seed_state(facts, key, can_run)
    notes = [Finding(Finding.NOTE, "left out", line) for line in left_out]
    return plan.replace(
        preparations=(*plan.preparations, *home_preparations(claude, plan.mounts), *preparations),
        findings=(*plan.findings, *notes, *facts.trusted.findings()),
    )


def seed_state(facts: Facts, api_key: str, can_run: Callable[[str], bool]) -> tuple[list[Preparation], tuple[str, ...]]:
    """Copy what changed since the last launch, and answer Claude's first questions. Returns what was left out, too."""
    tree, users, home, project, uid = facts.tree, facts.users, facts.claude, facts.project, facts.host.person.uid
    state = _Source(tree, _users_state(facts.trusted, home), home.instance.servers_note, uid)
    answers = (f"project {memory.escape(project)}", f"key {memory.escape(api_key[-KEY_TAIL:])}")
    are_answered = memory.recall(tree, home.instance.answered, ANSWERED, uid).lines == answers
    preparations: list[Preparation] = []
    settings_left_out = users.left_out
    if users.is_new or tree.read_plain(f"{home.state}/settings.json", limit=1) is None:
        from claudebox.features.claude.configuration import admit_settings

        admitted = _not_too_deep(lambda: admit_settings(load(tree, users.path), can_run), users.path)
        settings_left_out = admitted.left_out
        lines = to_remember(users, admitted.left_out)
        note = memory.note(home.instance.settings_note, FORM, lines, is_private=True)
        preparations += [_state_file(f"{home.state}/settings.json", admitted.value), note]
    current = current_state(tree, home)
    # The agent may have reset the state, and the answers in it.
    is_prepared = b'"hasCompletedOnboarding"' in current and b'"hasTrustDialogAccepted"' in current
    if state.changed or not is_prepared or not are_answered:
        from claudebox.features.claude.configuration import admit_servers

        servers = _not_too_deep(lambda: admit_servers(load(tree, state.path).get("mcpServers"), can_run), state.path)
        state.left_out = servers.left_out
        try:
            merged = merge_state(current, f"{home.state}/.claude.json", project, api_key, servers.value)
        except Problem as problem:
            raise Problem(problem.message, _put_aside(tree, home)) from None
        preparations += [
            _state_file(f"{home.state}/.claude.json", merged),
            state.note(),
            memory.note(home.instance.answered, ANSWERED, answers, is_private=True),
        ]
    return preparations, (*settings_left_out, *state.left_out)


def _not_too_deep(work: Callable[[], Admitted], path: str) -> Admitted:
    try:
        return work()
    except RecursionError:
        raise Problem(f"{path} is nested too deeply", "repair it, or move it away") from None


class _Source:
    """A file of the user, and the note of how it was when it was last copied."""

    def __init__(self, tree: Tree, path: str | None, note: str, uid: int) -> None:
        self.path = path or ""
        self.note_path = note
        status = tree.lstat(path) if path else None
        self.stamp = f"{status.st_mtime_ns} {status.st_size}" if status is not None else "none"
        lines = memory.recall(tree, note, COPIED, uid).lines
        self.changed = lines[:1] != (self.stamp,)
        self.left_out = lines[1:]

    def note(self) -> Preparation:
        return memory.note(self.note_path, COPIED, (self.stamp, *printable(self.left_out)), is_private=True)


def _users_state(trusted: TrustedSource, home: ClaudeHome) -> str | None:
    inside = f"{home.users}/.claude.json"  # where CLAUDE_CONFIG_DIR puts it
    path = inside if trusted.tree.exists(inside) else f"{home.all_projects.home}/.claude.json"
    return trusted.find(path, is_dir=False)


def current_state(tree: Tree, home: ClaudeHome) -> bytes:
    """The project's .claude.json; "" if it has none yet. Half a file is a Problem: Claude would overwrite it."""
    path = f"{home.state}/.claude.json"
    # In this order: another box of the project may make it at any moment, and then it is there and can be read.
    if tree.lstat_anew(path) is None:
        return b""
    content = tree.read_plain(path, limit=LARGEST_FILE)
    if content is None:
        raise Problem(f"{path} cannot be read", _put_aside(tree, home))
    text = content.strip()
    if not (text.startswith(b"{") and text.endswith(b"}")):
        raise Problem(
            f"{path} is damaged: it is not a whole JSON object",
            f"look for an older one in its backups/, or start afresh:\n      {_put_aside(tree, home)}",
        )
    return content


def _put_aside(tree: Tree, home: ClaudeHome) -> str:
    """A command that mends it, whatever else the agent has put there: nothing is, and nothing will be, in its way."""
    name = "broken.json"
    while tree.lstat(f"{home.state}/{name}") is not None:
        name = f"more-{name}"
    # With -T: if the agent has made broken.json a symlink to the user's home, `mv` would replace the user's own state.
    return f"cd {quote(home.state)}\n      mv -T .claude.json {name}"


def merge_state(current: bytes, path: str, project: str, api_key: str, servers: dict[str, Any]) -> dict[str, Any]:
    """The state with onboarding done, the project trusted, and the user's servers in place of those copied before."""
    state = parse_object(current, path) if current else {}
    state["hasCompletedOnboarding"] = True
    _inner(_inner(state, "projects"), project)["hasTrustDialogAccepted"] = True
    state["mcpServers"] = servers
    if api_key:
        responses = _inner(state, "customApiKeyResponses")
        approved = responses.get("approved")
        kept = approved if isinstance(approved, list) else []
        responses["approved"] = [*(key for key in kept if key != api_key[-KEY_TAIL:]), api_key[-KEY_TAIL:]]
    elif "customApiKeyResponses" in state:
        _inner(state, "customApiKeyResponses")["approved"] = []  # an earlier box had the key itself
    return state


def _inner(value: dict[str, Any], name: str) -> dict[str, Any]:
    """The object of that name. It is made anew if it is none: the agent may have put anything there."""
    inner = value.get(name)
    if not isinstance(inner, dict):
        inner = value[name] = {}
    return inner


def _state_file(path: str, value: dict[str, Any]) -> Preparation:
    """Write a file of the state. It is private, so that no pasted command follows a symlink of the agent's."""
    import json

    return Preparation(Preparation.FILE, path, json.dumps(value, indent=2).encode() + b"\n", is_private=True)
