"""`--check`: each row says what was measured and, if that is not good enough, why and what to type."""

from __future__ import annotations

import os

from claudebox import __version__
from claudebox.errors import Problem, for_account, quote
from claudebox.features.table import FEATURES, SETTINGS
from claudebox.host import Host, read_host
from claudebox.host.programs import choose_bwrap
from claudebox.host.system import find_distribution
from claudebox.output.as_json import dump
from claudebox.output.terminal import output_style, show
from claudebox.process.trial import FAIL, NOTE, OK, CheckRow, namespaces_row, program_version
from claudebox.settings import Settings
from claudebox.settings.gather import from_options, from_variables, gather, merge
from claudebox.settings.table import BWRAP_PATH
from claudebox.settings.words import Request
from claudebox.state import State, check_state
from claudebox.state.reach import reach_of
from claudebox.text import BOLD, GREEN, RED, YELLOW, Style, beside, escape

COLOUR = {OK: GREEN, NOTE: YELLOW, FAIL: RED}
COLUMN = 24
BLOCK = 4096
STATE = "state directory"


def all_rows(host: Host, settings: Settings) -> list[CheckRow]:
    rows = _bwrap_rows(host, settings)
    for feature in FEATURES:
        rows += feature.check(host, settings)
    return [*rows, _state_row(host)]


def _bwrap_rows(host: Host, settings: Settings) -> list[CheckRow]:
    try:
        path = choose_bwrap(host, settings[BWRAP_PATH], reach_of(host))
    except Problem as problem:
        return [CheckRow.of_problem("bwrap", problem)]
    row = CheckRow(OK, "bwrap", f"{program_version(path)}, {path}, not setuid")
    return [row, namespaces_row(host, path)]


def _state_row(host: Host) -> CheckRow:
    home, state = host.person.home, State(host.person.home)
    try:
        check_state(host.tree, state, state.instance(host.cwd), host.person.uid)
    except Problem as problem:
        return CheckRow.of_problem(STATE, problem)
    status = host.tree.lstat(state.directory)
    if status is not None and status.st_mode & 0o077:
        what = f"{state.directory} has mode {status.st_mode & 0o777:o}"
        return CheckRow(FAIL, STATE, what, "others can look into it", (f"chmod 700 {quote(state.directory)}",))
    place = state.directory if status is not None else home
    try:
        _try_to_write(place)
    except OSError as error:
        why = "there is no place for claude's state"
        return CheckRow(FAIL, STATE, f"{place} cannot be written: {error.strerror}", why, (f"df -h {quote(place)}",))
    return CheckRow(OK, STATE, state.directory if status is not None else f"{state.directory}: not there yet")


def _try_to_write(place: str) -> None:
    """Write a little, as a start does: a mode says nothing of a full disk, a quota or a read-only file system."""
    from claudebox.files import Replacement, write_all

    with Replacement(f"{place}/.claudebox-check") as trial:
        write_all(trial.descriptor, b"x" * BLOCK)
        os.fsync(trial.descriptor)


def report_text(rows: list[CheckRow], title: str, style: Style) -> str:
    lines = [style.paint(title, BOLD), ""]
    for row in rows:
        lines += _row(row, style)
    failed = sum(row.state == FAIL for row in rows)
    lines += ["", f"{failed} of {len(rows)} checks failed" if failed else "A box can be started here."]
    return "\n".join(lines) + "\n"


def _row(row: CheckRow, style: Style) -> list[str]:
    state = style.paint(row.state, COLOUR[row.state]) + " " * (5 - len(row.state))
    lines = beside(f"{state} {row.name:<{COLUMN - 7}} ", escape(row.measured).split(), COLUMN)
    lines += beside(" " * COLUMN, escape(row.why).split(), COLUMN) if row.why else []
    # A command stays on one line, so that it can be copied.
    return lines + [f"  {'fix:' if command is row.fix[0] else '    '} {escape(command)}" for command in row.fix]


def report_json(rows: list[CheckRow]) -> str:
    return dump({"check": [{**vars(row), "state": row.state.lower()} for row in rows]})


def show_check(request: Request) -> int:
    """Show the report. The exit status is 0 if a box can be started, 1 if not."""
    host = read_host()
    settings, problem = _settings(host, request)
    rows = all_rows(host, settings) + ([CheckRow.of_problem("settings", problem)] if problem is not None else [])
    rows = [row.replace(fix=tuple(for_account(fix, host.person.uid) for fix in row.fix)) for row in rows]
    title = f"claudebox {__version__} on {find_distribution(host.tree).title}, Linux {os.uname().release}"
    show(report_json(rows) if request.json else report_text(rows, title, output_style()))
    return 1 if any(row.state == FAIL for row in rows) else 0


def _settings(host: Host, request: Request) -> tuple[Settings, Problem | None]:
    """The settings. If a file is broken, those of options and variables, so that the rest can still be checked."""
    try:
        return gather(SETTINGS, host, request).settings, None
    except Problem as problem:
        return merge([*from_variables(SETTINGS, host.environ), *from_options(SETTINGS, request.said)]), problem
