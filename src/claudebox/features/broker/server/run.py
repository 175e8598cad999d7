"""Runs the broker: makes it ready, says so, and serves the box until that has ended."""

from __future__ import annotations

import os
import select
import signal
import socket
import ssl
import sys
import threading
import time

from claudebox.features.broker.act import remove
from claudebox.features.broker.decide import SOCKET, TOKEN_URL
from claudebox.features.broker.server.credentials import URL, Fixed, Revoked, Subscription, TokenEndpoint, Unavailable
from claudebox.features.broker.server.exchange import Exchange, Session
from claudebox.features.broker.server.upstream import API, Unreachable, Upstream, find_proxy, read_address, trust
from claudebox.features.broker.server.usage import Allowance, Journal, Meter
from claudebox.host.variables import BASE_URL
from claudebox.model import Broker
from claudebox.process.companion import READY

MOST_CONNECTIONS = 128
STACK_BYTES = 4 << 20  # for each thread: the parser that reads deep answers recurses
PAUSE_SECONDS = 0.05  # after a connection that could not be accepted


def run(broker: Broker, dummy: str, listener: int, end: int, report: int) -> None:
    """Serve the box. `report` is told when all is ready. Raises a Problem if that cannot be."""
    session = make_session(broker, dict(os.environ), dummy)
    # A shutdown or a logout asks with this signal before it kills.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    signals = open_signals()
    try:
        os.write(report, READY)
        threading.Thread(target=_warm, args=(session,), daemon=True).start()
        remove_dead(broker.sockets)
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
    address = read_address(broker.url or API, BASE_URL)
    return Session(
        dummy=dummy,
        credential=_credential(broker, environ, context),
        upstream=Upstream(address, find_proxy(environ, address), context),
        meter=Meter(Allowance(**dict(broker.limits))),
        journal=Journal(broker.journal),
    )


def _credential(broker: Broker, environ: dict[str, str], context: ssl.SSLContext) -> Fixed | Subscription:
    if broker.variable:
        return Fixed(broker.variable, environ[broker.variable])
    address = read_address(environ.get(TOKEN_URL) or URL, TOKEN_URL)
    endpoint = TokenEndpoint(Upstream(address, find_proxy(environ, address), context))
    return Subscription(broker.file, broker.locks, broker.lock, endpoint.exchange)


def remove_dead(sockets: str) -> None:
    """Remove the sockets of brokers that were killed together with their boxes: nobody listens there any more."""
    for name in os.listdir(sockets):
        directory = f"{sockets}/{name}"
        with socket.socket(socket.AF_UNIX) as trial:
            trial.setblocking(False)  # a broker that does not answer is alive
            try:
                parent = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    trial.connect(f"/proc/self/fd/{parent}/{SOCKET}")
                finally:
                    os.close(parent)
            except ConnectionRefusedError:
                remove(directory)
            except OSError:
                continue


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
    poll.register(listener, select.POLLIN)
    poll.register(end, select.POLLIN)
    poll.register(signals, select.POLLIN)
    listener.setblocking(False)
    while end not in (ready := dict(poll.poll())):
        if listener.fileno() in ready:
            _accept(listener, session, places)


def _accept(listener: socket.socket, session: Session, places: threading.BoundedSemaphore) -> None:
    try:
        client, _ = listener.accept()
    except OSError:
        time.sleep(PAUSE_SECONDS)  # the client went away again, or there are no descriptors left
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
