"""Takes the connections of the box, until the box has ended."""

from __future__ import annotations

import select
import threading

from claudebox.broker.exchange import Exchange, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

MOST_CONNECTIONS = 128
BACKLOG = 1024  # beyond it, a connection fails at once
STACK = 512 * 1024


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
        return  # it went away again, or there are no descriptors left
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
