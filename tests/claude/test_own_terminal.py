"""Claude Code on the box's own terminal: a long paste, Ctrl-Z and `fg`, and a sudden end."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from claude.api import StandIn
from claude.session import DUMMY_KEY, Talk, texts
from claude.test_interactive import PROMPT, Screen
from conftest import CLAUDEBOX
from patience import comes_true
from terminal.pseudoterminal import children_of

pytestmark = [pytest.mark.req("TTY-01", "SAND-15"), pytest.mark.tmux]

PASTED = "".join(f"{number:04d}," for number in range(1000))
IS_ORDINARY = "#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{keypad_cursor_flag}"


@contextmanager
def shell_screen(talk: Talk) -> Iterator[tuple[Screen, StandIn]]:
    """An interactive shell in which claudebox was started."""
    opened = Screen(talk.account)
    shell = "PS1='host> ' exec bash --norc"
    opened.start(str(talk.project), DUMMY_KEY, shell)
    with StandIn() as api:
        try:
            assert opened.shows("host>"), opened.text()
            opened.type(shlex.join((CLAUDEBOX, *talk.words(api))), "Enter")
            assert opened.shows(PROMPT), opened.text()
            yield opened, api
        finally:
            opened.tmux("kill-server")


def is_ordinary(opened: Screen) -> bool:
    """Whether the terminal shows its usual screen, its cursor, and takes the mouse for itself."""
    return opened.tmux("display-message", "-p", "-t", "box", IS_ORDINARY) == "0 0 1 0\n"


def test_long_paste_arrives_whole(user_talk: Talk) -> None:
    with shell_screen(user_talk) as (opened, api):
        opened.tmux("set-buffer", PASTED)
        opened.tmux("paste-buffer", "-p", "-t", "box")
        assert comes_true(lambda: "asted" in opened.text() or "0999," in opened.text()), opened.text()
        opened.type("Enter")
        assert comes_true(lambda: any(PASTED in text for request in api.requests for text in texts(request)))


def test_suspended_and_resumed(user_talk: Talk) -> None:
    with shell_screen(user_talk) as (opened, _):
        for _ in range(2):
            opened.type("C-z")
            assert comes_true(lambda: "Stopped" in opened.text() and opened.text().rstrip().endswith("host>"))
            assert comes_true(lambda: is_ordinary(opened))
            opened.type("clear; echo the shell lis''tens", "Enter")
            assert opened.shows("the shell listens"), opened.text()
            opened.type("clear; fg", "Enter")
            assert opened.shows(PROMPT), opened.text()


def test_killed(user_talk: Talk) -> None:
    with shell_screen(user_talk) as (opened, _):
        shell = int(opened.tmux("display-message", "-p", "-t", "box", "#{pane_pid}"))
        os.kill(children_of(shell)[0], signal.SIGKILL)
        assert comes_true(lambda: is_ordinary(opened))
        opened.type("clear; echo the shell lis''tens", "Enter")
        assert opened.shows("the shell listens"), opened.text()
