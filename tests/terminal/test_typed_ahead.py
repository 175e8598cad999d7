"""What was typed before the box started is what the program reads."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from terminal.pseudoterminal import CTRL_D, PLAIN, claudebox_path, terminal

if TYPE_CHECKING:
    from conftest import Box

pytestmark = pytest.mark.req("TTY-01")


@pytest.mark.parametrize("is_boxed", [False, True], ids=["control", "box"])
@pytest.mark.parametrize("typed", ["", "one\n", f"one\ntw{CTRL_D}o\n"], ids=["nothing", "line", "part of a line"])
def test_end_of_input_that_was_typed_ahead_is_one(box: Box, typed: str, is_boxed: bool) -> None:
    """`script </dev/null` types one at once: the program would get a zero byte, and wait for ever."""
    box.account.write(box.project / "program", "import sys; print([sys.stdin.read()])")
    start = (claudebox_path(), *box.options, "--yes", "--run") if is_boxed else ()
    program = shlex.join([*start, "python3", "program"])
    script = f"echo waiting; until [ -e typed ]; do sleep 0.01; done; exec {program}"
    with terminal(box.account, "sh", "-c", script, cwd=box.project, env=PLAIN) as opened:
        opened.read_until("waiting")
        opened.type(typed + CTRL_D)
        box.account.write(box.project / "typed", "")
        opened.read_until(re.escape(str([typed.replace(CTRL_D, "")])))
        assert opened.wait() == 0
