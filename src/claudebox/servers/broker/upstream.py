"""Connects to the API: TLS with the host's trust store, through the host's proxy, kept for the next request."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time

from claudebox.features.broker.decide import no_trust
from claudebox.model import Address
from claudebox.servers.broker.messages import (
    AnswerHead,
    Headers,
    Malformed,
    Reader,
    Truncated,
    head_bytes,
    read_answer,
)

CONNECT_SECONDS = 20.0
SILENCE_SECONDS = 600.0  # until an answer begins, and within one: Claude itself waits as long
IDLE_SECONDS = 50.0  # for which a connection is kept: servers close after a minute or more
MOST_IDLE = 8
FAILURES = (OSError, Malformed, Truncated)  # TLS's are OSErrors


class Unreachable(Exception):
    """The API cannot be reached. The message says why."""


class Gone(Exception):
    """The side that asked has closed the connection."""


class Connection:
    """A connection to the API, on which one request after the other is made."""

    def __init__(self, transport: socket.socket, silence: float) -> None:
        self.transport = transport
        self.silence = silence
        self.reader = Reader(self._receive)
        self.is_fresh = True
        self.idle_since = 0.0
        self.asker: socket.socket | None = None  # the side that must still be there while we wait

    def ask(self, head: bytes, body: bytes) -> AnswerHead:
        """Send a request, and read the head of the answer. Raises Gone, or one of the FAILURES."""
        self.transport.settimeout(self.silence)
        self.reader.next_message()
        # What is small goes in one piece: one packet, one record.
        pieces = [head + body] if len(body) < 16 * 1024 else [head, body]
        try:
            for piece in pieces:
                self.transport.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it may have answered before it had read everything
        return read_answer(self.reader)

    def _receive(self, limit: int) -> bytes:
        """Receive. Raises Gone if nobody waits for it any more: an answer that nobody reads costs, too."""
        if self.asker is None:
            return self.transport.recv(limit)
        # This must not block: what is there may belong to TLS alone, and no answer has come yet.
        self.transport.settimeout(0)
        while True:
            try:
                return self.transport.recv(limit)
            except (ssl.SSLWantReadError, BlockingIOError):
                self._wait(self.asker, select.POLLIN)
            except ssl.SSLWantWriteError:
                self._wait(self.asker, select.POLLOUT)

    def _wait(self, asker: socket.socket, event: int) -> None:
        poll = select.poll()
        poll.register(self.transport, event)
        poll.register(asker, select.POLLIN)
        deadline = time.monotonic() + self.silence
        while (left := deadline - time.monotonic()) > 0:
            ready = dict(poll.poll(left * 1000))
            if self.transport.fileno() in ready:
                return
            if asker.fileno() in ready:
                if not asker.recv(1, socket.MSG_PEEK):
                    raise Gone
                poll.unregister(asker)  # it has sent its next request already
        raise TimeoutError

    @property
    def is_usable(self) -> bool:
        """Whether the other side has sent nothing since, not even an end, and is not about to close by its age."""
        pending = self.transport.pending() if isinstance(self.transport, ssl.SSLSocket) else 0
        if time.monotonic() - self.idle_since > IDLE_SECONDS or self.reader.buffer or pending:
            return False
        poll = select.poll()
        poll.register(self.transport, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        try:
            self.transport.close()
        except OSError:
            pass


class Upstream:
    """The API, and the connections to it that nobody uses at the moment."""

    def __init__(self, address: Address, context: ssl.SSLContext, silence: float = SILENCE_SECONDS) -> None:
        self.address = address
        self.context = context
        self.silence = silence
        self.idle: list[Connection] = []
        self.lock = threading.Lock()

    @property
    def host(self) -> str:
        """What the `Host` header says."""
        address = self.address
        name = f"[{address.host}]" if ":" in address.host else address.host
        return name if address.port == (443 if address.is_tls else 80) else f"{name}:{address.port}"

    def ask(
        self, method: str, target: str, headers: Headers, body: bytes, asker: socket.socket | None = None
    ) -> tuple[Connection, AnswerHead]:
        """Send a request, and read the head of its answer. Raises Unreachable, or Gone if the asker is."""
        framed = (*headers, ("content-length", str(len(body))))
        head = head_bytes(f"{method} {self.address.prefix}{target} HTTP/1.1", framed)
        connection = self._kept() or self.connect()
        while True:
            connection.asker = asker
            try:
                return connection, connection.ask(head, body)
            except Gone:
                connection.close()
                raise
            except FAILURES as error:
                connection.close()
                # If the other side had closed a kept connection meanwhile, nobody has seen the request.
                if connection.is_fresh or connection.reader.has_begun or isinstance(error, TimeoutError):
                    raise Unreachable(reason(error)) from None
            connection = self.connect()

    def _kept(self) -> Connection | None:
        with self.lock:
            while self.idle:
                connection = self.idle.pop()
                if connection.is_usable:
                    connection.is_fresh = False
                    return connection
                connection.close()
        return None

    def keep(self, connection: Connection) -> None:
        """Keep a connection for the next request, once an answer was read to its end."""
        connection.asker = None
        connection.idle_since = time.monotonic()
        with self.lock:
            if len(self.idle) < MOST_IDLE:
                self.idle.append(connection)
                return
        connection.close()

    def connect(self) -> Connection:
        """A new connection. Raises Unreachable."""
        address, proxy = self.address, self.address.proxy
        transport = None
        try:
            place = (proxy.host, proxy.port) if proxy else (address.host, address.port)
            transport = socket.create_connection(place, CONNECT_SECONDS)
            transport.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if proxy is not None:
                _ask_for_tunnel(transport, proxy.authorization, address)
            if address.is_tls:
                transport = self.context.wrap_socket(transport, server_hostname=address.host)
            return Connection(transport, self.silence)
        except FAILURES as error:
            if transport is not None:
                transport.close()
            # The box reads this, and the names of other machines here are none of its business.
            where = "through the proxy of this host" if proxy else f"{address.host}:{address.port}"
            raise Unreachable(f"{where}: {reason(error)}") from None


def _ask_for_tunnel(transport: socket.socket, authorization: str, address: Address) -> None:
    place = f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}"
    headers = (("proxy-authorization", authorization),) if authorization else ()
    transport.sendall(head_bytes(f"CONNECT {place} HTTP/1.1", (("host", place), *headers)))
    # The answer is read byte by byte: what follows it belongs to TLS.
    answer = read_answer(Reader(lambda _: transport.recv(1)))
    if answer.status != 200:
        raise Malformed(f"the proxy refuses (status {answer.status})")


def trust(certificates: str, extra: str = "") -> ssl.SSLContext:
    """Trust the host's store or this bundle, and what Claude Code would trust besides. Raises a Problem."""
    try:
        context = ssl.create_default_context(cafile=certificates or None)
        if extra:
            context.load_verify_locations(cafile=extra)
    except OSError as error:
        raise no_trust(error.strerror or str(error)) from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError):
        return str(error.strerror or error)
    return str(error) or "it closed the connection"
