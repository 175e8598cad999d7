"""How claudebox writes its state, in directories where an agent writes at the same time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claudebox.model import Preparation
from claudebox.prepare import prepare

pytestmark = pytest.mark.req("SAND-09")


def test_symlink_in_the_place_of_the_temporary_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    state = tmp_path / "claude"
    state.mkdir()
    write = os.write

    def exchange_meanwhile(descriptor: int, content: bytes) -> int:
        (temporary,) = state.iterdir()
        temporary.unlink()
        temporary.symlink_to(secret)
        return write(descriptor, content)

    monkeypatch.setattr(os, "write", exchange_meanwhile)
    prepare((Preparation(Preparation.FILE, str(state / "settings.json"), b"{}"),))
    assert secret.stat().st_nlink == 1
    assert (state / "settings.json").is_symlink()
    assert secret.read_text() == "of the host"
