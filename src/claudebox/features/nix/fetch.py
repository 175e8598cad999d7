"""Asks Nix for packages before the box starts. This is the only part of a launch that waits for other programs.

It is rare, so it may import what it likes: Nix's answers are kept, and most launches find them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

from claudebox.features.nix.packages import FORM, Inquiry, record_lines, store_name
from claudebox.features.nix.references import HASH_LENGTH, is_store_path, short_name
from claudebox.files import prepare
from claudebox.host.system import NIX_STORE
from claudebox.model import Preparation
from claudebox.problem import Problem
from claudebox.remembered import note_with_directory
from claudebox.view.text import WIDTH, cut, escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

MOST_AT_ONCE = 4
GLANCE_SECONDS = 0.1  # between two looks at what is going on
END_PATIENCE_SECONDS = 5  # for a Nix that was told to end
LAST_WORDS = 1 << 16  # bytes
BY_SIGNAL = 128
ERASE = "\r\x1b[K"
PREFIX = "claudebox: "
SECONDS_BETWEEN_LINES = 30.0  # where there is no terminal

FEATURES = ("--extra-experimental-features", "nix-command flakes")
# A flake may say how it wants to be built, which the user did not; and a lock file is not ours to write.
CAUTION = ("--option", "accept-flake-config", "false", "--no-write-lock-file")


class Resolution:
    """A package that is being resolved: Nix builds or copies it, and then lists its closure."""

    def __init__(self, inquiry: Inquiry, reference: str) -> None:
        self.inquiry = inquiry
        self.reference = reference
        self.paths: list[str] = []
        self.failure: str | None = None  # "" when all is well
        link = inquiry.state.package_root(reference)
        self._start("build", *CAUTION, "--out-link", link, "--json", "--", reference)

    def _start(self, *words: str) -> None:
        """Start Nix. What it says goes to files, since a pipe may be too small for it."""
        self.output, self.errors = (open(os.memfd_create(name), "w+b") for name in ("output", "errors"))  # noqa: SIM115
        try:
            # It has a session of its own: it cannot ask on the terminal, and all that it starts can be ended with it.
            self.program = subprocess.Popen(
                [self.inquiry.nix, *FEATURES, *words],
                cwd="/",
                env=self.inquiry.environment,
                stdin=subprocess.DEVNULL,
                stdout=self.output,
                stderr=self.errors,
                start_new_session=True,
            )
        except OSError as error:
            self.close()
            raise Problem(
                f"{self.inquiry.nix} cannot be started: {error.strerror}", "do without packages, or reinstall Nix"
            ) from None

    def lines(self) -> list[str]:
        """What Nix has said last."""
        end = os.fstat(self.errors.fileno()).st_size
        said = os.pread(self.errors.fileno(), LAST_WORDS, max(0, end - LAST_WORDS)).decode(errors="replace")
        return [line.strip() for line in said.split("\n") if line.strip()]

    def advance(self) -> bool:
        """Go on if the process has ended; True when nothing is left to do."""
        if self.program.poll() is None:
            return False
        self.output.seek(0)
        said = self.output.read()
        if self.program.returncode != 0:
            self.failure = find_reason(self.lines())
        elif not self.paths:
            self._list_closure(read_paths(said))
        else:
            self._keep([line for line in said.decode(errors="replace").split("\n") if line])
        if self.failure is not None:
            self.close()
        return self.failure is not None

    def close(self) -> None:
        self.output.close()
        self.errors.close()

    def _list_closure(self, paths: list[str]) -> None:
        if not paths or not all(is_store_path(path) and os.path.lexists(path) for path in paths):
            self.failure = "Nix did not say where in the store it is"
            return
        self.paths = paths
        self.close()
        self._start("path-info", "--recursive", "--", *paths)

    def _keep(self, closure: list[str]) -> None:
        if not set(self.paths) <= set(closure) or not all(map(is_store_path, closure)):
            self.failure = "Nix did not say what it needs"
            return
        lines = record_lines(self.reference, self.inquiry.meaning, self.paths, closure)
        prepare(note_with_directory(self.inquiry.state.package(self.reference), FORM, lines))
        self.failure = ""

    def signal(self, number: int) -> None:
        """Send a signal to Nix and to all that it has started."""
        if self.program.poll() is None:
            os.killpg(self.program.pid, number)


def fetch_packages(inquiry: Inquiry) -> dict[str, str]:
    """Fetch all of them. Returns the reason for each that is not available. Whatever happens, no process is left."""
    prepare((Preparation(Preparation.DIRECTORY, inquiry.state.packages),))
    waiting = list(inquiry.references)
    running: list[Resolution] = []
    failures: dict[str, str] = {}
    progress = Progress(sys.stderr, [short_name(reference) for reference in waiting])
    with Interruption() as interruption:
        try:
            while (waiting or running) and not interruption.number:
                while waiting and len(running) < MOST_AT_ONCE:
                    running.append(Resolution(inquiry, waiting.pop(0)))
                time.sleep(GLANCE_SECONDS)
                for one in [one for one in running if one.advance()]:
                    running.remove(one)
                    failures |= {one.reference: one.failure} if one.failure else {}
                    progress.note(short_name(one.reference), one.paths, one.failure or "")
                progress.show([(short_name(one.reference), (one.lines() or [""])[-1]) for one in running])
        finally:
            progress.clear()
            _end(running)
    return {reference: failures[reference] for reference in inquiry.references if reference in failures}


def _end(running: list[Resolution]) -> None:
    for one in running:
        one.signal(signal.SIGTERM)
    for one in running:
        try:
            one.program.wait(END_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            one.signal(signal.SIGKILL)
            one.program.wait()
        one.close()


class Interruption:
    """A signal that would end claudebox. It is remembered until Nix has been ended, too, and then has its effect."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

    def __init__(self) -> None:
        self.number = 0
        self.handlers: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for number in self.NUMBERS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self.handlers[number] = signal.signal(number, self._remember)
        return self

    def _remember(self, number: int, _: object) -> None:
        self.number = number

    def __exit__(self, *_: object) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.number:
            raise SystemExit(BY_SIGNAL + self.number)


class Progress:
    """Tells how far Nix is with the packages: on one line of a terminal, else now and then."""

    def __init__(self, stream: TextIO, names: list[str]) -> None:
        self.stream = stream
        self.is_terminal = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.number = len(names)
        self.done = 0
        self.started = self.said_at = time.monotonic()
        if not self.is_terminal:
            self._say(f"asking Nix for {', '.join(names)}")

    def note(self, name: str, paths: list[str], failure: str) -> None:
        """Say that a package is there, or never will be: then a warning stays on the screen."""
        self.done += 1
        if failure:
            self.clear()
            self._say(f"warning: {name} is not in the box: {failure}")
        elif not self.is_terminal:
            self._say(f"{name}: {', '.join(map(store_name, paths))} ({self.done} of {self.number})")

    def show(self, running: list[tuple[str, str]]) -> None:
        now = time.monotonic()
        if not running or not (self.is_terminal or now - self.said_at > SECONDS_BETWEEN_LINES):
            return
        self.said_at = now
        name, words = running[int(now / 2) % len(running)]  # each for two seconds
        text = f"packages {self.done} of {self.number}, {now - self.started:.0f} s: {name}: {readable(words)}"
        if self.is_terminal:
            self.stream.write(ERASE + cut(PREFIX + escape(text), self._width()))
            self.stream.flush()
        else:
            self._say(text)

    def clear(self) -> None:
        if self.is_terminal:
            self.stream.write(ERASE)
            self.stream.flush()

    def _say(self, text: str) -> None:
        self.stream.write(f"{PREFIX}{escape(text)}\n")
        self.stream.flush()

    def _width(self) -> int:
        try:
            return (os.get_terminal_size(self.stream.fileno()).columns or WIDTH) - 1
        except (OSError, ValueError):
            return WIDTH - 1


def readable(words: str) -> str:
    """Leave out the directory and the hashes of the store, which are most of what Nix says."""
    first, *others = words.split(f"{NIX_STORE}/")
    return first + "".join(
        other[HASH_LENGTH + 1 :] if other[HASH_LENGTH : HASH_LENGTH + 1] == "-" else f"{NIX_STORE}/{other}"
        for other in others
    )


LONGEST_REASON = 300
SILENT = "Nix failed without a word"

# What Nix says, and what it means here.
MEANINGS = (
    (
        ("cannot connect to socket", "Permission denied"),
        "you may not use the Nix daemon: your account has to be in its group (nix-users), or in allowed-users",
    ),
    (("cannot connect to socket",), "the Nix daemon does not answer: sudo systemctl start nix-daemon"),
    (("unrecognised flag",), "this Nix is too old: 2.4 is the first with flakes"),
    (
        ("experimental", "disabled"),
        "the flakes of Nix are disabled on this host: see nix.conf",
    ),
)


def read_paths(output: bytes) -> list[str]:
    """The paths of what was built. A store path that was asked for by name is its own result."""
    try:
        said = json.loads(output.decode(errors="replace"))
        results: list[Any] = [{"path": one} if isinstance(one, str) else one for one in said]
        return [str(path) for one in results for path in (one.get("outputs") or {"": one.get("path")}).values()]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return []


def find_reason(lines: list[str]) -> str:
    """Why Nix failed, in one line: its last error."""
    errors = [
        (line.partition("error:")[2].strip(), after)
        for line, after in zip(lines, [*lines[1:], ""], strict=False)
        if "error:" in line
    ]
    last, after = next((error for error in reversed(errors) if error[0]), (lines[-1] if lines else SILENT, ""))
    for needles, meaning in MEANINGS:
        if all(needle in last for needle in needles):
            return meaning
    reason = f"{last} {after}" if after.startswith("Reason:") else last
    return reason.rstrip(";:")[:LONGEST_REASON]
