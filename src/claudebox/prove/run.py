"""Runs the probe, with a terminal of its own as standard input."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tempfile

from claudebox import files
from claudebox.prove.canaries import Canaries
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROBE_SECONDS = 120
MARK = "claudebox-prove "


class Attempt(Record):
    """What the probe reached, by the number of the trial; or why it could not say anything."""

    found: dict[str, str]
    error: str = ""


def run_outside(canaries: Canaries) -> Attempt:
    """Run the probe on this host itself. None of its files is in the project: an agent could replace them there."""
    directory = canaries.directory(tempfile.gettempdir())
    script = _write(directory, "probe.py", _probe())
    return _run([sys.executable], canaries, script, _write(directory, "trials.json", _trials(canaries)))


def run_inside(command: list[str], canaries: Canaries, project: str) -> Attempt:
    """Run the probe with `command`, which starts an interpreter. It is isolated: the project could give it modules.

    Meanwhile the probe is in the project, which every sandbox shows, because some do not pass on long or odd words.
    """
    directory = canaries.directory(project)
    script = _write(directory, "probe.py", _probe())
    trials = _write(directory, "trials.json", _trials(canaries))
    before = _state(directory, script, trials)
    is_ours = all(files.has_content(None, *one) for one in ((script, _probe()), (trials, _trials(canaries))))
    attempt = _run(command, canaries, script, trials) if is_ours else Attempt({})
    if not is_ours or _state(directory, script, trials) != before:
        return Attempt({}, "somebody else changed the probe, which is in the project meanwhile")
    return attempt


def _probe() -> bytes:
    """The probe as this module's loader finds it: claudebox may be a single file."""
    loader: Any = __spec__.loader
    content: bytes = loader.get_data(os.path.join(os.path.dirname(__file__), "probe.py"))
    return content


def _write(directory: str, name: str, content: bytes) -> str:
    """Write a new file, never through a symlink, which somebody may have put in the place of the directory, too."""
    parent = os.open(directory, files.DIRECTORY)
    try:
        files.write_new(name, content, files.PRIVATE_FILE, parent)
    finally:
        os.close(parent)
    return f"{directory}/{name}"


def _trials(canaries: Canaries) -> bytes:
    return json.dumps(
        [{"id": trial.id, "probe": trial.probe, "target": trial.target} for trial in canaries.trials]
    ).encode()


def _state(*paths: str) -> list[tuple[int, int] | None]:
    """Which files these are, and when they were last changed, renamed or replaced, which nobody can forge."""
    return [(status.st_ino, status.st_ctime_ns) if (status := _lstat(path)) else None for path in paths]


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _run(command: list[str], canaries: Canaries, script: str, trials: str) -> Attempt:
    done = _with_terminal([*command, "-I", script, trials], canaries)
    line = next((line for line in done.stdout.splitlines() if line.startswith(MARK)), "")
    if not line:
        said = done.stderr.strip().splitlines() or ["nothing was said"]
        return Attempt({}, f"{said[-1]} (status {done.returncode})")
    found = json.loads(line.removeprefix(MARK))
    if not {trial.id for trial in canaries.trials} <= found.keys():
        return Attempt({}, "the probe did not report the result of every attack")
    return Attempt(_checked(found, canaries))


def _checked(said: dict[str, Any], canaries: Canaries) -> dict[str, str]:
    """What the probe found. What it wrote counts only if it arrived on the host."""
    found = {str(key): str(value) for key, value in said.items() if key != "errors"}
    for trial in canaries.trials:
        if trial.written:
            has_arrived = os.path.lexists(trial.written)
            if has_arrived:
                os.unlink(trial.written)
            else:
                found[trial.id] = ""
    return found


def _with_terminal(command: list[str], canaries: Canaries) -> subprocess.CompletedProcess[str]:
    ours, theirs = pty.openpty()
    try:
        return subprocess.run(
            [sys.executable, "-I", "-c", _TAKE_TERMINAL, *command],
            stdin=theirs,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            env={**os.environ, **canaries.variables},
            pass_fds=canaries.descriptors,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"it took more than {PROBE_SECONDS} seconds")
    finally:
        os.close(ours)
        os.close(theirs)


# Only the leader of a session can make a terminal its own.
_TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
