"""Starts bwrap for real, and finds out why it failed."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Callable

from claudebox.errors import Problem
from claudebox.files import Open
from claudebox.host import Host, read_host, system
from claudebox.host.programs import trusted_path
from claudebox.host.tree import Tree
from claudebox.process.companion import LONGEST_MESSAGE, READY, die_with_parent, start_beside
from claudebox.process.isolation import fork_into_namespaces, scope_to_box
from claudebox.record import Record
from claudebox.state.reach import reach_of

TRIAL_SECONDS = 20
NO_VERSION = "unknown version"

NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup"),
    *("--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"),
)
APPARMOR_FIX = (
    "sudo apt install apparmor-profiles",
    "sudo install -m 644 /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/",
    "sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict",
)
CONTAINER_FIX = (
    "docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined …",
    "podman run --security-opt unmask=ALL …",
)


class Outcome(Record):
    """How a command ended."""

    status: int
    stdout: str
    stderr: str


def run(*command: str) -> Outcome:
    """Run a program with next to nothing in its environment.

    It does not start in the project, where many programs look for settings: `claude --version` for one.
    """
    # It runs on the host, and looks for further programs there.
    host = read_host()
    environ = {"PATH": trusted_path(host, reach_of(host)), "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environ,
            timeout=TRIAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Outcome(-1, "", str(error))
    return Outcome(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def run_in_namespaces(work: Callable[[], list[str]]) -> list[str]:
    """Have a child that has the namespaces of a box find something out. Raises the Problem that it has met.

    It is a process of its own, because there is no way back from the namespaces that it enters.
    """

    def answer(report: int) -> None:
        die_with_parent()
        scope_to_box()
        child = fork_into_namespaces()
        if child != 0:
            os.waitpid(child, 0)
            return
        die_with_parent()
        try:
            os.write(report, READY + "\n".join(work()).encode())
        except OSError as error:
            raise Problem(f"the trial failed: {error}") from None

    with Open(start_beside(answer, ())) as life:
        is_over = bool(select.select([life], [], [], TRIAL_SECONDS)[0])
        said = os.read(life, LONGEST_MESSAGE).decode(errors="replace") if is_over else ""
    if not said.startswith(READY.decode()):
        raise Problem(said.partition("\0")[0] or "the trial failed without a word")
    return said.split()


def program_version(path: str) -> str:
    return version_number(run(path, "--version"))


def version_number(outcome: Outcome) -> str:
    """The number in what `--version` prints."""
    first = outcome.stdout.strip().partition("\n")[0] if outcome.status == 0 else ""
    words = [word.removeprefix("v") for word in first.split()]
    return next((word for word in words if word[:1].isdigit()), NO_VERSION)


def namespaces_row(host: Host, bwrap: str) -> CheckRow:
    outcome = run(bwrap, *NAMESPACES, "true")
    if outcome.status == 0:
        return CheckRow(OK, "namespaces", "bwrap made user, pid, ipc, uts and cgroup namespaces")
    message = outcome.stderr.strip().splitlines()[-1] if outcome.stderr.strip() else f"exit status {outcome.status}"
    why, fix = explain(host.tree, bwrap, message)
    return CheckRow(FAIL, "namespaces", message, why, fix)


def require_namespaces(host: Host, bwrap: str) -> None:
    """Raise if the box cannot be made, before bwrap says so less clearly and with another exit status."""
    row = namespaces_row(host, bwrap)
    if row.state == FAIL:
        raise Problem(f"bwrap cannot make the box: {row.why} ({row.measured})", "\n      ".join(row.fix))


def explain(tree: Tree, bwrap: str, message: str) -> tuple[str, tuple[str, ...]]:
    """The reason behind a message of bwrap, and what to type. The likeliest reason comes first."""
    if system.is_in_box(tree):
        what = "you are in a box of claudebox already, and none can be made in it"
        return what, ("exit", "claudebox --userns on … (outside, for a box in which others can be made)")
    if system.is_restricted(tree, bwrap) and ("uid map" in message or "RTM_NEWADDR" in message):
        why = "AppArmor lets only known programs use user namespaces (Ubuntu 23.10 and later)"
        if tree.exists(system.APPARMOR_PROFILE):
            return f"{why}, and that is /usr/bin/bwrap, not {bwrap}", ("unset CLAUDEBOX_BWRAP",)
        return why, APPARMOR_FIX
    if system.is_switched_off(tree):
        return "user namespaces are switched off for ordinary users", sysctl("kernel.unprivileged_userns_clone=1")
    if system.is_limited(tree):
        return "user namespaces are limited to none", sysctl("user.max_user_namespaces=15000")
    if system.is_container(tree):
        return "this is a container whose runtime forbids namespaces or masks /proc", CONTAINER_FIX
    if "ENOSPC" in message:
        return "too many namespaces, or this is already a sandbox that forbids further ones", ()
    return "the kernel or a security module forbids it", ()


def sysctl(assignment: str) -> tuple[str, ...]:
    return (f"sudo sysctl -w {assignment}", f"echo {assignment} | sudo tee /etc/sysctl.d/90-claudebox.conf")


OK, NOTE, FAIL = "ok", "note", "FAIL"


class CheckRow(Record):
    """One thing that `--check` looked at."""

    state: str
    name: str
    measured: str
    why: str = ""
    fix: tuple[str, ...] = ()  # commands to paste

    @classmethod
    def of_problem(cls, name: str, problem: Problem, state: str = FAIL) -> CheckRow:
        return cls(state, name, problem.message, fix=tuple(map(str.strip, problem.hint.splitlines())))
