"""Remembers what the box reached and what it was refused: in the journal, and for the line at the end.

With `--ask desktop`, it also asks the user whether a host that was refused may be reached, while the box runs. Nothing
of that appears in the box, and the box cannot answer: the bus is that of the user's session, at the place where systemd
puts it, whatever variables say. The host was refused already; a yes counts for the next try, and for this run.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from mmap import mmap

from claudebox.model import Origin
from claudebox.servers.allowlist import END, WEB, Allowed, HostList, is_name, with_port
from claudebox.servers.allowlist.dns import A
from claudebox.servers.allowlist.greeting import Refusal
from claudebox.state.memory import note_in_journal
from claudebox.text import escape, fill

MOST_LINES = 3000  # of one box, which could flood the journal until what it did before is gone
MOST_NAMES = 24  # that the line at the end knows
MOST_SHOWN = 6
NOISE = (".arpa", ".local", ".localhost", ".internal", ".lan", ".home")  # programs ask for these on their own

MOST_QUESTIONS = 12  # of one box, each about another host: nobody reads more, and an agent could nag
SECONDS = 60  # then it counts as a no
YES = "allow"
BY_USER = Origin.of_rule("asked", "the user said yes on the desktop")


class Notes:
    def __init__(self, path: str, memory: mmap, asker: Asker | None = None) -> None:
        self.path = path
        self.memory = memory
        self.asker = asker
        self.lines = 0
        self.refused: dict[str, tuple[int, bool]] = {}  # how often, and whether a longer list would allow it
        self.looked_up: Counter[str] = Counter()
        self.lock = threading.Lock()

    def carried(self, name: str, port: int, sent: int, received: int, milliseconds: int) -> None:
        with self.lock:
            self._note(name=name, port=port, verdict="allowed", sent=sent, received=received, ms=milliseconds)

    def not_made(self, name: str, port: int, refusal: Refusal) -> None:
        """Note a connection that was refused, or that the list allows and that could not be made."""
        verdict = "refused" if refusal.alert else "failed"
        shown = with_port(name, port)
        with self.lock:
            self._note(name=name, port=port, verdict=verdict, why=refusal.text)
            if refusal.alert:
                times, _ = self.refused.get(shown, (0, False))
                self._count(shown, times + 1, is_lists=refusal.is_lists)
        if self.asker is not None and refusal.is_lists:
            self.asker.about(name, port)

    def refused_lookup(self, name: str, kind: int) -> None:
        """Note a look-up of a name that is not in the list. Programs ask for IPv4 and IPv6, which counts once."""
        if not is_name(name) or name.endswith(NOISE):
            return
        with self.lock:
            if name not in self.looked_up:
                if len(self.looked_up) >= MOST_LINES:
                    return
                self._note(name=name, port=0, verdict="refused", why="not in the list")
            self.looked_up[name] += kind == A
            self._count(name, max(1, self.looked_up[name]), is_lists=True)
        if self.asker is not None:
            self.asker.about(name, 0)

    def _count(self, shown: str, times: int, *, is_lists: bool) -> None:
        """Write the summary for the parent, which reads it when the box has ended."""
        if shown in self.refused or len(self.refused) < MOST_NAMES:
            self.refused[shown] = times, is_lists
            text = refused_text(self.refused).encode() + END
            self.memory[: len(text)] = text

    def _note(self, **fields: str | int) -> None:
        self.lines += 1
        if self.lines == MOST_LINES + 1:
            why = f"after {MOST_LINES} lines, nothing more of this box is noted"
            fields = {"name": "", "port": 0, "verdict": "stopped", "why": why}
        if self.path and self.lines <= MOST_LINES + 1:
            note_in_journal(self.path, **fields)


def refused_text(refused: dict[str, tuple[int, bool]]) -> str:
    """The summary: what was refused, how often, and what would allow it."""
    most = sorted(((times, escape(host), helps) for host, (times, helps) in refused.items()), reverse=True)
    shown = most[:MOST_SHOWN]
    hosts = ", ".join(host if times == 1 else f"{host} ({times} times)" for times, host, _ in shown)
    more = f", and {len(refused) - len(shown)} more (--network-log)" if len(refused) > len(shown) else ""
    lines = fill(f"claudebox: refused by --network allowlist: {hosts}{more}".split(), 0, break_words=False)
    options = " ".join(f"--allow {host}" for _, host, helps in shown if helps)
    if options:
        lines.append(f"  to allow: {options}")  # to be pasted: it stays on one line, however long it is
    return "\n".join(lines) + "\n"


class Asker:
    """Asks the user, one question at a time, about each host once."""

    def __init__(self, program: str, hosts: HostList, ask: Callable[[str], bool] | None = None) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self.program = program
        self.hosts = hosts
        self.ask = ask or self._notify
        self.asked: set[tuple[str, int]] = set()
        self.thread = ThreadPoolExecutor(1)

    def about(self, host: str, port: int) -> None:
        """Ask about a host that was refused; port 0 means that it was looked up, and nothing more is known."""
        wish = (host, port)
        if wish not in self.asked and len(self.asked) < MOST_QUESTIONS:
            self.asked.add(wish)
            self.thread.submit(self.answer, host, port)

    def answer(self, host: str, port: int) -> None:
        if self.ask(with_port(host, port) if port else host):
            self.hosts.allow(Allowed(host, (port,) if port else WEB, BY_USER))

    def _notify(self, host: str) -> bool:
        import subprocess

        bus = f"unix:path=/run/user/{os.getuid()}/bus"
        words = ("--app-name=claudebox", f"--expire-time={SECONDS * 1000}", f"--action={YES}=Allow for this run")
        text = (f"A box wants to reach {host}", "It was refused: not in the list of this box.")
        try:
            done = subprocess.run(
                [self.program, *words, "--action=no=No", *text],
                env={"DBUS_SESSION_BUS_ADDRESS": bus, "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS + 5,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0 and done.stdout.strip() == YES.encode()
