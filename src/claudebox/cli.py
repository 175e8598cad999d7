"""The command: it turns words into a mode, calls what serves it, and shows a Problem as text and an exit status."""

from __future__ import annotations

import os
import sys

from claudebox.errors import BROKEN_PIPE, FAILED, INTERRUPTED, Problem
from claudebox.features.table import SETTINGS
from claudebox.output.terminal import show_problem
from claudebox.process import signal
from claudebox.settings.words import LAUNCH, PROFILES, Request, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    open_closed_streams()
    uid = os.geteuid()  # noted now: in a user namespace of our own it reads 0
    hear_of_children()
    try:
        status = run(sys.argv[1:])
    except Problem as problem:
        show_problem(problem, uid)
        status = problem.status
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        status = INTERRUPTED
    except BrokenPipeError:
        status = BROKEN_PIPE
    except Exception as error:
        show_problem(own_failure(error))
        status = FAILED
    sys.exit(status)


def run(words: list[str]) -> int:
    return serve(parse(SETTINGS, words))


def serve(request: Request) -> int:
    """Do what the request asks for. Only the module that does it is imported."""
    mode = request.mode
    if mode == LAUNCH:
        from claudebox.start import start

        start(request)
    if mode == "check":
        from claudebox.commands.check import show_check

        return show_check(request)
    if mode in ("instances", "uninstall"):
        from claudebox.commands import kept

        return kept.tend_instances(request) if mode == "instances" else kept.uninstall(request)
    if mode == "review":
        from claudebox.commands.review import tend_layers

        return tend_layers(request)
    if mode == "report":
        from claudebox.overlay.kept import show_report

        return show_report(request)
    if mode == "import_history":
        from claudebox.commands.history import import_history

        return import_history()
    if mode == "setup":
        from claudebox.commands.setup import set_up

        return set_up(request)
    if mode == "prove":
        from claudebox.commands.prove import prove

        return prove(request)
    if mode == "demo":
        from claudebox.commands.demo import run_demo

        return run_demo(request)
    if mode in ("help", "version"):
        from claudebox.commands.help import show_help, show_version

        return show_help(request) if mode == "help" else show_version(request)
    from claudebox.commands import show

    showing = {
        "audit": show.show_audit,
        "dry_run": show.show_dry_run,
        "explain": show.show_explanation,
        "law": show.show_law,
        "auth_log": show.show_auth_log,
        "network_log": show.show_network_log,
        PROFILES: show.show_profiles,
    }
    return showing[mode](request)


def own_failure(error: Exception) -> Problem:
    return Problem(f"claudebox itself failed: {type(error).__name__}: {error}", "please report this")


def hear_of_children() -> None:
    """Undo what the caller may have passed on: we and bwrap wait for children, and have to hear how they ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def open_closed_streams() -> None:
    """Open standard streams that are closed: the next file that is opened would take their place."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115  (for the rest of our life)
