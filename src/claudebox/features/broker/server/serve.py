"""Takes the connections of the box, until the box has ended."""

from __future__ import annotations

import select
import threading
import time

from claudebox.features.broker.server.exchange import (
    Exchange,
    Session,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

MOST_CONNECTIONS = 128
BACKLOG = 1024  # beyond it, a connection fails at once
STACK = 4 << 20  # deep answers are read by a parser that recurses
PAUSE = 0.05  # seconds


def serve(listener: socket.socket, session: Session, end: int) -> None:
    """`end` becomes readable when there is nobody left to serve."""
    threading.stack_size(STACK)
    places = threading.BoundedSemaphore(MOST_CONNECTIONS)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(end, select.POLLIN)
    listener.setblocking(False)
    while end not in (ready := dict(poll.poll())):
        if listener.fileno() in ready:
            _accept(listener, session, places)


def _accept(listener: socket.socket, session: Session, places: threading.BoundedSemaphore) -> None:
    try:
        client, _ = listener.accept()
    except OSError:
        time.sleep(PAUSE)  # it went away again, or there are no descriptors left
        return
    client.setblocking(True)
    if not places.acquire(blocking=False):
        client.close()
        return
    try:
        threading.Thread(target=_serve_one, args=(session, client, places), daemon=True).start()
    except RuntimeError:
        client.close()
        places.release()


def _serve_one(session: Session, client: socket.socket, places: threading.BoundedSemaphore) -> None:
    try:
        Exchange(session, client).run()
    finally:
        places.release()
