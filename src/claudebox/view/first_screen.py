"""What the user sees before the first yes: the audit in one screen, with what matters and how to see the rest.

What can be written, what looks secret, the network, the login and what stays outside always have a row; a row says how
much it leaves out. Grave findings are shown whole, whatever the size of the terminal.
"""

from __future__ import annotations

from claudebox import __version__
from claudebox.features.guard.decide import is_guard
from claudebox.features.secrets.table import RULE as SECRETS
from claudebox.model import HIDE, LAYER, RO, TMPFS, WRITABLE, Allowlist, Broker, Finding, Login, Mount, Nix, Plan
from claudebox.paths import shorten_home, within
from claudebox.record import Record
from claudebox.state import Cache
from claudebox.text import BOLD, DIM, LEFT_OUT, Style, counted, cut, escape, fill, table_row, width
from claudebox.view.audit import (
    findings_lines,
    host_text,
    limit_text,
    mount_text,
    package_name,
    shown_argument,
    variable_text,
)

INDENT = 15
TOOLCHAIN = "toolchain"  # the rule
MOST_LINES = (6, 3, 2)  # of a row: many where there is room
STEP = 4  # columns by which a name that is too long is shortened at a time
SHORTEST = 12  # columns, for a part of a name that still tells something
EVERYTHING = "lists every variable, path and rule"
PLAIN_PLACES = ("/", "/run", "/proc", "/dev", "/dev/shm")  # empty in every box, and nothing that anybody works in


class Row(Record):
    """One thing to know: items, of which some may be left out, and words that belong to all of them."""

    label: str
    items: tuple[str, ...] = ()
    words: str = ""
    most: int = MOST_LINES[0]
    is_usual: bool = False  # it says little about this box, and is left out where there is no room

    def lines(self, most: int, style: Style) -> list[str]:
        """The row on so many lines at most."""
        return table_row(self.label, self._shortened(min(most, self.most), style.width - INDENT), INDENT, style)

    def _shortened(self, most: int, room: int) -> list[str]:
        """The words that fit: without the last items, with a part of the first one, or without the last words."""
        for count in range(min(len(self.items), most * room // 2), 0, -1):
            words = [*self.items[:count], *self._rest(count)]
            if len(fill(words, 0, columns=room)) <= most:
                return words
        for length in range(most * room, SHORTEST, -STEP) if self.items else ():
            words = [_cut_name(self.items[0], length), *self._rest(1)]
            if len(fill(words, 0, columns=room)) <= most:
                return words
        lines = fill([*self.items[:1], *self._rest(1)], 0, columns=room)
        return lines if len(lines) <= most else [*lines[: most - 1], cut(" ".join(lines[most - 1 :]), room)]

    def _rest(self, count: int) -> list[str]:
        left_out = len(self.items) - count
        return [*([f"and {left_out} more"] if left_out > 0 else []), *self.words.split()]


def _cut_name(name: str, length: int) -> str:
    """A part of the name. The end of a path tells more than its beginning."""
    if not name.startswith(("/", "~")):
        return cut(name, length)
    while width(name) > length:
        name = name[1:]
    return f"…{name}"


def first_screen(plan: Plan, style: Style, height: int, *, asks: bool) -> str:
    """The screen. It leaves a line of the terminal for the question, and one for the command that led to it."""
    notes = tuple(finding for finding in plan.findings if not finding.is_grave)
    rows = _rows(plan)
    # What is tried: how many lines a row may have, how many notes are shown, and whether the usual rows are.
    attempts = [(most, len(notes), True) for most in MOST_LINES]
    attempts += [(MOST_LINES[-1], count, True) for count in range(len(notes) - 1, -1, -1)]
    for most, count, has_usual in (*attempts, (1, 0, True), (1, 0, False)):
        lines = [_title(plan, style)]
        lines += [line for row in rows if has_usual or not row.is_usual for line in row.lines(most, style)]
        lines += _findings(plan.flagged, notes, count, style)
        lines.append(style.paint(how_to_see_all(style, asks=asks), DIM))
        if len(lines) + 1 < height:
            break
    return "\n".join(lines) + "\n"


def _title(plan: Plan, style: Style) -> str:
    name = f"claudebox {__version__}"
    place = escape(shorten_home(plan.project, plan.person.home))
    room = style.width - len(name) - len(": a box around ")
    place = place if width(place) <= room else _cut_name(place, room - 1)
    return f"{style.paint(name, BOLD)}: a box around {style.paint(place, BOLD)}"


def how_to_see_all(style: Style, *, asks: bool) -> str:
    long = f"(? {EVERYTHING}; so does --audit)" if asks else f"(--audit {EVERYTHING}; {LEFT_OUT})"
    return long if len(long) <= style.width else "(? shows all)" if asks else "(--audit shows all)"


def _findings(grave: tuple[Finding, ...], notes: tuple[Finding, ...], count: int, style: Style) -> list[str]:
    lines = [*findings_lines(grave, style), *findings_lines(notes[:count], style)]
    left_out = len(notes) - count
    if left_out:
        lines.append(f"· {'and ' if lines else ''}{counted(left_out, 'more note' if lines else 'note')}")
    return ["", *lines] if lines else []


def _rows(plan: Plan) -> list[Row]:
    """Every row that has something to say, what gives the agent most power first."""
    home, project = plan.person.home, plan.project
    mounts = tuple(mount for mount in plan.mounts if not is_guard(mount))
    read_only = [mount for mount in mounts if mount.kind == RO]
    tools = tuple(mount_text(mount, home) for mount in read_only if mount.origin.is_rule(TOOLCHAIN))
    masked = tuple(escape(within(mount.path, project)) for mount in mounts if mount.origin.is_rule(SECRETS))
    hidden = tuple(mount_text(one, home) for one in mounts if one.kind == HIDE and one.origin.is_said)
    empty = (one.path for one in mounts if one.kind == TMPFS and not one.path.startswith("/run"))
    temporary = tuple(escape(shorten_home(path, home)) for path in empty if path not in PLAIN_PLACES)
    made = (
        Row("runs", words=" ".join(shown_argument(shorten_home(word, home)) for word in plan.program.argv)),
        _writable(plan, mounts),
        *_guarded(plan),
        Row("masked", masked, "(the box sees made-up values)" if masked else ""),
        _variables(plan),
        *_network(plan),
        _login(plan),
        _read_only(home, [mount for mount in read_only if not mount.origin.is_rule(TOOLCHAIN)]),
        Row("tools", tools, "(read-only: your PATH has them)" if tools else ""),
        Row("packages", tuple(map(package_name, plan.packages))),
        Row("temporary", temporary, "(gone when the box ends)", is_usual=True),
        Row("hidden", hidden),
        _outside(plan),
    )
    return [row for row in made if row.items or row.words]


def _read_only(home: str, shown: list[Mount]) -> Row:
    """What somebody asked for, by its path; what every box has, by its number."""
    asked = tuple(mount_text(mount, home) for mount in shown if mount.origin.is_said)
    claude = ", Claude and its configuration" if any(mount.origin.is_rule("claude") for mount in shown) else ""
    usual = f"{counted(len(shown) - len(asked), 'path')} of the system{claude}"
    return Row("read-only", asked, f"and {usual}" if asked else usual, is_usual=not asked)


def _writable(plan: Plan, mounts: tuple[Mount, ...]) -> Row:
    """The project, what somebody asked for, and the box's own state, which needs no path."""
    shown = sorted((mount for mount in mounts if mount.kind in WRITABLE), key=lambda mount: mount.path != plan.project)
    own = [mount for mount in shown if plan.state is not None and plan.state.has(mount.source)]
    later = {LAYER: " (kept until you land it)"}
    paths = tuple(mount_text(one, plan.person.home) + later.get(one.kind, "") for one in shown if one not in own)
    has_cache = plan.get(Cache) is not None
    kept = ["Claude's state"] if len(own) > has_cache else []
    kept += ["the cache"] if has_cache else []
    return Row("writable", paths, f"and {' and '.join(kept)} of this project" if kept else "")


def _guarded(plan: Plan) -> list[Row]:
    later = plan.layered
    names = {guarded.path: escape(within(guarded.path, plan.project)) for guarded in plan.guard.held}
    held = tuple(name for path, name in names.items() if path not in later)
    lands = tuple(name for path, name in names.items() if path in later)
    return [
        Row("guarded", held, "(read-only: this host may run it later)" if held else ""),
        Row("lands later", lands, "(this host may run it)" if lands else ""),
    ]


def _variables(plan: Plan) -> Row:
    """What somebody asked for, and how many others. Each that looks secret has a finding below."""
    plain = [variable for variable in plan.environment if not variable.secret]
    asked = tuple(variable_text(one) for one in plain if one.origin.is_said and not one.is_ours)
    secret = len(plan.environment) - len(plain)
    usual = f"{'and ' if asked else ''}{counted(len(plain) - len(asked), 'usual one')}"
    looks = f"{secret} more that look{'s' if secret == 1 else ''} secret: see below" if secret else "none looks secret"
    return Row("variables", asked, f"{usual}, {looks}")


def _network(plan: Plan) -> list[Row]:
    network, allowlist, nix = plan.network, plan.get(Allowlist), plan.get(Nix)
    ports = [f"{port.box} of the box is localhost:{port.host} here" for port in network.published]
    ports += [f"localhost:{port.box} in the box is 127.0.0.1:{port.host} here" for port in network.host_ports]
    hosts = tuple(map(host_text, allowlist.allowed)) if allowlist is not None else ()
    said = "" if network.origin.is_default else f" ({network.origin.shown})"
    return [
        Row("network", words=f"{network.tier}: {network.meaning}{said}"),
        Row("ports", tuple(ports)),
        Row("hosts", hosts),
        Row("nix", words=f"{nix.mode}: {nix.meaning}" if nix is not None else ""),
    ]


def _login(plan: Plan) -> Row:
    words, broker, login = "", plan.get(Broker), plan.get(Login)
    if broker is not None:
        limits = ", ".join(limit_text(*limit) for limit in broker.limits)
        shown = escape(shorten_home(broker.shown, plan.person.home))
        words = f"{shown} stays outside (broker){f'; at most {limits}' if limits else ''}"
    elif login is not None and login.file:
        words = f"{escape(shorten_home(login.file, plan.person.home))} enters: Claude can use it"
    return Row("login", words=words)


def _outside(plan: Plan) -> Row:
    places = tuple(escape(shorten_home(place.path, plan.person.home)) for place in plan.outside.places)
    variables = counted(plan.outside.variables, "variable")
    number = f"{variables}, {counted(len(places), 'secret place')}{':' if places else ''}"
    return Row("outside", (number, *places), most=2)
