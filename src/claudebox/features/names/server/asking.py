"""Asks the user on the desktop whether a host that was refused may be reached, while the box runs (`--ask desktop`).

Nothing of it appears in the box, and the box cannot answer: the bus is that of the user's session, at the place where
systemd puts it, whatever variables say. The host was refused already; a yes counts for the next try, and for this run.
"""

from __future__ import annotations

import os
import queue
import threading

from claudebox.allowed import Allowed
from claudebox.features.names.rules import NameList, is_address
from claudebox.model import Origin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MOST_QUESTIONS = 12  # of one box, each about another host: nobody reads more, and an agent could nag
SECONDS = 60  # then it counts as a no
YES = "allow"
BY_USER = Origin.of_rule("asked", "the user said yes on the desktop")
WEB = (80, 443)


class Asker:
    """One question at a time, each host once."""

    def __init__(self, program: str, names: NameList, ask: Callable[[str, str], bool] | None = None) -> None:
        self.program = program
        self.names = names
        self.ask = ask or self._notify
        self.asked: set[tuple[str, int]] = set()
        self.waiting: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
        self.thread: threading.Thread | None = None

    def about(self, host: str, port: int) -> None:
        """Ask about a host that was refused; port 0 means that it was looked up, and nothing more is known."""
        wish = (host, port)
        if wish in self.asked or len(self.asked) >= MOST_QUESTIONS:
            return
        self.asked.add(wish)
        self.waiting.put(wish)
        if self.thread is None:
            self.thread = threading.Thread(target=self._work, daemon=True)
            self.thread.start()

    def _work(self) -> None:
        while True:
            self.answer(*self.waiting.get())

    def answer(self, host: str, port: int) -> None:
        shown = f"[{host}]" if is_address(host) and ":" in host else host
        if self.ask(f"{shown}:{port}" if port else shown, "not in the list of this box"):
            self.names.allow(Allowed(host, (port,) if port else WEB, BY_USER))

    def _notify(self, host: str, why: str) -> bool:
        import subprocess

        bus = f"unix:path=/run/user/{os.getuid()}/bus"
        words = ("--app-name=claudebox", f"--expire-time={SECONDS * 1000}", f"--action={YES}=Allow for this run")
        try:
            done = subprocess.run(
                [self.program, *words, "--action=no=No", f"A box wants to reach {host}", f"It was refused: {why}."],
                env={"DBUS_SESSION_BUS_ADDRESS": bus, "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS + 5,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0 and done.stdout.strip() == YES.encode()
