"""A kernel that cannot tell when a process has ended has no witness; the box starts all the same."""

from __future__ import annotations

import errno
import os

import pytest

from claudebox.launch.parent import witness


def test_without_pidfd_there_is_no_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", missing)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a process was started"))
    nobody = witness.stand_by(os.getpid(), [lambda _: None])
    assert nobody == -1
    witness.release(nobody)
