"""What the relay makes of signals, and of what the leader says."""

import os
import signal

import pytest

from claudebox.sandbox.terminal import GO_ON_BEHIND, GOES_ON, STOP, BoxTerminal
from claudebox.sandbox.terminal.relay import Relay

STOP_AND_GO = (signal.SIGTSTP, signal.SIGCONT)


@pytest.mark.req("TTY-01")
@pytest.mark.parametrize(
    ("numbers", "orders"),
    [(STOP_AND_GO, GO_ON_BEHIND), (STOP_AND_GO[::-1], GO_ON_BEHIND + STOP), (STOP_AND_GO * 2, GO_ON_BEHIND)],
)
def test_later_of_a_stop_and_a_continuation_counts(numbers: tuple[int, ...], orders: bytes) -> None:
    """Both may have come before it looks: Ctrl-Z right after `fg`, or `fg` right after Ctrl-Z."""
    null = os.open(os.devnull, os.O_RDWR)
    heard, ordering = os.pipe()
    # What is no terminal has no size and no modes, so nothing but orders comes of it.
    terminal = BoxTerminal(null, -1, -1, ordering, os.memfd_create("note"), False)
    relay = Relay(terminal, 0, lambda: bytes(numbers), lambda: None)
    relay.wants_keys = False
    relay._note_signals()
    relay._act_on_signals()
    assert os.read(heard, 10) == orders


@pytest.mark.req("TTY-01")
def test_box_that_stops_again_at_once_does_not_hold_the_keys() -> None:
    """The leader has told the next stop already, which is served before the box's terminal is."""
    null = os.open(os.devnull, os.O_RDWR)
    stops, telling = os.pipe()
    typed, master = os.pipe()
    terminal = BoxTerminal(null, master, stops, os.pipe()[1], os.memfd_create("note"), False)
    relay = Relay(terminal, 0, bytes, lambda: None)
    relay.awaited = 1
    relay.keys = b"\x03"
    os.write(telling, GOES_ON + bytes([signal.SIGTTIN]))
    relay._hear_leader(stops)
    relay._hear_leader(stops)
    assert relay.awaited == 1
    os.set_blocking(typed, False)
    assert os.read(typed, 10) == b"\x03"
