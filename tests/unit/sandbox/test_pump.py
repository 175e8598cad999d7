"""What is taken from a pipe and what arrives, whatever a box does to the pipes that it has in their place."""

import fcntl
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from claudebox.sandbox.pump import CHUNK, EXACT, carry_in, carry_out
from patience import PATIENCE

pytestmark = pytest.mark.req("FD-01")


class Carried:
    """A pipe of the caller and one of the box, with a thread between them."""

    def __init__(self, carry: Callable[[int, int, int], None], ends: tuple[int, int]) -> None:
        self.source, self.feed = os.pipe()
        self.sink, self.target = os.pipe()
        self.stopped, self.stop = os.pipe()
        self.theirs, self.ours = ((self.source, self.target)[end] for end in ends)
        self.thread = threading.Thread(target=self._carry, args=(carry,), daemon=True)

    def _carry(self, carry: Callable[[int, int, int], None]) -> None:
        with suppress(OSError):
            carry(self.theirs, self.ours, self.stopped)

    def end(self) -> None:
        os.close(self.stop)
        self.stop = -1
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@contextmanager
def carried(carry: Callable[[int, int, int], None], ends: tuple[int, int]) -> Iterator[Carried]:
    one = Carried(carry, ends)
    one.thread.start()
    try:
        yield one
    finally:
        if one.stop >= 0:
            one.end()
        for descriptor in (one.source, one.feed, one.sink, one.target, one.stopped):
            with suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def output() -> Iterator[Carried]:
    with carried(carry_out, (1, 0)) as one:
        yield one


@pytest.fixture
def incoming() -> Iterator[Carried]:
    with carried(carry_in, (0, 1)) as one:
        yield one


def read_exactly(descriptor: int, count: int) -> bytes:
    found = b""
    while len(found) < count:
        found += os.read(descriptor, count - len(found))
    return found


def left_in(descriptor: int) -> bytes:
    os.set_blocking(descriptor, False)
    with suppress(BlockingIOError):
        return os.read(descriptor, EXACT)
    return b""


@pytest.mark.parametrize("read", [0, 1, 4096, 5000, 9000])
def test_only_what_is_read_is_taken(incoming: Carried, read: int) -> None:
    data = os.urandom(10_000)
    os.write(incoming.feed, data)
    assert read_exactly(incoming.sink, read) == data[:read]
    incoming.end()
    assert left_in(incoming.source) == data[read:]


def test_two_who_read_one_pipe_do_not_disturb_each_other(incoming: Carried) -> None:
    """A box that does not read takes nothing from a script that does."""
    lines = [b"line %d\n" % number for number in range(1000)]
    for line in lines:
        os.write(incoming.feed, line)
        assert os.read(incoming.source, CHUNK) == line
    incoming.end()


def test_more_room_brings_nothing_twice(incoming: Carried) -> None:
    fcntl.fcntl(incoming.sink, fcntl.F_SETPIPE_SZ, EXACT)
    data = os.urandom(50_000)
    os.write(incoming.feed, data)
    assert read_exactly(incoming.sink, len(data)) == data
    os.close(incoming.feed)
    incoming.thread.join(PATIENCE)
    assert left_in(incoming.sink) == b""


def test_end_of_input_is_passed_on(incoming: Carried) -> None:
    os.close(incoming.feed)
    incoming.thread.join(PATIENCE)
    assert not incoming.thread.is_alive()


def test_end_of_a_socket_without_a_word_is_one() -> None:
    ours, theirs = socket.socketpair()
    sink, target = os.pipe()
    stopped, stop = os.pipe()
    with ours, theirs:
        ours.shutdown(socket.SHUT_WR)
        thread = threading.Thread(target=carry_in, args=(theirs.fileno(), target, stopped), daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive()
    for descriptor in (sink, target, stopped, stop):
        os.close(descriptor)


def test_what_is_in_the_pipe_at_the_end_arrives(output: Carried) -> None:
    data = os.urandom(60_000)
    os.write(output.feed, data)
    output.end()
    assert read_exactly(output.sink, len(data)) == data


def test_short_lines_take_no_more_room_than_in_one_pipe(output: Carried) -> None:
    """Many callers wait for the end before they read."""
    for _ in range(10_000):
        os.write(output.feed, b"words\n")
    output.end()
    assert read_exactly(output.sink, 60_000) == b"words\n" * 10_000


def test_who_writes_for_ever_does_not_keep_the_end(output: Carried) -> None:
    """Somebody outside has been handed a descriptor of the box."""
    is_over = threading.Event()

    def write() -> None:
        with suppress(OSError):
            while not is_over.is_set():
                os.write(output.feed, bytes(CHUNK))

    def read() -> None:
        while not is_over.is_set():
            os.read(output.sink, CHUNK)

    threads = [threading.Thread(target=work, daemon=True) for work in (write, read)]
    for thread in threads:
        thread.start()
    output.end()
    is_over.set()
    os.set_blocking(output.target, False)  # it may be full: then the reader has something to read
    with suppress(BlockingIOError):
        os.write(output.target, b".")
    left_in(output.source)
    for thread in threads:
        thread.join(PATIENCE)


def test_box_that_reads_its_own_output_stops_nobody(output: Carried) -> None:
    os.set_blocking(output.source, False)
    for _ in range(1000):
        os.write(output.feed, b"words")
        left_in(output.source)
    output.end()


def test_output_that_somebody_made_nonblocking_is_whole(output: Carried) -> None:
    """Node does so to a pipe that it shares."""
    os.set_blocking(output.target, False)
    data = os.urandom(300_000)
    writer = threading.Thread(
        target=lambda: [os.write(output.feed, data[at : at + 1000]) for at in range(0, len(data), 1000)]
    )
    writer.start()
    assert read_exactly(output.sink, len(data)) == data
    writer.join(PATIENCE)
    assert not os.get_blocking(output.target)


def test_reader_that_leaves_ends_it(output: Carried) -> None:
    """Also while nothing is written: the next word of the box is its last."""
    os.close(output.sink)
    output.thread.join(PATIENCE)
    assert not output.thread.is_alive()
