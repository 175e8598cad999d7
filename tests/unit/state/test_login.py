"""Claude's login in a file: read whole or not at all, replaced at once, and locked as Claude does it."""

import errno
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from claudebox.state import login
from claudebox.state.login import STORAGE_STALE_SECONDS, Busy, locked, storage_lock

TOKENS = login.Tokens("access", "refresh", 2_000_000_000.0, ("user:inference",))
MCP = {"mcpOAuth": {"tea|1": {"accessToken": "of an MCP server"}}}


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"a": NaN}', b'{"a": -Infinity}', b'{"a": 1e999}', b"\xff", b"[" * 100_000],
    ids=lambda content: repr(content[:20]),
)
def test_what_is_no_json_object_is_nothing(content: bytes) -> None:
    assert login.parse(content) is None


def test_renewed_login_keeps_what_else_is_in_the_file() -> None:
    old: dict[str, Any] = {**MCP, login.KEY: {"accessToken": "old", "subscriptionType": "max"}}
    new = login.with_tokens(old, TOKENS)
    assert new["mcpOAuth"] == MCP["mcpOAuth"]
    assert new[login.KEY]["subscriptionType"] == "max"
    found = login.tokens_in(new)
    assert found is not None
    assert (found.access, found.refresh, found.expires_at) == ("access", "refresh", TOKENS.expires_at)


@pytest.mark.parametrize("value", [None, "", "two words", "line\nbreak", "é", 1, ["x"], "x" * 20_000])
def test_token_that_cannot_stand_in_a_header_is_none(value: object) -> None:
    assert login.tokens_in({login.KEY: {"accessToken": value, "refreshToken": "r", "expiresAt": 1}}) is None


def test_file_is_replaced_at_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / ".credentials.json"
    login.replace(str(path), {"a": 1})
    before = path.stat().st_ino
    login.replace(str(path), {"a": 2})
    assert (login.read(str(path)), path.stat().st_mode & 0o777) == ({"a": 2}, 0o600)
    assert path.stat().st_ino != before
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("call", ["posix_fallocate", "write", "fsync", "rename"])
def test_failure_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = tmp_path / ".credentials.json"
    path.write_text('{"a": 1}')

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OSError, match="No space"):
            login.replace(str(path), {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_symlink_and_fifo_and_a_large_file_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("{}")
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "large").write_bytes(b" " * login.LARGEST_FILE + b"{}")
    assert [login.read(str(tmp_path / name)) for name in ("real", "link", "fifo", "large", "none")] == [{}, *[None] * 4]


def test_lock_is_held_by_one(tmp_path: Path) -> None:
    with storage_lock(str(tmp_path), 0), pytest.raises(Busy), storage_lock(str(tmp_path), 0):
        pass
    assert list(tmp_path.iterdir()) == []


def test_lock_is_waited_for(tmp_path: Path) -> None:
    lock = tmp_path / ".storage-write.lock"
    lock.mkdir()
    threading.Timer(0.2, lock.rmdir).start()
    with storage_lock(str(tmp_path), 5):
        assert lock.exists()


@pytest.mark.parametrize(("age", "is_left"), [(9, False), (14, False), (16, True), (-9, False), (-3600, True)])
def test_lock_counts_as_left_behind_when_claude_says_so(tmp_path: Path, age: float, *, is_left: bool) -> None:
    """A moment far in the future is none either: the clock was set back."""
    lock = tmp_path / ".storage-write.lock"
    lock.mkdir()
    os.utime(lock, (time.time() - age, time.time() - age))
    try:
        with storage_lock(str(tmp_path), 0):
            taken = True
    except Busy:
        taken = False
    assert (taken, STORAGE_STALE_SECONDS) == (is_left, 15)


def test_second_lock_that_is_busy_gives_the_first_back(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    second.mkdir()
    with pytest.raises(Busy), locked((str(first), 10), (str(second), 10)):
        pass
    assert not first.exists()
