"""Connects to the API: TLS with the host's trust store, through the host's proxy, kept for the next request."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from claudebox.errors import Problem
from claudebox.model import Address
from claudebox.servers.allowlist import with_port
from claudebox.servers.broker import messages
from claudebox.servers.broker.policy import Unavailable

CONNECT_SECONDS = 20.0
SILENCE_SECONDS = 600.0  # until an answer begins, and within one: Claude itself waits as long
IDLE_SECONDS = 50.0  # for which a connection is kept: servers close after a minute or more
MOST_IDLE = 8
CLOSING = ("connection", "close")
OTHERWISE = "choose: --auth passthrough, --auth none"
FAILURES = (OSError, messages.Malformed, messages.Truncated)  # TLS's are OSErrors


class Gone(Exception):
    """The side that asked has closed the connection."""


class Connection:
    """A connection to the API, for one request after the other."""

    def __init__(self, transport: socket.socket, silence: float) -> None:
        self.transport = transport
        self.silence = silence
        self.reader = messages.Reader(self._receive)
        self.is_idle = True  # whether the last answer was read to its end
        self.idle_since = 0.0
        self.asker: socket.socket | None = None  # the side that must still be there while we wait

    def ask(self, head: bytes, body: bytes) -> messages.AnswerHead:
        """Send a request, and read the head of the answer. Raises Gone, or one of the FAILURES."""
        self.is_idle = False
        self.transport.settimeout(self.silence)
        # What is small goes in one piece: one packet, one record.
        pieces = [head + body] if len(body) < 16 * 1024 else [head, body]
        with suppress(BrokenPipeError, ConnectionResetError):  # it may have answered before it had read everything
            for piece in pieces:
                self.transport.sendall(piece)
        return messages.read_answer(self.reader)

    def body(self, answer: messages.AnswerHead) -> Iterator[bytes]:
        """Read the body of the answer. Raises Malformed or Truncated if its end cannot be known."""
        yield from messages.read_body(self.reader, answer.framing)
        self.is_idle = answer.keeps_open

    def _receive(self, limit: int) -> bytes:
        """Receive. Raises Gone if the asker has closed: an answer that nobody reads costs tokens, too."""
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
        """Whether it is silent and young: the other side has neither sent anything nor closed it, nor is about to."""
        pending = self.transport.pending() if isinstance(self.transport, ssl.SSLSocket) else 0
        if time.monotonic() - self.idle_since > IDLE_SECONDS or self.reader.buffer or pending:
            return False
        poll = select.poll()
        poll.register(self.transport, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        with suppress(OSError):
            self.transport.close()


class Upstream:
    """A server, and idle connections to it. `failure` is what an error says first."""

    def __init__(
        self,
        address: Address,
        context: ssl.SSLContext,
        failure: str = "the API cannot be reached",
        silence: float = SILENCE_SECONDS,
    ) -> None:
        self.address = address
        self.context = context
        self.failure = failure
        self.silence = silence
        self.idle: list[Connection] = []
        self.lock = threading.Lock()

    @property
    def host(self) -> str:
        """What the `Host` header says."""
        address = self.address
        usual = 443 if address.is_tls else 80
        return with_port(address.host, address.port).removesuffix(f":{usual}")

    @contextmanager
    def ask(
        self, method: str, target: str, headers: messages.Headers, body: bytes, asker: socket.socket | None = None
    ) -> Iterator[tuple[messages.AnswerHead, Iterator[bytes]]]:
        """Send a request, and give the head and the body of its answer.

        Raises Unavailable, or Gone if the asker is. The connection is kept for the next request if the body was read.
        """
        framed = (*headers, ("content-length", str(len(body))))
        head = messages.head_bytes(f"{method} {self.address.prefix}{target} HTTP/1.1", framed)
        connection = self._kept() or self.connect()
        connection.asker = asker
        try:
            answer = connection.ask(head, body)
        except FAILURES as error:
            # It may have come too late on a kept connection; Claude asks again by itself.
            connection.close()
            raise self.unavailable(error) from None
        except Gone:
            connection.close()
            raise
        try:
            yield answer, connection.body(answer)
        finally:
            connection.is_idle &= CLOSING not in headers
            self.keep(connection)

    def _kept(self) -> Connection | None:
        with self.lock:
            while self.idle:
                connection = self.idle.pop()
                if connection.is_usable:
                    return connection
                connection.close()
        return None

    def keep(self, connection: Connection) -> None:
        """Keep a connection for the next request, if nothing of the last answer is left on it; else close it."""
        connection.asker = None
        connection.idle_since = time.monotonic()
        with self.lock:
            if connection.is_idle and len(self.idle) < MOST_IDLE:
                self.idle.append(connection)
                return
        connection.close()

    def connect(self) -> Connection:
        """A new connection. Raises Unavailable."""
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
            raise self.unavailable(error, f"{where}: ") from None

    def unavailable(self, error: Exception, where: str = "") -> Unavailable:
        return Unavailable(f"{self.failure}: {where}{reason(error)}")


def _ask_for_tunnel(transport: socket.socket, authorization: str, address: Address) -> None:
    place = with_port(address.host, address.port)
    headers = (("proxy-authorization", authorization),) if authorization else ()
    transport.sendall(messages.head_bytes(f"CONNECT {place} HTTP/1.1", (("host", place), *headers)))
    # The answer is read byte by byte: what follows it belongs to TLS.
    answer = messages.read_answer(messages.Reader(lambda _: transport.recv(1)))
    if answer.status != 200:
        raise messages.Malformed(f"the proxy refuses (status {answer.status})")


def trust(certificates: str, extra: str = "") -> ssl.SSLContext:
    """Trust the host's store or this bundle, and what Claude Code would trust besides. Raises a Problem."""
    try:
        context = ssl.create_default_context(cafile=certificates or None)
        if extra:
            context.load_verify_locations(cafile=extra)
    except OSError as error:
        where = " or ".join(filter(None, (certificates, extra)))
        what = f"the broker cannot read the certificates that this host trusts: {where}: {error.strerror or error}"
        raise Problem(what, OTHERWISE) from None
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
