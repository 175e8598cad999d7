"""The command: it turns words into a mode, calls what serves it, and shows a Problem as text and an exit status."""

from __future__ import annotations

import os
import sys

from claudebox.errors import BROKEN_PIPE, FAILED, INTERRUPTED, Problem
from claudebox.features.table import SETTINGS
from claudebox.process import signal
from claudebox.settings.words import LAUNCH, PROFILES, parse
from claudebox.terminal import show_problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# Each mode, with the module and the function that serve it. The function takes the request and returns an exit status.
# Only the module of the chosen mode is imported.
MODES = {
    LAUNCH: ("start", "start"),
    "audit": ("commands.show", "show_audit"),
    "dry_run": ("commands.show", "show_dry_run"),
    "explain": ("commands.show", "show_explanation"),
    PROFILES: ("commands.show", "show_profiles"),
    "instances": ("commands.kept", "tend_instances"),
    "review": ("commands.review", "tend_layers"),
    "report": ("overlay.kept", "show_report"),
    "auth_log": ("features.broker.log", "show_auth_log"),
    "network_log": ("features.allowlist.diagnosis", "show_network_log"),
    "check": ("commands.check", "show_check"),
    "setup": ("commands.setup", "set_up"),
    "version": ("commands.check", "show_versions"),
    "help": ("view.help", "show_help"),
    "prove": ("commands.prove", "prove"),
    "uninstall": ("commands.kept", "uninstall"),
    "demo": ("commands.demo", "run_demo"),
}


def main() -> NoReturn:
    open_closed_streams()
    uid = os.geteuid()  # whoever makes a box passes for root in a namespace of its own, and may fail there
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
    request = parse(SETTINGS, words)
    module, function = MODES[request.mode]
    serve = getattr(__import__(f"claudebox.{module}", fromlist=("",)), function)
    status: int = serve(request)
    return status


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
