"""The locks around Claude's login: directories, as Claude Code makes them, so that it waits for us and we for it.

Whoever makes the directory holds the lock. One that nobody has touched for a while was left by a process that died, and
may be taken over; so a process that holds one for long keeps touching it. How long that while is, each lock has from
Claude Code (measured with 2.1.325).
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from typing import Self

REFRESH = ".oauth_refresh.lock"  # around a renewal
OLD_SUFFIX = ".lock"  # of the directory itself, which older versions lock around a renewal
STORAGE = ".storage-write.lock"  # around a change of the file
REFRESH_STALE_SECONDS = 10.0
STORAGE_STALE_SECONDS = 15.0
HEARTBEAT_SECONDS = 2.0
PAUSE_SECONDS = 0.02


class Busy(Exception):
    """Somebody else holds the lock."""


class Lock:
    """One directory, and when it counts as left behind."""

    def __init__(self, path: str, stale_seconds: float) -> None:
        self.path = path
        self.stale_seconds = stale_seconds

    def take(self) -> None:
        """Raises Busy if somebody else holds it, and OSError if it cannot be made."""
        try:
            os.mkdir(self.path, 0o700)
        except FileExistsError:
            self._take_over()
            try:
                os.mkdir(self.path, 0o700)
            except FileExistsError:
                raise Busy from None

    def _take_over(self) -> None:
        """Moved to another name first: of several who try that at once, one succeeds."""
        try:
            seen = os.lstat(self.path)
            if abs(time.time() - seen.st_mtime) <= self.stale_seconds:
                raise Busy
            aside = f"{self.path}.{os.urandom(8).hex()}"
            os.rename(self.path, aside)
            taken = os.lstat(aside)
            if (taken.st_ino, taken.st_mtime_ns) != (seen.st_ino, seen.st_mtime_ns):
                os.rename(aside, self.path)  # it was somebody's who was quicker
                raise Busy
            os.rmdir(aside)
        except OSError:
            raise Busy from None

    def touch(self) -> None:
        try:
            os.utime(self.path)
        except OSError:
            pass

    def release(self) -> None:
        try:
            os.rmdir(self.path)
        except OSError:
            pass  # taken from us as stale


class Locks:
    """Several locks, taken in order and held until the end of the `with` block."""

    def __init__(self, *locks: Lock, patience_seconds: float = 0.0, stays_fresh: bool = False) -> None:
        self.locks = locks
        self.patience_seconds = patience_seconds
        self.stays_fresh = stays_fresh  # whether a thread touches them meanwhile
        self.held: list[Lock] = []
        self.done: threading.Event | None = None

    def __enter__(self) -> Self:
        """Raises Busy if somebody else has one of them for too long."""
        deadline = time.monotonic() + self.patience_seconds
        while not self._take_all():
            if time.monotonic() > deadline:
                raise Busy
            time.sleep(PAUSE_SECONDS)
        if self.stays_fresh:
            import threading

            self.done = threading.Event()
            threading.Thread(target=self._keep_fresh, args=(self.done,), daemon=True).start()
        return self

    def _take_all(self) -> bool:
        try:
            for lock in self.locks:
                lock.take()
                self.held.append(lock)
        except Busy:
            self._release()
        except OSError:
            self._release()
            raise
        return bool(self.held)

    def __exit__(self, *_: object) -> None:
        if self.done is not None:
            self.done.set()
        self._release()

    def _release(self) -> None:
        while self.held:
            self.held.pop().release()

    def _keep_fresh(self, done: threading.Event) -> None:
        """Whoever sees an old lock believes that a dead process has left it."""
        while not done.wait(HEARTBEAT_SECONDS):
            for lock in tuple(self.held):
                lock.touch()


def refresh_locks(directory: str) -> Locks:
    """Those that are held while a login is renewed, in Claude's order."""
    old = Lock(f"{os.path.realpath(directory)}{OLD_SUFFIX}", REFRESH_STALE_SECONDS)
    return Locks(Lock(f"{directory}/{REFRESH}", REFRESH_STALE_SECONDS), old, stays_fresh=True)


def storage_lock(directory: str, patience_seconds: float, *, stays_fresh: bool = False) -> Locks:
    """The one that is held while the file is changed."""
    lock = Lock(f"{directory}/{STORAGE}", STORAGE_STALE_SECONDS)
    return Locks(lock, patience_seconds=patience_seconds, stays_fresh=stays_fresh)
