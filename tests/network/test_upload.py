"""Uploads from a box with a network of its own: steady, and not in leaps with long pauses between them."""

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Box
from network.internet import Internet

UPLOAD = Path(__file__).with_name("upload.py")
SERVER, PORT = "198.51.100.10", 8085
TIMES = 3
SIZE = 60_000_000
# Seconds without progress. Without the settings pauses double from 0.2 on, in about half of all runs beyond this.
LONGEST_PAUSE = 1.5
SETTINGS = "cd /proc/sys/net/ipv4; cat tcp_congestion_control tcp_frto; cat tcp_rto_min_us 2>/dev/null || echo 50000"


@pytest.fixture
def drain(internet: Internet) -> Iterator[None]:
    """A server on the internet that takes all that comes, and says when it has come."""
    with internet.internet.entered():
        listener = socket.create_server((SERVER, PORT))
    thread = threading.Thread(target=serve, args=(listener,), daemon=True)
    thread.start()
    yield
    listener.shutdown(socket.SHUT_RDWR)  # which wakes the thread
    listener.close()
    thread.join(10)


def serve(listener: socket.socket) -> None:
    buffer = bytearray(1 << 18)
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            try:
                while connection.recv_into(buffer):
                    pass
                connection.sendall(b".")
            except OSError:
                pass  # the client has given up


@pytest.mark.req("NET-02")
@pytest.mark.usefixtures("drain")
def test_upload_never_pauses_for_long(box: Box, pasta: str) -> None:
    if not is_recent(pasta):
        return  # too old for the settings: it may stall, as it does without a box
    shutil.copy(UPLOAD, box.project)
    done = box.inside("python3", "upload.py", SERVER, str(PORT), str(SIZE), str(TIMES), options=("--network", "inet"))
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < LONGEST_PAUSE


@pytest.mark.req("NET-02")
def test_box_repeats_soon_what_pasta_drops(box: Box, pasta: str) -> None:
    """Of the box's namespace alone: the host keeps its own settings."""
    before = box.account.run("sh", "-c", SETTINGS).stdout
    steady = "reno\n0\n50000\n"
    assert (box.sh(SETTINGS, options=("--network", "inet")) == steady) is is_recent(pasta)
    assert box.account.run("sh", "-c", SETTINGS).stdout == before != steady


def is_recent(pasta: str) -> bool:
    return b"host-lo-to-ns-lo" in Path(pasta).read_bytes()
