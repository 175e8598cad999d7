"""What the user said yes to, what a box would have beyond it, and the questions before a start.

Every yes is kept as one set of lines, in a file that a person can read and that no box can see. A box starts without
the question if one of the sets covers it. Why sets, and not all lines that were ever agreed to: a token agreed to with
`--network none`, and the host's network agreed to without the token, are no agreement to both at once. Somebody who
alternates between two ways to start is asked once for each.

What takes something away belongs to the set, too: a box that no longer hides a path, or makes it writable, is another
box. Two things do not belong to it:
- guards and masks, which follow from the files of the project: where somebody opens one, a finding says so;
- what claudebox keeps for the project alone, which shows nothing of the host.
"""

from __future__ import annotations

import os

from claudebox.errors import Declined, Problem
from claudebox.host import Host, pinned
from claudebox.host.system import CERTIFICATE_BUNDLES
from claudebox.host.tree import Tree
from claudebox.host.variables import LEADING, shown_way
from claudebox.model import (
    ANY_VERSION,
    COVER,
    FROM_HOST,
    RO,
    RW,
    UNASKED,
    EnvVar,
    Finding,
    Grant,
    Mount,
    Plan,
    Port,
    Preparation,
    Program,
)
from claudebox.output.terminal import ask, can_ask, errors_height, errors_style, say, says_yes
from claudebox.paths import move, parents
from claudebox.record import Record
from claudebox.settings import PROJECT_FILE, EnvWish, MountWish, Statement, Value
from claudebox.settings.gather import Said, gather
from claudebox.settings.words import Request
from claudebox.state import Instance, memory
from claudebox.state.memory import Form, path_note
from claudebox.state.memory import escape as escape_line
from claudebox.text import BOLD, DIM, Style, escape, fill, table_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from claudebox.settings.table import Table

# Each yes is a group of lines, with an empty line before and after it.
FORM = Form(
    "What you agreed to: claudebox asks when a box has more. Remove this file to be asked again.", largest=1 << 18
)
MOST_AGREEMENTS = 8
USUAL_BUNDLES = (*CERTIFICATE_BUNDLES, pinned.CERTIFICATES)
WITHOUT = "without"
READ_ONLY = "read-only"
SHOW_ALL = "?"
COLUMN = 25
LOG = 1000  # lines: nobody scrolls
OFFER = "(claudebox --setup offers a stricter box: login outside, listed hosts, review)"

Agreement = frozenset[str]


class News(Record):
    """What a plan has and an agreement lacks."""

    program: tuple[Program, ...] = ()
    grants: tuple[Grant, ...] = ()
    mounts: tuple[Mount, ...] = ()
    variables: tuple[EnvVar, ...] = ()
    findings: tuple[Finding, ...] = ()
    lost: tuple[tuple[str, str], ...] = ()  # protections that are gone: the kind and the path

    @property
    def amount(self) -> int:
        return sum(map(len, self.__dict__.values()))

    @property
    def is_grave(self) -> bool:
        """Whether a bare Enter means no: something looks secret, or is no longer protected."""
        return bool(self.flagged or self.lost)

    @property
    def is_command_alone(self) -> bool:
        """Whether the box is one that was agreed to, with another command in it."""
        return bool(self.program) and self.amount == 1

    @property
    def flagged(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.is_grave)


# What is new


def find_news(plan: Plan, agreements: tuple[Agreement, ...]) -> News:
    """Compare the plan with the nearest agreement, which is the one that covers it all, if there is one."""
    nearest = _since(plan, agreements[0] if agreements else frozenset())
    for agreed in agreements[1:]:
        if not nearest.amount:
            break
        nearest = min(nearest, _since(plan, agreed), key=lambda news: news.amount)
    return nearest


def _since(plan: Plan, agreed: Agreement) -> News:
    """What the plan has beyond an agreement. `_parts` has grants before findings, which depend on them."""
    new: dict[str, list[Any]] = {}
    for field, what, lines in _parts(plan):
        # With more network, a secret is news again: it was agreed to where it could not get far.
        is_secret = field == "findings" and what.kind == Finding.SECRET
        is_worse = is_secret and any(grant.widens for grant in new.get("grants", ()))
        if is_worse or agreed.isdisjoint(lines):
            new.setdefault(field, []).append(what)
    return News(**{field: tuple(found) for field, found in new.items()}, lost=_lost(plan, agreed))


def agreement(plan: Plan) -> tuple[str, ...]:
    """The lines that are noted when somebody says yes to this plan."""
    return (*(lines[0] for _, _, lines in _parts(plan)), *_protections(plan))


def _parts(plan: Plan) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """All that is agreed to: where it belongs in News, what it is, and the lines that cover it.

    The first line is noted, the others grant more than it does.
    """
    # The arguments of claude do not matter: it can do everything that the box allows anyway.
    yield "program", plan.program, (f"runs {_word(plan.program.title)}",)
    for grant in plan.grants:
        # Earlier versions noted a `*` in some of them as \x2a.
        yield "grants", grant, (*map(_line, grant.lines), " ".join(map(_word, grant.lines[0])))
    for mount in plan.mounts:
        if _shows_host(mount, plan) and mount.consent != UNASKED:
            yield "mounts", mount, _mount_lines(mount)
    yield from (("variables", variable, _variable_lines(variable)) for variable in plan.environment)
    for finding in plan.findings:
        yield "findings", finding, (f"{finding.kind} {_word(finding.subject)}: {escape_line(finding.text)}",)


def _line(words: tuple[str, ...]) -> str:
    return " ".join(escape_line(word).replace(" ", "\\x20") for word in words)


def _mount_lines(mount: Mount) -> tuple[str, ...]:
    source, path = _word(mount.source), _word(mount.path)
    if mount.consent == ANY_VERSION:
        source, path = _any_version(source), _any_version(path)
    what = source if source == path else f"{source} as {path}"
    return (f"{RW} {what}",) if mount.kind == RW else (f"{mount.kind} {what}", f"{RW} {what}")


def _any_version(path: str) -> str:
    """The path with `*` for a version."""
    return "/".join("*" if _is_version(part) else part for part in path.split("/"))


def _is_version(part: str) -> bool:
    return "." in part and part.removeprefix("v").replace(".", "").isdigit()


def _variable_lines(variable: EnvVar) -> tuple[str, ...]:
    """A line never has the value, nor the line number of a file, which changes when somebody writes something above.

    Except where the value says who gets the requests, or whom programs believe: another one is another box.
    """
    line = f"variable {_word(variable.name)} from {_word(variable.origin.name)}"
    if variable.name in LEADING and not variable.is_ours and variable.value not in USUAL_BUNDLES:
        line += f" as {_word(shown_way(variable.value))}"
    secret = f"{line} looks secret"
    return (secret,) if variable.secret else (line, secret)


def _protections(plan: Plan) -> list[str]:
    """What lies over a part of a host mount, so that less of it can be seen or written.

    The project's own settings do not count: what the agent writes there is judged at the next start anyway. Neither do
    masked files: they come and go, and one that is shown as it is has a finding.
    """
    by_path = {mount.path: mount for mount in plan.mounts}
    lines = []
    for mount in plan.mounts:
        base = next((by_path[path] for path in parents(mount.path) if path in by_path), None)
        if base is None or not _shows_host(base, plan) or mount.kind == COVER or mount.consent == UNASKED:
            continue
        if mount.kind not in FROM_HOST or mount.source != move(mount.path, base.path, base.source):
            lines.append(f"{WITHOUT} {_word(mount.path)}")
        elif (mount.kind, base.kind) == (RO, RW):
            lines.append(f"{READ_ONLY} {_word(mount.path)}")
    return lines


def _lost(plan: Plan, agreed: Agreement) -> tuple[tuple[str, str], ...]:
    """Protections that are gone, if what they protected can now be seen or written."""
    gone = sorted(filter(_protects, agreed.difference(_protections(plan))))
    if not gone:
        return ()
    by_path = {_word(mount.path): mount for mount in plan.mounts}

    def is_open(kind: str, path: str) -> bool:
        if path in by_path and by_path[path].consent != UNASKED:
            return False  # what is mounted there speaks for itself
        base = next((by_path[above] for above in (path, *parents(path)) if above in by_path), None)
        return base is not None and _shows_host(base, plan) and (kind == WITHOUT or base.kind == RW)

    return tuple((kind, path) for kind, _, path in (line.partition(" ") for line in gone) if is_open(kind, path))


def _protects(line: str) -> bool:
    return line.startswith((f"{WITHOUT} ", f"{READ_ONLY} "))


def _shows_host(mount: Mount, plan: Plan) -> bool:
    """Whether a mount shows the host's files. The state of the project is the box's own and needs no protection."""
    is_own = plan.state is not None and plan.state.has(mount.source)
    return mount.kind in FROM_HOST and not is_own


def _word(text: str) -> str:
    """The text without spaces and `*`, so that no name can pass for two words or for any version."""
    return escape_line(text).replace(" ", "\\x20").replace("*", "\\x2a")


# The file


def recall(tree: Tree, instance: Instance | None, uid: int) -> tuple[Agreement, ...]:
    """Every agreement for this project. A damaged file counts as none: then the user is asked again."""
    if instance is None:
        return ()
    return read_agreements(memory.recall(tree, instance.agreed, FORM, uid))


def note_agreement(plan: Plan, agreements: tuple[Agreement, ...]) -> tuple[Preparation, ...]:
    """The preparations that note a yes to this plan, beside the earlier ones."""
    if plan.state is None:
        return ()
    lines = agreement(plan)
    others = [earlier for earlier in agreements if not _covers(frozenset(lines), earlier)]
    content = write_agreements([lines, *map(sorted, others)][:MOST_AGREEMENTS])
    return (
        Preparation(Preparation.DIRECTORY, plan.state.directory),
        path_note(plan.state.project, plan.state.root),
        Preparation(Preparation.FILE, plan.state.agreed, content),
    )


def _covers(more: Agreement, less: Agreement) -> bool:
    """Whether `more` allows every box that `less` allows, so that `less` need not be noted."""
    return less <= more and all(line in less for line in more if _protects(line))


def read_agreements(lines: tuple[str, ...]) -> tuple[Agreement, ...]:
    text = "\n".join(lines)
    if not (text.startswith("\n") and text.endswith("\n")):
        return ()
    return tuple(frozenset(group.split("\n")) for group in text[1:-1].split("\n\n"))


def write_agreements(agreements: Sequence[Sequence[str]]) -> bytes:
    return memory.write(FORM, ["", *(line for group in agreements for line in (*group, ""))])


# The questions


def ask_about_project(settings: Table, host: Host, request: Request, said: Said) -> Said:
    """Ask whether the project gets what its file asks for. Without an answer, it gets nothing."""
    from claudebox.files import prepare
    from claudebox.plan import make_plan
    from claudebox.settings.files import note_decision

    project = said.project
    if project is None or request.yes or not can_ask():
        return said
    try:
        make_plan(host, request, gather(settings, host, request, project.replace(granted=True)).settings)
    except Problem as problem:
        # Nobody can say yes to that, so it counts as a no until the file changes.
        note = Finding(Finding.NOTE, PROJECT_FILE, f"asks for something impossible and gets nothing: {problem.message}")
        return said.replace(settings=said.settings.replace(findings=(note,)))
    say(wishes_text(project.wishes, errors_style()))
    granted = says_yes("Let it have these, as long as the file stays as it is? [y/N] ")
    prepare(note_decision(host, project.content_id, granted=granted))
    return gather(settings, host, request, project.replace(granted=granted))


def wishes_text(wishes: tuple[Statement, ...], style: Style) -> str:
    lines = [style.paint("This project asks for more than it gets by itself:", BOLD)]
    for wish in wishes:
        words = [escape(_value_text(wish.value)), f"({escape(wish.value.origin.shown)})"]
        lines += table_row(f"+ {wish.setting.key}", words, COLUMN, style)
    return "\n".join(lines) + "\n"


def _value_text(value: Value) -> str:
    if isinstance(value, MountWish):
        place = f" as {value.destination}" if value.destination else ""
        return f"{value.source}{place}, {'writable' if value.access == 'rw' else 'read-only'}"
    if isinstance(value, EnvWish):
        return value.name if value.value is None else f"{value.name}={value.value}"
    if isinstance(value, Port):
        return str(value.host) if value.host == value.box else f"{value.host}:{value.box}"
    return value.text


def ask_to_start(plan: Plan, news: News, agreed: str, request: Request) -> None:
    """Show the box and ask, unless `--yes` says not to. Raises a Problem unless the answer is yes.

    `agreed` is one line about what was agreed to before; "" if nothing was.
    """
    from claudebox.plan import sections_of

    asks = not request.yes and can_ask()
    style = errors_style()
    if request.quiet and not asks:
        # Nobody has seen these yet, and nobody will be asked.
        say("".join(f"claudebox: {escape(finding.subject)}: {escape(finding.text)}\n" for finding in news.flagged))
    elif agreed and request.yes and news.is_command_alone:
        # Who says yes in advance has just typed the command.
        say(f"{agreed.rstrip()}; another command (--audit)\n")
    elif agreed:
        from claudebox.output.audit import news_text
        from claudebox.output.first_screen import how_to_see_all

        hint = style.paint(how_to_see_all(style, asks=asks), DIM)
        say(f"{agreed}{news_text(plan, news, style)}{hint}\n")
    else:
        from claudebox.output.first_screen import first_screen

        lines = fill(OFFER.split(), 0) if asks and is_first_use(plan) else []
        offer = "".join(f"{style.paint(line, DIM)}\n" for line in lines)
        height = errors_height() - len(lines) if can_ask() else LOG
        say(first_screen(plan, sections_of(plan), style, height, asks=asks) + offer)
    if not request.yes:
        _require_yes(plan, news, style)


def is_first_use(plan: Plan) -> bool:
    """Whether nothing is kept yet for any project of this user: who has used it before has made their choice."""
    return plan.state is not None and not os.path.lexists(os.path.dirname(plan.state.directory))


def _require_yes(plan: Plan, news: News, style: Style) -> None:
    from claudebox.output.audit import audit
    from claudebox.plan import sections_of

    question = style.paint("Start? ", BOLD) + ("[y/N] " if news.is_grave else "[Y/n] ")
    while (answer := ask(question)) == SHOW_ALL:
        say(audit(plan, sections_of(plan), style))
    if answer not in (("y", "yes") if news.is_grave else ("y", "yes", "")):
        raise Declined("nothing was started")
