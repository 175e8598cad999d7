"""What the parent learns from a process beside the box when the box has ended."""

import os
from collections.abc import Callable
from socket import AF_UNIX, SOCK_SEQPACKET, socket, socketpair

import pytest

from claudebox.process.companion import DONE, READY, Companion


def says_nothing(_: socket) -> None:
    """As when somebody has killed it."""


def says_something(end: socket) -> None:
    end.send(READY)


def is_done(end: socket) -> None:
    end.send(b"a last line\n")
    end.send(DONE)


@pytest.mark.parametrize(("last", "said"), [(says_nothing, "lost\n"), (says_something, "lost\n"), (is_done, "")])
def test_only_its_word_counts_as_an_end(
    last: Callable[[socket], None], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    parent, child = socketpair(AF_UNIX, SOCK_SEQPACKET)
    with child:
        last(child)
        if last != is_done:
            child.close()
        Companion(parent.detach(), unfinished="lost\n").clear()
    assert capfd.readouterr().err == said


def test_nobody_reads_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows, such as the report, is not lost with it."""
    cleaned: list[bool] = []
    parent, child = socketpair(AF_UNIX, SOCK_SEQPACKET)
    child.close()
    reader, writer = os.pipe()
    os.close(reader)
    former = os.dup(2)
    os.dup2(writer, 2)
    try:
        Companion(parent.detach(), clean_up=lambda: cleaned.append(True), unfinished="lost\n").clear()
    finally:
        os.dup2(former, 2)
        os.close(former)
        os.close(writer)
    assert cleaned == [True]
