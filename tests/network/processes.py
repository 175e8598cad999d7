"""Processes as the kernel shows them: who started whom, and who is still there."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from patience import PATIENCE, comes_true

PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Process:
    pid: int
    name: str
    state: str
    parent: int
    session: int

    @property
    def is_alive(self) -> bool:
        return self.state not in "ZX"


def processes() -> list[Process]:
    found = (_read(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in found if process is not None]


def _read(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat") as file:
            before, _, after = file.read().rpartition(") ")
    except OSError:
        return None  # it ended meanwhile
    state, parent, _, session = after.split()[:4]
    return Process(pid, before.partition(" (")[2], state, int(parent), int(session))


def descendants(ancestor: int) -> list[Process]:
    """Each after its parent."""
    everybody = processes()
    found: list[Process] = []
    generation = {ancestor}
    while generation:
        children = [process for process in everybody if process.parent in generation]
        found += children
        generation = {process.pid for process in children}
    return found


def is_alive(pid: int) -> bool:
    process = _read(pid)
    return process is not None and process.is_alive


@contextmanager
def adopting_orphans() -> Iterator[None]:
    """Processes whose parent died become children of this one, so that none gets out of sight."""
    control = ctypes.CDLL(None).prctl
    control(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        control(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@dataclass
class Household:
    """A box from its first process on, and whatever comes from it."""

    launcher: subprocess.Popen[str]
    others: frozenset[int] = frozenset()  # children of this process that are none of the box's

    def members(self) -> dict[str, int]:
        """Who is there, by the part that it plays; pasta is the one in a session of its own, and who keeps masks on."""
        found = {"launcher": self.launcher.pid} if self.launcher.poll() is None else {}
        for process in descendants(self.launcher.pid):
            if process.is_alive:
                found.setdefault(self._part_of(process, found), process.pid)
        return found

    def _part_of(self, process: Process, known: dict[str, int]) -> str:
        if process.parent == self.launcher.pid:
            return "keeper" if process.session == process.pid else "builder"
        if process.parent == known.get("builder"):
            if process.session == process.pid:
                return "pasta"
            return "helper" if _share_processes(process.pid, process.parent) else "init"
        return "program" if process.parent == known.get("init") else "descendant"

    def kill(self, part: str) -> None:
        """End one that is there, without a chance to tidy up, and see that it is dead."""
        pid = self.members()[part]
        os.kill(pid, signal.SIGKILL)
        assert comes_true(lambda: not is_alive(pid)), part

    def remains(self) -> list[str]:
        """Which processes are still there. With the last of them go the namespaces, to which nothing else refers."""
        self._bury_the_dead()
        return [f"{process.name} ({process.pid})" for process in self._mine()]

    def _mine(self) -> list[Process]:
        found = descendants(os.getpid())
        return [process for process in found if process.is_alive and process.pid not in self.others]

    def end(self, patience: float = PATIENCE) -> list[str]:
        """Wait until nothing is there any more; what is there nevertheless."""
        remains: list[str] = []

        def are_gone() -> bool:
            remains[:] = self.remains()
            return not remains

        comes_true(are_gone, patience)
        return remains

    def clean_up(self) -> None:
        """Whatever the test showed, the next one has to start with nothing there."""
        for process in self._mine():
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it died of what happened to another
        self.launcher.communicate()
        assert comes_true(lambda: not self.remains()), self.remains()

    def _bury_the_dead(self) -> None:
        """A process that nobody waited for keeps its namespaces."""
        self.launcher.poll()
        for process in descendants(os.getpid()):
            if not process.is_alive and process.pid not in {self.launcher.pid, *self.others}:
                _wait_for(process.pid)


def _wait_for(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass  # not ours: its parent lives and will see to it


def _share_processes(one: int, other: int) -> bool:
    """Whether they are in the same PID namespace; True if one is gone."""
    try:
        return os.stat(f"/proc/{one}/ns/pid").st_ino == os.stat(f"/proc/{other}/ns/pid").st_ino
    except OSError:
        return True
