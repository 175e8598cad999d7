"""Runs the probe, with a terminal of its own as standard input."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys

from claudebox.prove.canaries import Stage
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PATIENCE = 120
MARK = "claudebox-prove "


class Attempt(Record):
    """What the probe says that it reached, by the number of the trial; or why it could not say anything."""

    found: dict[str, str]
    error: str = ""


def run_probe(command: list[str], stage: Stage, project: str) -> Attempt:
    """`command`: what starts an interpreter. Isolated, or the project could give it modules of its own.

    The probe lies in the project meanwhile, which every sandbox shows: some do not pass on long or odd words.
    """
    trials = [{"id": trial.id, "probe": trial.probe, "target": trial.target} for trial in stage.trials]
    directory = stage.directory(project)
    script = shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "probe.py"), directory)
    with open(f"{directory}/trials.json", "w") as file:
        json.dump(trials, file)
    done = _with_terminal([*command, "-I", script, file.name], stage)
    line = next((line for line in done.stdout.splitlines() if line.startswith(MARK)), "")
    if not line:
        said = done.stderr.strip().splitlines() or ["nothing was said"]
        return Attempt({}, f"{said[-1]} (status {done.returncode})")
    return Attempt(_checked(json.loads(line.removeprefix(MARK)), stage))


def _checked(said: dict[str, Any], stage: Stage) -> dict[str, str]:
    """What the probe wrote counts if it arrived on the host."""
    found = {str(key): str(value) for key, value in said.items() if key != "errors"}
    for trial in stage.trials:
        if trial.written:
            has_arrived = os.path.lexists(trial.written)
            if has_arrived:
                os.unlink(trial.written)
            else:
                found[trial.id] = ""
    return found


def _with_terminal(command: list[str], stage: Stage) -> subprocess.CompletedProcess[str]:
    ours, theirs = pty.openpty()
    try:
        return subprocess.run(
            [sys.executable, "-I", "-c", _TAKE_TERMINAL, *command],
            stdin=theirs,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            env={**os.environ, **stage.variables},
            pass_fds=stage.descriptors,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"it took more than {PATIENCE} seconds")
    finally:
        os.close(ours)
        os.close(theirs)


# Only the leader of a session can make a terminal its own.
_TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def this_program() -> list[str]:
    """The same claudebox again, with the same interpreter."""
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    start = "import sys; sys.path.insert(0, sys.argv.pop(1)); from claudebox.cli import main; main()"
    return [sys.executable, "-I", "-S", "-c", start, source]
