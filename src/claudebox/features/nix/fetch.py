"""Asks Nix for packages before the box starts. The only part of a launch that waits for other programs.

Rare, so it may import what it likes: what Nix says is kept, and most launches find it.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time

from claudebox.features.nix.output import find_reason, is_store_path, read_paths, read_version
from claudebox.features.nix.packages import FORM, Errand, record_lines, store_name
from claudebox.features.nix.references import short_name
from claudebox.model import Preparation
from claudebox.prepare import prepare
from claudebox.problem import Problem
from claudebox.remembered import note_with_directory
from claudebox.view.text import WIDTH, cut, escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, TextIO

MOST_AT_ONCE = 4
GLANCE_SECONDS = 0.1  # between two looks at what is going on
END_PATIENCE_SECONDS = 5  # for a Nix that shall end
MOST_LINES = 200
PRINTS_PATHS_SINCE = (2, 9)
BY_SIGNAL = 128

FEATURES = ("--extra-experimental-features", "nix-command flakes")
# What a flake says about how it wants to be built is not the user's word; and a lock file is not ours to write.
CAUTION = ("--option", "accept-flake-config", "false", "--no-write-lock-file")


class Step:
    """One Nix process, and what it has said so far. Its output goes to a file, since a pipe may be too small for it."""

    def __init__(self, errand: Errand, command: list[str]) -> None:
        self.output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (until `close`)
        self.lines: list[str] = []
        self.rest = b""
        # In a session of its own: it cannot ask on the terminal, and all that it starts can be ended with it.
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            cwd="/",
            env=errand.environment,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stderr is not None
        self.errors = self.process.stderr.fileno()
        os.set_blocking(self.errors, False)

    def hear(self) -> bool:
        """Take in what it says; False when nothing more will come."""
        try:
            piece = os.read(self.errors, 1 << 16)
        except BlockingIOError:
            return True
        *lines, self.rest = (self.rest + piece).split(b"\n")
        said = [line.decode(errors="replace").strip() for line in lines]
        self.lines = [*self.lines, *filter(None, said)][-MOST_LINES:]
        return bool(piece)

    def has_ended(self) -> bool:
        """Not when its errors have ended: what ssh leaves behind may hold them open."""
        if self.process.poll() is None:
            return False
        while self._has_more() and self.hear():
            pass
        if self.rest:
            self.lines.append(self.rest.decode(errors="replace").strip())
            self.rest = b""
        return True

    def _has_more(self) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self.errors, selectors.EVENT_READ)
            return bool(selector.select(0))

    def said(self) -> bytes:
        self.output.seek(0)
        return self.output.read()

    def signal(self, number: int) -> None:
        """To it and to all that it has started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def close(self) -> None:
        """Once it has ended, or was told to."""
        try:
            self.process.wait(END_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self.process.wait()
        self.output.close()
        if self.process.stderr is not None:
            self.process.stderr.close()


class Resolution:
    """One package on its way: it is built, or copied, and then its closure is listed."""

    def __init__(self, errand: Errand, reference: str, *, prints_paths: bool) -> None:
        self.errand = errand
        self.reference = reference
        self.prints_paths = prints_paths
        self.paths: list[str] = []
        self.failure: str | None = None  # "" when all is well
        how = "--print-out-paths" if prints_paths else "--json"
        link = errand.state.package_root(reference)
        self.step = self._start("build", *CAUTION, "--out-link", link, how, "--", reference)

    @property
    def last_words(self) -> str:
        return self.step.lines[-1] if self.step.lines else ""

    def advance(self) -> bool:
        """Go on if the step has ended; True when nothing is left to do."""
        if not self.step.has_ended():
            return False
        if self.step.process.returncode != 0:
            self.failure = find_reason(self.step.lines)
        elif not self.paths:
            self._list_closure()
        else:
            self._keep(self.step.said().decode(errors="replace").split("\n"))
        if self.failure is not None:
            self.step.close()
        return self.failure is not None

    def _list_closure(self) -> None:
        paths = read_paths(self.step.said(), is_json=not self.prints_paths)
        if not paths or not all(is_store_path(path) and os.path.lexists(path) for path in paths):
            self.failure = "Nix did not say where in the store it is"
            return
        self.paths = paths
        self.step.close()
        self.step = self._start("path-info", "--recursive", "--", *paths)

    def _keep(self, lines: list[str]) -> None:
        closure = [line for line in lines if line]
        if not set(self.paths) <= set(closure) or not all(map(is_store_path, closure)):
            self.failure = "Nix did not say what it needs"
            return
        lines = record_lines(self.reference, self.errand.meaning, self.paths, closure)
        prepare(note_with_directory(self.errand.state.package(self.reference), FORM, lines))
        self.failure = ""

    def _start(self, *words: str) -> Step:
        return Step(self.errand, [self.errand.nix, *FEATURES, *words])


def fetch_packages(errand: Errand) -> dict[str, str]:
    """Have them all, or say of each that cannot be had why. Whatever happens, no process is left behind."""
    prepare((Preparation(Preparation.DIRECTORY, errand.state.packages),))
    prints_paths = read_version(_ask_version(errand)) >= PRINTS_PATHS_SINCE
    waiting = list(errand.references)
    running: list[Resolution] = []
    failures: dict[str, str] = {}
    progress = Progress(sys.stderr, [short_name(reference) for reference in waiting])
    with Interruption() as interruption:
        try:
            while (waiting or running) and not interruption.number:
                while waiting and len(running) < MOST_AT_ONCE:
                    running.append(Resolution(errand, waiting.pop(0), prints_paths=prints_paths))
                _listen([one.step for one in running])
                for one in [one for one in running if one.advance()]:
                    running.remove(one)
                    failures |= {one.reference: one.failure} if one.failure else {}
                    progress.note(short_name(one.reference), one.paths, one.failure or "")
                progress.show([(short_name(one.reference), one.last_words) for one in running])
        finally:
            progress.clear()
            _end([one.step for one in running])
    return {reference: failures[reference] for reference in errand.references if reference in failures}


def _listen(steps: list[Step]) -> None:
    with selectors.DefaultSelector() as selector:
        for step in steps:
            selector.register(step.errors, selectors.EVENT_READ, step)
        ready = selector.select(GLANCE_SECONDS)
    # Who has closed its errors and goes on would be ready each time.
    heard = [key.data.hear() for key, _ in ready]
    if not all(heard):
        time.sleep(GLANCE_SECONDS / 10)


def _end(steps: list[Step]) -> None:
    for step in steps:
        step.signal(signal.SIGTERM)
    for step in steps:
        step.close()


class Interruption:
    """A signal that would end claudebox. It is remembered until Nix was ended, too, and then has its effect."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

    def __init__(self) -> None:
        self.number = 0
        self.kept: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for number in self.NUMBERS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self.kept[number] = signal.signal(number, self._remember)
        return self

    def _remember(self, number: int, _: object) -> None:
        self.number = number

    def __exit__(self, *_: object) -> None:
        for number, handler in self.kept.items():
            signal.signal(number, handler)
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.number:
            raise SystemExit(BY_SIGNAL + self.number)


def _ask_version(errand: Errand) -> str:
    try:
        done = subprocess.run(
            [errand.nix, "--version"],
            cwd="/",
            env=errand.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=END_PATIENCE_SECONDS,
            check=False,
        )
    except OSError as error:
        raise Problem(
            f"{errand.nix} cannot be started: {error.strerror}", "do without packages, or reinstall Nix"
        ) from None
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


ERASE = "\r\x1b[K"
STORE = "/nix/store/"
HASH = 32
NOW_AND_THEN = 30.0  # seconds
PREFIX = "claudebox: "


class Progress:
    """Of some packages."""

    def __init__(self, stream: TextIO, names: list[str]) -> None:
        self.stream = stream
        self.is_terminal = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.number = len(names)
        self.done = 0
        self.started = self.said_at = time.monotonic()
        if not self.is_terminal:
            self._say(f"asking Nix for {', '.join(names)}")

    def note(self, name: str, paths: list[str], failure: str) -> None:
        """One is there, or never will be: then a warning stays on the screen."""
        self.done += 1
        if failure:
            self.clear()
            self._say(f"warning: {name} is not in the box: {failure}")
        elif not self.is_terminal:
            self._say(f"{name}: {', '.join(map(store_name, paths))} ({self.done} of {self.number})")

    def show(self, running: list[tuple[str, str]]) -> None:
        now = time.monotonic()
        if not running or not (self.is_terminal or now - self.said_at > NOW_AND_THEN):
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
    """Without the directory and the hashes of the store, which are most of what Nix says."""
    first, *others = words.split(STORE)
    return first + "".join(other[HASH + 1 :] if other[HASH : HASH + 1] == "-" else STORE + other for other in others)
