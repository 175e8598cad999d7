"""The audit: everything that enters, with the rule, and what stays outside; and what is new since the user agreed."""

from __future__ import annotations

from claudebox import __version__, model
from claudebox.host.secrets import secret_value
from claudebox.model import FROM_HOST, LAYER, UNASKED, WRITABLE, EnvVar, Finding, Mount, Plan
from claudebox.output.section import FILES, OUTSIDE, Section, by_label
from claudebox.paths import shorten_home
from claudebox.text import BOLD, RED, YELLOW, Style, beside, bytes_text, escape, table_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from claudebox.consent import News
    from claudebox.output.section import Line

LABEL = 19
RULE = 11  # columns; the rest of the label is for the mark
MARKS = {
    model.RO: "ro",
    model.RW: "rw",
    model.LAYER: "land",
    model.TMPFS: "tmp",
    model.PROC: "tmp",
    model.DEV: "tmp",
    model.FILE: "made",
    model.SYMLINK: "ro",
    model.COVER: "ro",
    model.MASK: "made",
    model.HIDE: "none",
    model.ABSENT: "none",
}
LANDS = "land when you say so, rw writable, ro read-only, tmp empty, made, none"
LEGEND = "rw writable, ro read-only, tmp empty, made for this box, none hidden"
LOST = {"without": "no longer hidden", "read-only": "now writable"}
NOT_SHOWN = "(secret, not shown)"


def audit(plan: Plan, sections: tuple[Section, ...], style: Style) -> str:
    """The audit. What differs between projects comes last, where a terminal that has scrolled still shows it."""
    mounts = [mount for mount in plan.mounts if mount.consent != UNASKED]
    legend = LANDS if any(mount.kind == LAYER for mount in mounts) else LEGEND
    everything = (
        Section(title="Environment", lines=_variables(plan.environment)),
        Section(title=OUTSIDE, lines=_outside(plan)),
        Section(title=FILES, legend=legend, lines=_files(mounts, plan.person.home)),
        *sections,
        Section(title="Runs", lines=_runs(plan)),
    )
    lines = [style.paint(f"claudebox {__version__}", BOLD)]
    for title in dict.fromkeys(section.title for section in everything if section.lines):
        members = [section for section in everything if section.title == title]
        lines.append(_heading(title, next((one.legend for one in members if one.legend), ""), style))
        lines += _table((line for one in members for line in one.lines), style)
    lines += ["", *findings_lines(plan.findings, style)] if plan.findings else []
    return "\n".join(lines) + "\n"


def news_text(plan: Plan, news: News, style: Style) -> str:
    """What a box has beyond what was agreed to: this and nothing else, however much it is."""
    home = plan.person.home
    lines = (
        *_variables(news.variables),
        *by_label((grant.label, grant.words) for grant in news.grants),
        *_files(news.mounts, home),
        *((LOST[kind], (shorten_home(path, home),)) for kind, path in news.lost),
        *(_runs(plan) if news.program else ()),
    )
    head = _heading("New since you agreed", "", style)
    return "\n".join([head, *_table(lines, style), *findings_lines(news.findings, style)]) + "\n"


def _heading(title: str, legend: str, style: Style) -> str:
    return style.paint(title, BOLD) + (f"  ({legend})" if legend else "")


def _table(lines: Iterable[Line], style: Style) -> list[str]:
    return [row for label, words in lines for row in table_row(escape(label), [*map(escape, words)], LABEL, style)]


def _variables(variables: tuple[EnvVar, ...]) -> tuple[Line, ...]:
    return by_label((one.origin.shown, (variable_text(one),)) for one in variables)


def variable_text(variable: EnvVar) -> str:
    return f"{variable.name} {NOT_SHOWN}" if variable.secret else f"{variable.name}={variable.value}"


def _files(mounts: Iterable[Mount], home: str) -> tuple[Line, ...]:
    """A line for what a rule shows in one way. What is writable, and what somebody asked for, comes last."""
    groups: dict[tuple[bool, bool, str], list[Mount]] = {}
    for mount in mounts:
        label = f"{mount.origin.shown:<{RULE}} {MARKS[mount.kind]}"
        groups.setdefault((mount.origin.is_said, mount.kind in WRITABLE, label), []).append(mount)
    in_order = sorted(groups.items(), key=lambda group: group[0][:2])
    return tuple((label, _file_words(members, home)) for (_, _, label), members in in_order)


def _file_words(mounts: list[Mount], home: str) -> tuple[str, ...]:
    """The paths of one group, those in /etc together, and why they are there."""
    shown = [mount_text(mount, home) for mount in mounts if not mount.path.startswith("/etc/")]
    etc = [mount.path.removeprefix("/etc/") for mount in mounts if mount.path.startswith("/etc/")]
    shown += [f"/etc/{etc[0]}"] if len(etc) == 1 else ["/etc:", *etc] if etc else []
    sizes = [f"{shorten_home(one.path, home)} {bytes_text(one.size)}" for one in mounts if one.size]
    bounds = f"(in memory, at most: {', '.join(sizes)})".split(" ") if sizes else []
    reasons = dict.fromkeys(mount.origin.reason for mount in mounts)
    return (*shown, *bounds, *(f"({reason})" for reason in reasons if reason))


def mount_text(mount: Mount, home: str) -> str:
    path = shorten_home(mount.path, home)
    if mount.kind in FROM_HOST and mount.source != mount.path:
        return f"{shorten_home(mount.source, home)} as {path}"
    return path


def _outside(plan: Plan) -> tuple[Line, ...]:
    home, places = plan.person.home, plan.outside.places
    labels = ("secret places", *("" for _ in places[1:]))
    found = ((shorten_home(place.path, home), f"({place.reason})") for place in places)
    variables = ("variables", (f"{plan.outside.variables} of the host's variables",))
    return (variables, *zip(labels, found, strict=False))


def _runs(plan: Plan) -> tuple[Line, ...]:
    return ((plan.program.origin.shown, command_words(plan)),)


def command_words(plan: Plan) -> tuple[str, ...]:
    """The words of the program, as people read them: with quotes where there are spaces, and without secrets."""
    return tuple(_shown_word(shorten_home(word, plan.person.home)) for word in plan.program.argv)


def _shown_word(word: str) -> str:
    if secret_value(word):
        return NOT_SHOWN
    return f"'{word}'" if not word or " " in word else word


def findings_lines(findings: tuple[Finding, ...], style: Style) -> list[str]:
    lines: list[str] = []
    for finding in findings:
        mark, colour = ("!", RED) if finding.is_grave else ("·", YELLOW)
        # Split, so that no spaces can forge a column.
        words = f"{escape(finding.subject)}: {escape(finding.text)}".split()
        lines += beside(f"{style.paint(mark, colour)} ", words, 2, style.width)
    return lines
