"""The locks around Claude's login: directories, as Claude Code makes them, so that it waits for us and we for it."""

from __future__ import annotations

import os
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

REFRESH = ".oauth_refresh.lock"
OLD_SUFFIX = ".lock"  # of the directory itself, which older versions lock
STORAGE = ".storage-write.lock"
STALE_SECONDS = 10.0
STALE_STORAGE_SECONDS = 15.0
HEARTBEAT_SECONDS = 2.0
PAUSE_SECONDS = 0.05
STORAGE_PATIENCE = 20.0


class Busy(Exception):
    """Somebody else holds it."""


class Locks:
    """Several, taken in order and kept fresh until the end of the `with` block."""

    def __init__(self, *places: tuple[str, float], patience: float = 0.0) -> None:
        self.places = places
        self.patience = patience
        self.held: list[str] = []
        self.done = threading.Event()

    def __enter__(self) -> Self:
        """Raises Busy if somebody else has one of them for too long."""
        deadline = time.monotonic() + self.patience
        while not self._take_all():
            if time.monotonic() > deadline:
                raise Busy
            time.sleep(PAUSE_SECONDS)
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def _take_all(self) -> bool:
        try:
            for path, stale in self.places:
                _take(path, stale)
                self.held.append(path)
        except Busy:
            self._release()
        except OSError:
            self._release()
            raise
        return bool(self.held)

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self._release()

    def _release(self) -> None:
        while self.held:
            try:
                os.rmdir(self.held.pop())
            except OSError:
                pass  # taken from us as stale

    def _beat(self) -> None:
        """Who sees an old lock takes it for one that a dead process left."""
        while not self.done.wait(HEARTBEAT_SECONDS):
            for path in tuple(self.held):
                try:
                    os.utime(path)
                except OSError:
                    pass


def refresh_locks(directory: str) -> Locks:
    real = os.path.realpath(directory)
    return Locks((f"{directory}/{REFRESH}", STALE_SECONDS), (f"{real}{OLD_SUFFIX}", STALE_SECONDS))


def storage_lock(directory: str) -> Locks:
    return Locks((f"{directory}/{STORAGE}", STALE_STORAGE_SECONDS), patience=STORAGE_PATIENCE)


def _take(path: str, stale: float) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        _remove_stale(path, stale)
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            raise Busy from None


def _remove_stale(path: str, stale: float) -> None:
    """Under another name first: of several who try that at once, one succeeds."""
    try:
        seen = os.lstat(path)
        if time.time() - seen.st_mtime <= stale:
            raise Busy
        aside = f"{path}.{os.getpid()}.{threading.get_ident()}"
        os.rename(path, aside)
        taken = os.lstat(aside)
        if (taken.st_ino, taken.st_mtime_ns) != (seen.st_ino, seen.st_mtime_ns):
            os.rename(aside, path)  # it was somebody's who was quicker
            raise Busy
        os.rmdir(aside)
    except OSError:
        raise Busy from None
