"""Asks Nix for packages before the box starts. This is the only part of a launch that waits for other programs.

It is rare, so it may import what it likes: Nix's answers are kept, and most launches find them.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time

from claudebox.features.nix.output import HASH_LENGTH, find_reason, is_store_path, read_paths, read_version
from claudebox.features.nix.packages import FORM, Inquiry, record_lines, store_name
from claudebox.features.nix.references import short_name
from claudebox.files import prepare
from claudebox.host.system import NIX_STORE
from claudebox.model import Preparation
from claudebox.problem import Problem
from claudebox.remembered import note_with_directory
from claudebox.view.text import WIDTH, cut, escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, TextIO

MOST_AT_ONCE = 4
GLANCE_SECONDS = 0.1  # between two looks at what is going on
END_PATIENCE_SECONDS = 5  # for a Nix that was told to end
MOST_LINES = 200
PRINTS_PATHS_SINCE = (2, 9)
BY_SIGNAL = 128
ERASE = "\r\x1b[K"
PREFIX = "claudebox: "
SECONDS_BETWEEN_LINES = 30.0  # where there is no terminal

FEATURES = ("--extra-experimental-features", "nix-command flakes")
# A flake may say how it wants to be built, which the user did not; and a lock file is not ours to write.
CAUTION = ("--option", "accept-flake-config", "false", "--no-write-lock-file")


class NixProcess:
    """One Nix process, and what it has said so far. Its output goes to a file, since a pipe may be too small for it."""

    def __init__(self, inquiry: Inquiry, command: list[str]) -> None:
        self.output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (until `close`)
        self.lines: list[str] = []
        self.rest = b""
        # It has a session of its own: it cannot ask on the terminal, and all that it starts can be ended with it.
        self.program: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            cwd="/",
            env=inquiry.environment,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.program.stderr is not None
        self.errors = self.program.stderr.fileno()
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
        """Whether the program has ended. Its errors may still be open: what ssh leaves behind may hold them."""
        if self.program.poll() is None:
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
        """Send a signal to it and to all that it has started."""
        if self.program.poll() is None:
            os.killpg(self.program.pid, number)

    def close(self) -> None:
        """Wait until it has ended, or kill it, once it was told to end."""
        try:
            self.program.wait(END_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self.program.wait()
        self.output.close()
        if self.program.stderr is not None:
            self.program.stderr.close()


class Resolution:
    """A package that is being resolved: Nix builds or copies it, and then lists its closure."""

    def __init__(self, inquiry: Inquiry, reference: str, *, prints_paths: bool) -> None:
        self.inquiry = inquiry
        self.reference = reference
        self.prints_paths = prints_paths
        self.paths: list[str] = []
        self.failure: str | None = None  # "" when all is well
        how = "--print-out-paths" if prints_paths else "--json"
        link = inquiry.state.package_root(reference)
        self.process = self._start("build", *CAUTION, "--out-link", link, how, "--", reference)

    @property
    def last_words(self) -> str:
        return self.process.lines[-1] if self.process.lines else ""

    def advance(self) -> bool:
        """Go on if the process has ended; True when nothing is left to do."""
        if not self.process.has_ended():
            return False
        if self.process.program.returncode != 0:
            self.failure = find_reason(self.process.lines)
        elif not self.paths:
            self._list_closure()
        else:
            self._keep(self.process.said().decode(errors="replace").split("\n"))
        if self.failure is not None:
            self.process.close()
        return self.failure is not None

    def _list_closure(self) -> None:
        paths = read_paths(self.process.said(), is_json=not self.prints_paths)
        if not paths or not all(is_store_path(path) and os.path.lexists(path) for path in paths):
            self.failure = "Nix did not say where in the store it is"
            return
        self.paths = paths
        self.process.close()
        self.process = self._start("path-info", "--recursive", "--", *paths)

    def _keep(self, lines: list[str]) -> None:
        closure = [line for line in lines if line]
        if not set(self.paths) <= set(closure) or not all(map(is_store_path, closure)):
            self.failure = "Nix did not say what it needs"
            return
        lines = record_lines(self.reference, self.inquiry.meaning, self.paths, closure)
        prepare(note_with_directory(self.inquiry.state.package(self.reference), FORM, lines))
        self.failure = ""

    def _start(self, *words: str) -> NixProcess:
        return NixProcess(self.inquiry, [self.inquiry.nix, *FEATURES, *words])


def fetch_packages(inquiry: Inquiry) -> dict[str, str]:
    """Fetch all of them. Returns the reason for each that is not available. Whatever happens, no process is left."""
    prepare((Preparation(Preparation.DIRECTORY, inquiry.state.packages),))
    prints_paths = read_version(_ask_version(inquiry)) >= PRINTS_PATHS_SINCE
    waiting = list(inquiry.references)
    running: list[Resolution] = []
    failures: dict[str, str] = {}
    progress = Progress(sys.stderr, [short_name(reference) for reference in waiting])
    with Interruption() as interruption:
        try:
            while (waiting or running) and not interruption.number:
                while waiting and len(running) < MOST_AT_ONCE:
                    running.append(Resolution(inquiry, waiting.pop(0), prints_paths=prints_paths))
                _listen([one.process for one in running])
                for one in [one for one in running if one.advance()]:
                    running.remove(one)
                    failures |= {one.reference: one.failure} if one.failure else {}
                    progress.note(short_name(one.reference), one.paths, one.failure or "")
                progress.show([(short_name(one.reference), one.last_words) for one in running])
        finally:
            progress.clear()
            _end([one.process for one in running])
    return {reference: failures[reference] for reference in inquiry.references if reference in failures}


def _listen(processes: list[NixProcess]) -> None:
    with selectors.DefaultSelector() as selector:
        for process in processes:
            selector.register(process.errors, selectors.EVENT_READ, process)
        ready = selector.select(GLANCE_SECONDS)
    # A process that has closed its errors and goes on would be ready each time.
    heard = [key.data.hear() for key, _ in ready]
    if not all(heard):
        time.sleep(GLANCE_SECONDS / 10)


def _end(processes: list[NixProcess]) -> None:
    for process in processes:
        process.signal(signal.SIGTERM)
    for process in processes:
        process.close()


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


def _ask_version(inquiry: Inquiry) -> str:
    try:
        done = subprocess.run(
            [inquiry.nix, "--version"],
            cwd="/",
            env=inquiry.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=END_PATIENCE_SECONDS,
            check=False,
        )
    except OSError as error:
        raise Problem(
            f"{inquiry.nix} cannot be started: {error.strerror}", "do without packages, or reinstall Nix"
        ) from None
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


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
