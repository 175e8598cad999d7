"""What dead brokers left is removed, and nothing of those that live."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

from claudebox.features.broker.act import listen
from claudebox.features.broker.server.run import remove_dead

NAME = "api.sock"


def test_broker_that_is_about_to_listen_is_not_dead(tmp_path: Path) -> None:
    done = threading.Event()

    def remove() -> None:
        while not done.is_set():
            remove_dead(str(tmp_path))

    thread = threading.Thread(target=remove)
    thread.start()
    listeners = []
    for number in range(300):
        directory = tmp_path / str(number)
        directory.mkdir()
        listeners.append(listen(str(directory)))
    done.set()
    thread.join()
    assert [number for number in range(300) if not (tmp_path / str(number) / NAME).exists()] == []
    for listener in listeners:
        os.close(listener)


def test_dead_broker_is_removed(tmp_path: Path) -> None:
    directory = tmp_path / "dead"
    directory.mkdir()
    os.close(listen(str(directory)))
    remove_dead(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_broker_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    """One that was stopped, whose box keeps asking."""
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as other:
        (tmp_path / "stopped").mkdir()
        listener.bind(str(tmp_path / "stopped" / NAME))
        listener.listen(0)
        other.connect(str(tmp_path / "stopped" / NAME))
        thread = threading.Thread(target=remove_dead, args=(str(tmp_path),), daemon=True)
        thread.start()
        thread.join(5)
        assert not thread.is_alive()
        assert (tmp_path / "stopped" / NAME).exists()
