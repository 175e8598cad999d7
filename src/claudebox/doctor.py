"""`--check`: each row says what was measured and, if that is not good enough, why and what to type."""

from __future__ import annotations

import os
import stat
import sys

from claudebox import __version__
from claudebox.features.claude.decide import choose_claude
from claudebox.features.kernel.seccomp import MACHINES
from claudebox.features.names.check import names_rows
from claudebox.features.network.check import chosen, uplink_rows
from claudebox.features.nix.act import nix_rows
from claudebox.features.system import signal_shim
from claudebox.host import Host, read_host
from claudebox.host.distribution import find_distribution, install_command
from claudebox.host.programs import PACKAGE, ClaudeInstall, find_admin
from claudebox.host.system import find_certificates
from claudebox.problem import Problem, for_account
from claudebox.process.isolation import can_scope
from claudebox.process.trial import (
    FAIL,
    NOTE,
    OK,
    CheckRow,
    namespaces_row,
    program_version,
    run,
    symlink_row,
    version_number,
)
from claudebox.settings.gather import gather
from claudebox.settings.values import Settings, from_options, from_variables, merge
from claudebox.settings.words import Request
from claudebox.state import State
from claudebox.terminal import show
from claudebox.trust.programs import choose_bwrap, npm_install
from claudebox.trust.reach import reach_of
from claudebox.view.as_json import dump
from claudebox.view.text import BOLD, GREEN, RED, YELLOW, Style, escape, fill, style_for

# Versions of bwrap with a known hole that does not depend on bwrap being setuid.
CVES = (((0, 3, 3), "CVE-2019-12439: mount points in /tmp can be prepared by other users"),)
STUB_MESSAGE = "native binary not installed"


def title(host: Host) -> str:
    return f"claudebox {__version__} on {find_distribution(host.tree).title}, Linux {os.uname().release}"


def all_rows(host: Host, settings: Settings) -> list[CheckRow]:
    rows, bwrap = _bwrap_rows(host, settings)
    if bwrap:
        rows += [namespaces_row(host, bwrap), symlink_row(bwrap)]
    return [
        *rows,
        _machine_row(host),
        _scope_row(),
        _signals_row(host),
        _claude_row(host, settings),
        _git_row(host),
        _certificates_row(host),
        *uplink_rows(host, settings),
        *names_rows(settings, _nft(host, settings)),
        *nix_rows(host, settings),
        _state_row(host),
    ]


def _versions(host: Host, settings: Settings) -> list[tuple[str, str]]:
    """Each program that claudebox starts, with its version."""
    result = []
    for name in ("bwrap", "claude", "pasta", "nft"):
        try:
            path = _choose(name, host, settings)
        except Problem as problem:
            result.append((name, f"({problem.message})"))
        else:
            result.append((name, f"{program_version(path)} ({path})"))
    return result


def _choose(name: str, host: Host, settings: Settings) -> str:
    if name == "bwrap":
        return choose_bwrap(host.tree, settings.bwrap, host.environ.get("PATH", ""), host.cwd, reach_of(host))
    return _choose_claude(host, settings).path if name == "claude" else chosen(name, host, settings)


def _nft(host: Host, settings: Settings) -> str:
    try:
        return chosen("nft", host, settings)
    except Problem:
        return ""


def _choose_claude(host: Host, settings: Settings) -> ClaudeInstall:
    return choose_claude(host, settings.claude, reach_of(host))


def _bwrap_rows(host: Host, settings: Settings) -> tuple[list[CheckRow], str]:
    try:
        path = _choose("bwrap", host, settings)
    except Problem as problem:
        fix = tuple(line.strip() for line in problem.hint.splitlines())
        return [CheckRow(FAIL, "bwrap", problem.message, fix=fix)], ""
    number = program_version(path)
    rows = [CheckRow(OK, "bwrap", f"{number}, {path}, not setuid")]
    parts = tuple(int(part) for part in number.split(".") if part.isdigit())
    rows += [
        CheckRow(FAIL, "bwrap", number, description, (install_command(host.tree, "bwrap"),))
        for fixed, description in CVES
        if parts and parts < fixed
    ]
    return rows, path


def _machine_row(host: Host) -> CheckRow:
    if host.machine in MACHINES:
        return CheckRow(OK, "machine", f"{host.machine}, Python {sys.version.split()[0]}")
    return CheckRow(FAIL, "machine", host.machine, f"the system call filter knows {' and '.join(MACHINES)}")


def _scope_row() -> CheckRow:
    if can_scope():
        return CheckRow(OK, "Landlock scopes", "abstract sockets and processes of the host are out of reach")
    why = "programs in the box can connect to abstract unix sockets of the host: X11, D-Bus, an IDE"
    return CheckRow(NOTE, "Landlock scopes", "this kernel has none (they came with Linux 6.12)", why)


def _signals_row(host: Host) -> CheckRow:
    try:
        shim = signal_shim(host.tree, host.python)
    except Problem as problem:
        return CheckRow(FAIL, "Ctrl-C", problem.message, fix=(problem.hint,))
    if run(*shim, "true").status == 0:
        return CheckRow(OK, "Ctrl-C", f"restored in the box by {shim[0]}")
    return CheckRow(
        FAIL, "Ctrl-C", f"{' '.join(shim[:2])} failed", "GNU env is needed", (install_command(host.tree, "env"),)
    )


def _claude_row(host: Host, settings: Settings) -> CheckRow:
    try:
        install = _choose_claude(host, settings)
    except Problem as problem:
        return CheckRow(FAIL, "claude", problem.message, fix=tuple(line.strip() for line in problem.hint.splitlines()))
    outcome = run(install.path, "--version")
    if STUB_MESSAGE in outcome.stdout + outcome.stderr:
        why = "its package was installed without running its install script"
        return CheckRow(FAIL, "claude", f"{install.path} is not complete", why, (npm_install(host, PACKAGE),))
    return CheckRow(OK, "claude", f"{version_number(outcome)}, {install.path} ({install.kind})")


def _git_row(host: Host) -> CheckRow:
    path = find_admin(host.tree, "git", host.environ.get("PATH", ""), host.cwd)
    if path is None:
        return CheckRow(
            FAIL, "git", "not installed", "needed for commits and history", (install_command(host.tree, "git"),)
        )
    return CheckRow(OK, "git", path)


def _certificates_row(host: Host) -> CheckRow:
    bundle = find_certificates(host.tree, host.environ)
    if bundle:
        return CheckRow(OK, "certificates", bundle)
    fix = install_command(host.tree, "ca-certificates")
    return CheckRow(FAIL, "certificates", "no bundle found", "nothing in the box could use TLS", (fix,))


def _state_row(host: Host) -> CheckRow:
    home = host.person.home
    path = State(home).directory
    status = host.tree.lstat(path)
    if status is None:
        if os.access(home, os.W_OK):
            return CheckRow(OK, "state directory", f"{path}: not there yet")
        return CheckRow(FAIL, "state directory", f"{home} is not writable", "there is no place for claude's state")
    if not stat.S_ISDIR(status.st_mode):
        return CheckRow(FAIL, "state directory", f"{path} is not a directory", "", (f"mv {path} {path}.old",))
    if status.st_uid != host.person.uid:
        fix = f"sudo chown -R {host.person.name} {path}"
        return CheckRow(FAIL, "state directory", f"{path} belongs to uid {status.st_uid}", "it must be yours", (fix,))
    if status.st_mode & 0o077:
        why = "others can look into it"
        return CheckRow(
            FAIL, "state directory", f"{path} has mode {status.st_mode & 0o777:o}", why, (f"chmod 700 {path}",)
        )
    return CheckRow(OK, "state directory", path)


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
    measured, *more = fill(escape(row.measured).split(), COLUMN) or [""]
    state = style.paint(row.state, COLOUR[row.state]) + " " * (5 - len(row.state))
    lines = [f"{state} {row.name:<{COLUMN - 7}} {measured}".rstrip()]
    indent = " " * COLUMN
    lines += [indent + line for line in (*more, *fill(escape(row.why).split(), COLUMN))]
    # A command stays on one line, so that it can be copied.
    return lines + [f"  {'fix:' if command is row.fix[0] else '    '} {escape(command)}" for command in row.fix]


def report_json(rows: list[CheckRow]) -> str:
    return dump(
        {
            "check": [
                {
                    "state": row.state.lower(),
                    "name": row.name,
                    "measured": row.measured,
                    "why": row.why,
                    "fix": list(row.fix),
                }
                for row in rows
            ]
        }
    )


def check(request: Request) -> tuple[str, int]:
    """The report, and the exit status: 0 if a box can be started, 1 if not."""
    host = read_host()
    settings, problem = _settings(host, request)
    rows = all_rows(host, settings)
    if problem is not None:
        fix = tuple(map(str.strip, problem.hint.splitlines()))
        rows.append(CheckRow(FAIL, "settings", problem.message, problem.excerpt, fix))
    rows = [row.replace(fix=tuple(for_account(fix, host.person.uid) for fix in row.fix)) for row in rows]
    style = style_for(sys.stdout.isatty(), dict(os.environ))
    text = report_json(rows) if request.json else report_text(rows, title(host), style)
    return text, 1 if any(row.state == FAIL for row in rows) else 0


def versions(request: Request) -> str:
    """The versions of claudebox and of the programs that it starts."""
    host = read_host()
    settings, _ = _settings(host, request)
    found = _versions(host, settings)
    if request.json:
        return dump({"version": __version__, "programs": dict(found)})
    lines = [f"claudebox {__version__}", *(f"{name} {escape(text)}" for name, text in found)]
    return "\n".join(lines) + "\n"


def _settings(host: Host, request: Request) -> tuple[Settings, Problem | None]:
    """The settings. If a file is broken, those of options and variables, so that the rest can still be checked."""
    try:
        return gather(host, request).settings, None
    except Problem as problem:
        return merge([*from_variables(host.environ), *from_options(request.said)]), problem


def show_check(request: Request) -> int:
    text, status = check(request)
    show(text)
    return status


def show_versions(request: Request) -> int:
    show(versions(request))
    return 0
