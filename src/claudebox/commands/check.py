"""`--check`: each row says what was measured and, if that is not good enough, why and what to type."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable

from claudebox import __version__
from claudebox.errors import Problem, for_account
from claudebox.features.allowlist import diagnosis as allowlist
from claudebox.features.claude.decide import choose_claude
from claudebox.features.kernel.seccomp import MACHINES
from claudebox.features.network import diagnosis as network
from claudebox.features.nix import diagnosis as nix
from claudebox.features.system import signal_shim
from claudebox.host import Host, read_host
from claudebox.host.programs import PACKAGE, choose_bwrap, find_admin, npm_install
from claudebox.host.system import find_certificates, find_distribution, install_command
from claudebox.output.as_json import dump
from claudebox.output.terminal import output_style, show
from claudebox.process.isolation import can_scope
from claudebox.process.trial import (
    FAIL,
    NOTE,
    OK,
    CheckRow,
    namespaces_row,
    program_version,
    run,
    version_number,
)
from claudebox.settings.gather import from_options, from_variables, gather, merge
from claudebox.settings.values import Settings
from claudebox.settings.words import Request
from claudebox.state import State
from claudebox.state.reach import reach_of
from claudebox.text import BOLD, GREEN, RED, YELLOW, Style, beside, escape

STUB_MESSAGE = "native binary not installed"
STATE = "state directory"


def all_rows(host: Host, settings: Settings) -> list[CheckRow]:
    rows: list[CheckRow] = []
    for name, look in LOOKS.items():
        try:
            rows += look(host, settings)
        except Problem as problem:
            rows.append(CheckRow.of_problem(name, problem))
    return rows + [row for check in CHECKING for row in check(host, settings)]


def _choose(name: str, host: Host, settings: Settings) -> str:
    """The path of a program that claudebox starts. Raises a Problem if there is none that can be used."""
    if name == "bwrap":
        return choose_bwrap(host.tree, settings.bwrap, host.environ.get("PATH", ""), host.cwd, reach_of(host))
    if name == "claude":
        return choose_claude(host, settings.claude, reach_of(host)).path
    return network.choose_program(name, host, settings)


def _bwrap_rows(host: Host, settings: Settings) -> list[CheckRow]:
    path = _choose("bwrap", host, settings)
    row = CheckRow(OK, "bwrap", f"{program_version(path)}, {path}, not setuid")
    return [row, namespaces_row(host, path)]


def _machine_rows(host: Host, _: Settings) -> list[CheckRow]:
    why = f"the system call filter knows {' and '.join(MACHINES)}"
    machine = CheckRow(FAIL, "machine", host.machine, why)
    if host.machine in MACHINES:
        machine = CheckRow(OK, "machine", f"{host.machine}, Python {sys.version.split()[0]}")
    why = "programs in the box can connect to abstract unix sockets of the host: X11, D-Bus, an IDE"
    scopes = CheckRow(NOTE, "Landlock scopes", "this kernel has none (they came with Linux 6.12)", why)
    if can_scope():
        scopes = CheckRow(OK, "Landlock scopes", "abstract sockets and processes of the host are out of reach")
    return [machine, scopes]


def _signals_rows(host: Host, _: Settings) -> list[CheckRow]:
    shim = signal_shim(host.tree, host.python)
    if run(*shim, "true").status == 0:
        return [CheckRow(OK, "Ctrl-C", f"restored in the box by {shim[0]}")]
    fix = (install_command(host.tree, "env"),)
    return [CheckRow(FAIL, "Ctrl-C", f"{' '.join(shim[:2])} failed", "GNU env is needed", fix)]


def _claude_rows(host: Host, settings: Settings) -> list[CheckRow]:
    install = choose_claude(host, settings.claude, reach_of(host))
    outcome = run(install.path, "--version")
    if STUB_MESSAGE in outcome.stdout + outcome.stderr:
        why = "its package was installed without running its install script"
        return [CheckRow(FAIL, "claude", f"{install.path} is not complete", why, (npm_install(host, PACKAGE),))]
    return [CheckRow(OK, "claude", f"{version_number(outcome)}, {install.path} ({install.kind})")]


def _file_rows(host: Host, _: Settings) -> list[CheckRow]:
    git = find_admin(host.tree, "git", host.environ.get("PATH", ""), host.cwd)
    bundle = find_certificates(host.tree, host.environ)
    found = (
        ("git", "git", git, "not installed", "needed for commits and history"),
        ("certificates", "ca-certificates", bundle, "no bundle found", "nothing in the box could use TLS"),
    )
    return [
        CheckRow(OK, name, path) if path else CheckRow(FAIL, name, lack, why, (install_command(host.tree, package),))
        for name, package, path, lack, why in found
    ]


def _state_rows(host: Host, _: Settings) -> list[CheckRow]:
    home = host.person.home
    path = State(home).directory
    status = host.tree.lstat(path)
    row = CheckRow(OK, STATE, path)
    if status is None and os.access(home, os.W_OK):
        row = CheckRow(OK, STATE, f"{path}: not there yet")
    elif status is None:
        row = CheckRow(FAIL, STATE, f"{home} is not writable", "there is no place for claude's state")
    elif not stat.S_ISDIR(status.st_mode):
        row = CheckRow(FAIL, STATE, f"{path} is not a directory", "", (f"mv {path} {path}.old",))
    elif status.st_uid != host.person.uid:
        fix = f"sudo chown -R {host.person.name} {path}"
        row = CheckRow(FAIL, STATE, f"{path} belongs to uid {status.st_uid}", "it must be yours", (fix,))
    elif status.st_mode & 0o077:
        what = f"{path} has mode {status.st_mode & 0o777:o}"
        row = CheckRow(FAIL, STATE, what, "others can look into it", (f"chmod 700 {path}",))
    return [row]


# What every box needs, by the name of the row that says so if that is refused; and what some need.
LOOKS: dict[str, Callable[[Host, Settings], list[CheckRow]]] = {
    "bwrap": _bwrap_rows,
    "machine": _machine_rows,
    "Ctrl-C": _signals_rows,
    "claude": _claude_rows,
    "git": _file_rows,
    STATE: _state_rows,
}
CHECKING = (network.check, allowlist.check, nix.check)
COLOUR = {OK: GREEN, NOTE: YELLOW, FAIL: RED}
COLUMN = 24


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


def show_versions(request: Request) -> int:
    """Show the versions of claudebox and of the programs that it starts."""
    host = read_host()
    settings, _ = _settings(host, request)
    found = {}
    for name in ("bwrap", "claude", "pasta", "nft"):
        try:
            path = _choose(name, host, settings)
            found[name] = f"{program_version(path)} ({path})"
        except Problem as problem:
            found[name] = f"({problem.message})"
    lines = [f"claudebox {__version__}", *(f"{name} {escape(text)}" for name, text in found.items())]
    show(dump({"version": __version__, "programs": found}) if request.json else "\n".join(lines) + "\n")
    return 0


def _settings(host: Host, request: Request) -> tuple[Settings, Problem | None]:
    """The settings. If a file is broken, those of options and variables, so that the rest can still be checked."""
    try:
        return gather(host, request).settings, None
    except Problem as problem:
        return merge([*from_variables(host.environ), *from_options(request.said)]), problem
