"""Keeps Claude's key or login outside of the box: the box talks to a port, and the broker behind it to the API.

The broker is a process of its own beside the box, one for each launch. policy.py says what it lets pass, messages.py
reads what the box and the API send, and credentials.py gets the credential.

Each connection of the box has a thread, which does one thing after the other with sockets that block. Claude has a
handful of connections, not thousands; an event loop would turn each step that waits (TLS, a proxy, a lock on the
login) inside out, and `asyncio` alone takes more memory than all the rest.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import time
from functools import partial

from claudebox.model import Broker
from claudebox.process.companion import READY
from claudebox.servers.broker.credentials import (
    ANSWER_SECONDS,
    Fixed,
    Revoked,
    Subscription,
    Unavailable,
    renew,
)
from claudebox.servers.broker.exchange import Exchange, Session
from claudebox.servers.broker.upstream import Unreachable, Upstream, trust
from claudebox.servers.broker.usage import Allowance, Meter

LONGEST_WORD = 16  # that comes with the listener
MOST_CONNECTIONS = 128
STACK_BYTES = 4 << 20  # for each thread: the parser that reads deep answers recurses
PAUSE_SECONDS = 0.05  # after a connection that could not be accepted


def run(broker: Broker, dummy: str, end: int, channel: int) -> None:
    """Serve the box until `end` becomes readable. Raises a Problem if that cannot be.

    The channel is told when all is ready, and brings the listener. It ends without one if there will be no box.
    """
    session = make_session(broker, dict(os.environ), dummy)
    # A shutdown or a logout asks with this signal before it kills.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    signals = open_signals()
    parent = socket.socket(fileno=channel)  # which notices the end of this process by the end of it
    try:
        os.write(channel, READY)
        threading.Thread(target=_warm, args=(session,), daemon=True).start()
        _, listeners, _, _ = socket.recv_fds(parent, LONGEST_WORD, 1)
        for listener in listeners:
            serve(socket.socket(fileno=listener), session, end, signals)
    finally:
        session.credential.settle()


def open_signals() -> int:
    """A pipe that a signal writes to. One that comes just before a wait begins would not end that wait otherwise."""
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def make_session(broker: Broker, environ: dict[str, str], dummy: str) -> Session:
    """Get everything ready. Raises a Problem if the broker could not do its work.

    The network is not tried: nobody should wait for it here.
    """
    context = trust(broker.certificates, broker.extra_certificates)
    credential: Fixed | Subscription
    if broker.variable:
        credential = Fixed(broker.variable, environ[broker.variable])
    else:
        endpoint = Upstream(broker.renewal, context, ANSWER_SECONDS)
        credential = Subscription(broker.file, broker.locks, broker.lock, partial(renew, endpoint))
    return Session(
        dummy=dummy,
        credential=credential,
        upstream=Upstream(broker.api, context),
        meter=Meter(Allowance(**dict(broker.limits)), broker.journal),
    )


def _warm(session: Session) -> None:
    """Renew the login if it is due, and connect before Claude asks. If that fails, Claude hears of it when it asks."""
    try:
        session.credential.headers()
        session.upstream.keep(session.upstream.connect())
    except (Revoked, Unavailable, Unreachable):
        pass


def serve(listener: socket.socket, session: Session, end: int, signals: int) -> None:
    """Accept connections until `end` becomes readable: then there is nobody left to serve. `signals` ends a wait."""
    threading.stack_size(STACK_BYTES)
    places = threading.BoundedSemaphore(MOST_CONNECTIONS)
    poll = select.poll()
    for descriptor in (listener.fileno(), end, signals):
        poll.register(descriptor, select.POLLIN)
    listener.setblocking(False)
    while end not in (ready := dict(poll.poll())):
        if listener.fileno() in ready:
            _accept(listener, session, places)


def _accept(listener: socket.socket, session: Session, places: threading.BoundedSemaphore) -> None:
    try:
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        time.sleep(PAUSE_SECONDS)  # the client went away again, or there are no descriptors left
        return
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
