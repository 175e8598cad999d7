"""What Nix is doing, while somebody waits: one line that changes on a terminal, else a line now and then."""

from __future__ import annotations

import os
import time

from claudebox.features.nix.packages import store_name
from claudebox.view.text import (
    WIDTH,
    cut,
    escape,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

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
