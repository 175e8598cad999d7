"""The size of the terminal, now and when it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from terminal.pseudoterminal import program_terminal

if TYPE_CHECKING:
    from conftest import Box

REPORT_SIZE = """\
import os, signal, time

def report(*_):
    columns, rows = os.get_terminal_size(0)
    os.write(1, f"size {rows}x{columns}\\n".encode())

signal.signal(signal.SIGWINCH, report)
report()
while True:
    time.sleep(0.1)  # pause() would forget a signal that comes just before it
"""


@pytest.mark.req("SAND-15")
def test_resize_reaches_the_program(box: Box) -> None:
    with program_terminal(box, "python3", REPORT_SIZE) as terminal:
        terminal.read_until("size 24x80")
        terminal.resize(50, 132)
        terminal.read_until("size 50x132")
        terminal.resize(10, 40)
        terminal.read_until("size 10x40")
