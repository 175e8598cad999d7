"""Looks whether the project's own settings of Claude lead its requests, and the credential with them, elsewhere.

Claude puts them above the user's settings and above all variables, once a project is trusted, and in the box it is
trusted without a question. Whoever writes the project, an agent or a stranger's repository, could have the login sent
to a host of their own.
"""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.known_variables import LEADING, shown_way
from claudebox.model import Finding
from claudebox.problem import Problem
from claudebox.settings.table import BROKER
from claudebox.users_settings import LARGEST_FILE, PROJECT_SETTINGS, parse_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# They let a stranger answer in the place of the API, too.
MORE = ("ANTHROPIC_UNIX_SOCKET", "NODE_TLS_REJECT_UNAUTHORIZED", "NODE_OPTIONS")
MARKS = tuple(name.encode() for name in (*LEADING, *MORE))
ESCAPE = b"\\u"  # with which a name can be written so that it does not look like one


def decide(facts: Facts, _: Draft) -> Contribution:
    # With the broker, the box has no credential that could go anywhere.
    kind = Finding.NOTE if facts.settings.auth.text == BROKER else Finding.RISK
    findings = []
    for path in PROJECT_SETTINGS:
        content = facts.tree.read(f"{facts.project}/{path}", limit=LARGEST_FILE) or b""
        text = leads_elsewhere(content)
        if text:
            findings.append(Finding(kind, path, text))
    return Contribution(findings=tuple(findings))


def leads_elsewhere(content: bytes) -> str:
    """What the settings of a project do to Claude's requests; "" if nothing."""
    if len(content) < LARGEST_FILE and not (ESCAPE in content or any(mark in content for mark in MARKS)):
        return ""
    try:
        names = _leading(parse_object(content, "the project's settings"))
    except Problem:
        return "may change where Claude sends its requests and the credential: claudebox cannot read it"
    if not names:
        return ""
    return f"changes where Claude sends its requests, and the credential with them: env {', '.join(names)}"


def _leading(settings: dict[str, Any]) -> list[str]:
    variables = settings.get("env")
    known = {*LEADING, *MORE}
    pairs = variables.items() if isinstance(variables, dict) else ()
    return [f"{name}={shown_way(str(value))}" for name, value in pairs if name in known]
