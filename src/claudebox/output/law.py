"""Shows the law against which a box is held: all of it, and what it says of one place."""

from __future__ import annotations

from claudebox.output.section import Section
from claudebox.paths import shorten_home
from claudebox.sandbox.judge import HOW, LATER, NEVER, WRITE
from claudebox.text import fill, some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.output.section import Line
    from claudebox.sandbox.law import Law, Rule

TITLE, LEGEND = "Law", "whatever the rules say: the judge holds the box against it"
LABELS = (*HOW[:LATER], "lands later", HOW[WRITE])
MOST_PATHS = 12
NOTHING = "nothing allows it"
OWN = "At this path a box may have something of its own: this is about what the host has there."


def law_section(law: Law, home: str) -> Section:
    lines = _lines(law, home)
    value = {
        "places": [{"path": rule.path, "access": HOW[rule.access], "reason": rule.why} for rule in law.places.values()],
        "variables": sorted(law.names),
        "hosts_network": law.has_hosts_network,
    }
    comment = "\n".join(f"law: {label}: {' '.join(words)}" for label, words in lines)
    return Section(title=TITLE, legend=LEGEND, lines=lines, key="law", value=value, comment=comment)


def _lines(law: Law, home: str) -> tuple[Line, ...]:
    groups: dict[tuple[int, str], list[str]] = {}
    for rule in law.places.values():
        groups.setdefault((rule.access, rule.why), []).append(shorten_home(rule.path, home))
    granted = sorted(((access, why, paths) for (access, why), paths in groups.items() if access != NEVER), reverse=True)
    shown = [(LABELS[access], (*some(paths, MOST_PATHS), f"({why})")) for access, why, paths in granted]
    never = sum(len(paths) for (access, _), paths in groups.items() if access == NEVER)
    return (
        *shown,
        (HOW[NEVER], (f"{never} secret or hidden places, and whatever no line names",)),
        ("variables", (f"{len(law.names)} names, and no other",)),
    )


def law_text(path: str, real: str, rule: Rule | None, home: str) -> str:
    """What the law says of one place."""
    shown = shorten_home(path, home)
    shown += f" (that is {shorten_home(real, home)})" if real != path else ""
    if rule is None or rule.access == NEVER:
        words = f"{shown}: never: {rule.why if rule is not None else NOTHING}".split()
    else:
        words = f"{shown}: {HOW[rule.access]} at most. It is, or lies in, {shorten_home(rule.path, home)}:".split()
        words += f"{rule.why}. {_bound(rule)}".split()
    return "\n".join([*fill(words, 0), *fill(OWN.split(), 0)]) + "\n"


def _bound(rule: Rule) -> str:
    if rule.trees:
        return f"As a whole, what is called so there: {', '.join(tree or 'all of it' for tree, _ in rule.trees)}."
    if rule.has_programs:
        return "Of what lies there, only programs that are no scripts."
    if rule.names:
        return f"Of what lies there, only what is called {rule.names}…"
    return ""


def law_fields(path: str, real: str, rule: Rule | None) -> dict[str, object]:
    found = {"entry": rule.path, "access": HOW[rule.access], "reason": rule.why} if rule is not None else {}
    return {"path": path, "real": real, "entry": None, "access": HOW[NEVER], "reason": NOTHING, **found}
