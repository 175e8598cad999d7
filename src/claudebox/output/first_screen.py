"""What the user sees before the first yes: the audit in one screen, with what matters and how to see the rest.

What can be written, what looks secret, the network, the login and what stays outside always have a row; a row says how
much it leaves out. Grave findings are shown whole, whatever the size of the terminal.
"""

from __future__ import annotations

from claudebox import __version__
from claudebox.model import HIDE, LAYER, RO, TMPFS, UNASKED, Finding, Mount, Plan
from claudebox.model import WRITABLE as WRITABLE_KINDS
from claudebox.output.audit import command_words, findings_lines, mount_text, variable_text
from claudebox.output.section import READ_ONLY, VARIABLES, WRITABLE, Row, Section
from claudebox.paths import shorten_home
from claudebox.text import BOLD, DIM, LEFT_OUT, Style, counted, cut, escape, fill, table_row, width

INDENT = 15
MOST_LINES = (6, 3, 2)  # of a row: many where there is room
EVERYTHING = "lists every variable, path and rule"
PLAIN_PLACES = ("/", "/run", "/proc", "/dev", "/dev/shm")  # empty in every box, and nothing that anybody works in


def first_screen(plan: Plan, sections: tuple[Section, ...], style: Style, height: int, *, asks: bool) -> str:
    """The screen. It leaves a line of the terminal for the question, and one for the command that led to it."""
    notes = tuple(finding for finding in plan.findings if not finding.is_grave)
    rows = _rows(plan, sections)
    # What is tried: how many lines a row may have, how many notes are shown, and whether the usual rows are.
    attempts = [(most, len(notes), True) for most in MOST_LINES]
    attempts += [(MOST_LINES[-1], count, True) for count in range(len(notes) - 1, -1, -1)]
    for most, count, has_usual in (*attempts, (1, 0, True), (1, 0, False)):
        lines = [_title(plan, style)]
        lines += [line for row in rows if has_usual or not row.is_usual for line in _lines(row, most, style)]
        lines += _findings(plan.flagged, notes, count, style)
        lines.append(style.paint(how_to_see_all(style, asks=asks), DIM))
        if len(lines) + 1 < height:
            break
    return "\n".join(lines) + "\n"


def how_to_see_all(style: Style, *, asks: bool) -> str:
    long = f"(? {EVERYTHING}; so does --audit)" if asks else f"(--audit {EVERYTHING}; {LEFT_OUT})"
    return long if len(long) <= style.width else "(? shows all)" if asks else "(--audit shows all)"


def _title(plan: Plan, style: Style) -> str:
    name = f"claudebox {__version__}"
    place = escape(shorten_home(plan.project, plan.person.home))
    room = style.width - len(name) - len(": a box around ")
    place = place if width(place) <= room else _cut_name(place, room - 1)
    return f"{style.paint(name, BOLD)}: a box around {style.paint(place, BOLD)}"


def _findings(grave: tuple[Finding, ...], notes: tuple[Finding, ...], count: int, style: Style) -> list[str]:
    lines = [*findings_lines(grave, style), *findings_lines(notes[:count], style)]
    left_out = len(notes) - count
    if left_out:
        lines.append(f"· {'and ' if lines else ''}{counted(left_out, 'more note' if lines else 'note')}")
    return ["", *lines] if lines else []


def _rows(plan: Plan, sections: tuple[Section, ...]) -> list[Row]:
    """Every row that has something to say, what gives the agent most power first."""
    home = plan.person.home
    named = {path for section in sections for path in section.mounts}
    mounts = [mount for mount in plan.mounts if mount.consent != UNASKED and mount.path not in named]
    hidden = tuple(mount_text(one, home) for one in mounts if one.kind == HIDE and one.origin.is_said)
    empty = (one.path for one in mounts if one.kind == TMPFS and not one.path.startswith("/run"))
    temporary = tuple(shorten_home(path, home) for path in empty if path not in PLAIN_PLACES)
    made = (
        Row("runs", words=" ".join(command_words(plan))),
        _writable(plan, mounts, _added(sections, WRITABLE)),
        _variables(plan),
        _read_only(home, mounts, _added(sections, READ_ONLY)),
        Row("temporary", temporary, "(gone when the box ends)", is_usual=True),
        Row("hidden", hidden),
        _outside(plan),
    )
    features = [row for section in sections for row in section.rows]
    rows = [row for own in made for row in (own, *(one for one in features if one.after == own.label))]
    return [row for row in rows if row.items or row.words]


def _added(sections: tuple[Section, ...], label: str) -> list[str]:
    return [words for section in sections for row, words in section.adds if row == label]


def _read_only(home: str, mounts: list[Mount], added: list[str]) -> Row:
    """What somebody asked for, by its path, and what every box has."""
    shown = [mount for mount in mounts if mount.kind == RO]
    asked = tuple(mount_text(mount, home) for mount in shown if mount.origin.is_said)
    usual = ", ".join(["the system", *added])
    return Row(READ_ONLY, asked, f"and {usual}" if asked else usual, is_usual=not asked)


def _writable(plan: Plan, mounts: list[Mount], added: list[str]) -> Row:
    """The project, what somebody asked for, and the box's own state, which needs no path."""
    own = [] if plan.state is None else [mount.path for mount in mounts if plan.state.has(mount.source)]
    shown = [mount for mount in mounts if mount.kind in WRITABLE_KINDS and mount.path not in own]
    shown.sort(key=lambda mount: mount.path != plan.project)
    later = {LAYER: " (kept until you land it)"}
    paths = tuple(mount_text(one, plan.person.home) + later.get(one.kind, "") for one in shown)
    return Row(WRITABLE, paths, f"and {' and '.join(added)} of this project" if added else "")


def _variables(plan: Plan) -> Row:
    """What somebody asked for, and the others. Each that looks secret has a finding below."""
    without_secret = [variable for variable in plan.environment if not variable.secret]
    asked = tuple(variable_text(one) for one in without_secret if one.origin.is_said and not one.is_ours)
    secret = len(plan.environment) - len(without_secret)
    usual = f"{'and ' if asked else ''}the usual ones"
    looks = f"{secret} more that look{'s' if secret == 1 else ''} secret: see below" if secret else "none looks secret"
    return Row(VARIABLES, asked, f"{usual}, {looks}")


def _outside(plan: Plan) -> Row:
    places = tuple(shorten_home(place.path, plan.person.home) for place in plan.outside.places)
    return Row("outside", places, f"{'and ' if places else ''}all other files and variables", most=2)


def _lines(row: Row, most: int, style: Style) -> list[str]:
    """The row on so many lines at most."""
    shown = row.replace(items=tuple(map(escape, row.items)), words=escape(row.words))
    return table_row(row.label, _shortened(shown, min(most, row.most), style.width - INDENT), INDENT, style)


def _shortened(row: Row, most: int, room: int) -> list[str]:
    """The words that fit: without the last items, with a line of each, or without the last words."""
    for items in (row.items, tuple(_cut_name(item, room - 1) for item in row.items)):
        for count in range(min(len(items), most * room // 2), 0, -1):
            words = [*items[:count], *_rest(row, count)]
            if len(fill(words, 0, columns=room)) <= most:
                return words
    lines = fill([*row.items[:1], *_rest(row, 1)], 0, columns=room)
    return lines if len(lines) <= most else [*lines[: most - 1], cut(" ".join(lines[most - 1 :]), room)]


def _rest(row: Row, count: int) -> list[str]:
    left_out = len(row.items) - count
    return [*([f"and {left_out} more"] if left_out > 0 else []), *row.words.split()]


def _cut_name(name: str, length: int) -> str:
    """A part of the name. The end of a path tells more than its beginning."""
    if not name.startswith(("/", "~")):
        return cut(name, length)
    while width(name) > length:
        name = name[1:]
    return f"…{name}"
