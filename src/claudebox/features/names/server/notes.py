"""Remembers what the box reached and what it was refused: in the journal, and for the line at the end."""

from __future__ import annotations

from claudebox import journal
from claudebox.features.names.rules import is_name
from claudebox.features.names.server.dns import AAAA, A
from claudebox.features.names.server.refusal import Refusal
from claudebox.features.names.terms import HELPS, LENGTH, STOPPED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

    from claudebox.features.names.server.asking import Asker

MOST_LINES = 3000  # of one box, which could flood the journal until what it did before is gone
MOST_REFUSALS = 500
NO_MORE_REFUSALS = f"after {MOST_REFUSALS} refusals, more of this box are not noted"
MOST_NAMES = 24  # that the line at the end knows
OTHER = 0  # no kind of DNS has this number
NOISE = (".arpa", ".local", ".localhost", ".internal", ".lan", ".home")  # programs ask for these on their own


class Notes:
    """What happened so far. Only one thread writes here."""

    def __init__(self, path: str, memory: mmap | None, asker: Asker | None = None) -> None:
        self.path = path
        self.memory = memory
        self.asker = asker
        self.lines = 0
        self.refusals = 0
        self.refused: dict[str, int] = {}
        self.stopped: set[str] = set()  # why the journal is not complete
        self.would_help: set[str] = set()  # those that a longer list would allow
        self.looked_up: dict[str, dict[int, int]] = {}  # how often each kind of address was asked for

    def carried(self, name: str, port: int, sent: int, received: int, milliseconds: int) -> None:
        self._note(name=name, port=port, verdict="allowed", sent=sent, received=received, ms=milliseconds)

    def not_made(self, name: str, port: int, refusal: Refusal) -> None:
        """Note a connection that was refused, or that the list allows and that could not be made."""
        if not refusal.alert:
            self._note(name=name, port=port, verdict="failed", why=refusal.text)
            return
        self._note_refusal(name, port, refusal.text)
        shown = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
        self._count(shown, self.refused.get(shown, 0) + 1, is_lists=refusal.is_lists)
        if self.asker is not None and refusal.is_lists:
            self.asker.about(name, port)

    def refused_lookup(self, name: str, kind: int) -> None:
        """Note a name that is not in the list. A look-up asks for several kinds of address, and counts once."""
        if not is_name(name) or name.endswith(NOISE):
            return
        if name not in self.looked_up:
            if len(self.looked_up) >= MOST_REFUSALS:
                self._say_once(NO_MORE_REFUSALS)
                return
            self.looked_up[name] = {}
            self._note_refusal(name, 0, "not in the list")
        times = self.looked_up[name]
        if kind in (A, AAAA):
            times[kind] = times.get(kind, 0) + 1
        else:
            times[OTHER] = 1  # one place for all: there are 65536 kinds, and the box chooses
        self._count(name, max(times.values()), is_lists=True)
        if self.asker is not None:
            self.asker.about(name, 0)

    def _note_refusal(self, name: str, port: int, why: str) -> None:
        self.refusals += 1
        if self.refusals <= MOST_REFUSALS:
            self._note(name=name, port=port, verdict="refused", why=why)
        else:
            self._say_once(NO_MORE_REFUSALS)

    def _count(self, shown: str, times: int, *, is_lists: bool) -> None:
        """Show the parent how often something was refused. It reads when the box has ended."""
        if shown not in self.refused and len(self.refused) >= MOST_NAMES:
            return
        self.refused[shown] = times
        if is_lists:
            self.would_help.add(shown)
        if self.memory is not None:
            lines = [f"{HELPS if name in self.would_help else ''}{n} {name}" for name, n in self.refused.items()]
            text = "\n".join(lines).encode()
            self.memory[LENGTH : LENGTH + len(text)] = text
            self.memory[:LENGTH] = len(text).to_bytes(LENGTH, "big")

    def _note(self, **fields: str | int) -> None:
        self.lines += 1
        if self.path and self.lines <= MOST_LINES:
            journal.note(self.path, **fields)
        else:
            self._say_once(f"after {MOST_LINES} lines, nothing more of this box is noted")

    def _say_once(self, why: str) -> None:
        """Say in the journal that it is not complete."""
        if self.path and why not in self.stopped:
            self.stopped.add(why)
            journal.note(self.path, name="", port=0, verdict=STOPPED, why=why)
