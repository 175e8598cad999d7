"""Connects to the API: TLS with the host's trust store, through the host's proxy, kept for the next request."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from claudebox.errors import Problem
from claudebox.features.broker.act import PROXIES, no_trust
from claudebox.features.broker.decide import OTHERWISE
from claudebox.features.broker.server.messages import (
    AnswerHead,
    Ended,
    Malformed,
    Reader,
    Truncated,
    head_bytes,
    read_answer,
)
from claudebox.features.broker.server.policy import Headers
from claudebox.host.variables import BASE_URL
from claudebox.record import Record

CONNECT_SECONDS = 20.0
SEND_SECONDS = 300.0
SILENCE_SECONDS = 600.0  # until an answer begins, and within one: Claude itself waits as long
IDLE_SECONDS = 50.0  # for which a connection is kept: servers close after a minute or more
MOST_IDLE = 8
FAILURES = (OSError, Malformed, Ended, Truncated)  # TLS's are OSErrors

API = "https://api.anthropic.com"
PORTS = {"https": 443, "http": 80}


class Unreachable(Exception):
    """The API cannot be reached. The message says why."""


class Gone(Exception):
    """The side that asked has closed the connection."""


class Connection:
    """A connection to the API, on which one request after the other is made."""

    def __init__(self, transport: socket.socket) -> None:
        self.transport = transport
        self.reader = Reader(self._receive)
        self.is_fresh = True
        self.idle_since = 0.0
        self.asker: socket.socket | None = None  # the side that must still be there while we wait

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
        deadline = time.monotonic() + SILENCE_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            ready = dict(poll.poll(left * 1000))
            if self.transport.fileno() in ready:
                return
            if asker.fileno() in ready:
                if not asker.recv(1, socket.MSG_PEEK):
                    raise Gone
                poll.unregister(asker)  # it has sent its next request already
        raise TimeoutError

    def send(self, head: bytes, body: bytes) -> None:
        self.transport.settimeout(SEND_SECONDS)
        self.reader.next_message()
        # What is small goes in one piece: one packet, one record.
        if len(body) < 16 * 1024:
            self.transport.sendall(head + body)
        else:
            self.transport.sendall(head)
            self.transport.sendall(body)
        self.transport.settimeout(SILENCE_SECONDS)

    @property
    def has_more(self) -> bool:
        """Whether something was received that has not been read: polling would not tell."""
        pending = self.transport.pending() if isinstance(self.transport, ssl.SSLSocket) else 0
        return bool(self.reader.buffer) or pending > 0

    @property
    def is_usable(self) -> bool:
        """Whether the other side has sent nothing since, not even an end, and is not about to close by its age."""
        if time.monotonic() - self.idle_since > IDLE_SECONDS or self.has_more:
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

    def __init__(self, address: Address, proxy: Proxy | None, context: ssl.SSLContext) -> None:
        self.address = address
        self.proxy = proxy
        self.context = context
        self.idle: list[Connection] = []
        self.is_closed = False
        self.lock = threading.Lock()

    def begin(self, method: str, target: str, headers: Headers, body: bytes, *, afresh: bool) -> Connection:
        """Send a request, on a new connection if asked to. Raises Unreachable."""
        framed = (*headers, ("content-length", str(len(body))))
        head = head_bytes(f"{method} {self.address.prefix}{target} HTTP/1.1", framed)
        connection = None if afresh else self._kept()
        if connection is not None:
            try:
                connection.send(head, body)
            except OSError:
                connection.close()
            else:
                return connection
        connection = self.connect()
        try:
            connection.send(head, body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it may have answered before it had read everything
        except OSError as error:
            connection.close()
            raise Unreachable(reason(error)) from None
        return connection

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
            if len(self.idle) < MOST_IDLE and not self.is_closed:
                self.idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self.lock:
            self.is_closed = True
            while self.idle:
                self.idle.pop().close()

    def connect(self) -> Connection:
        """A new connection. Raises Unreachable."""
        first = self.proxy or self.address
        transport = None
        try:
            transport = socket.create_connection((first.host, first.port), CONNECT_SECONDS)
            transport.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.proxy is not None:
                _ask_for_tunnel(transport, self.proxy, self.address)
            if self.address.is_tls:
                transport = self.context.wrap_socket(transport, server_hostname=self.address.host)
            return Connection(transport)
        except FAILURES as error:
            if transport is not None:
                transport.close()
            # The box reads this, and the names of other machines here are none of its business.
            where = "through the proxy of this host" if self.proxy else f"{first.host}:{first.port}"
            raise Unreachable(f"{where}: {reason(error)}") from None


def _ask_for_tunnel(transport: socket.socket, proxy: Proxy, address: Address) -> None:
    place = f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}"
    authorization = (("proxy-authorization", proxy.authorization),) if proxy.authorization else ()
    transport.sendall(head_bytes(f"CONNECT {place} HTTP/1.1", (("host", place), *authorization)))
    # The answer is read byte by byte: what follows it belongs to TLS.
    answer: AnswerHead = read_answer(Reader(lambda _: transport.recv(1)))
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


class Address(Record):
    """The one place to which requests go."""

    host: str
    port: int
    is_tls: bool
    prefix: str = ""  # of every path

    @property
    def name(self) -> str:
        """The name that the `Host` header has."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS["https" if self.is_tls else "http"] else f"{host}:{self.port}"


class Proxy(Record):
    """An HTTP proxy that is asked for a tunnel."""

    host: str
    port: int
    authorization: str = ""


def read_address(url: str, name: str = BASE_URL) -> Address:
    """Read a URL, which this variable has. Raises a Problem."""
    try:
        return _address(url)
    except ValueError as error:
        raise Problem(f"{name} is nothing that the broker can use: {error}", OTHERWISE) from None


def _address(url: str) -> Address:
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError("it is no http or https address")
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError("it has more than a host, a port and a path")
    prefix = parts.path.rstrip("/")
    if not (url.isascii() and url.isprintable()) or " " in url:
        raise ValueError("it has characters that do not belong there")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise ValueError("without https, everybody on the way could read the credential")
    return Address(parts.hostname, parts.port or PORTS[parts.scheme], parts.scheme == "https", prefix)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def find_proxy(environ: dict[str, str], address: Address) -> Proxy | None:
    """Find the proxy that Claude Code would use on the host. Raises a Problem."""
    url = next((environ[name] for name in PROXIES if environ.get(name)), "")
    if not url or not address.is_tls or _goes_around(environ, address):  # no tunnel for what is not encrypted
        return None
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"a proxy of the kind {parts.scheme}:// cannot be used")
        return Proxy(parts.hostname, parts.port or PORTS["http"], _basic(parts.username, parts.password))
    except ValueError as error:
        raise Problem(f"the broker cannot use the proxy of this host: {error}", OTHERWISE) from None


def _basic(name: str | None, password: str | None) -> str:
    if name is None:
        return ""
    from base64 import b64encode

    return "Basic " + b64encode(f"{unquote(name)}:{unquote(password or '')}".encode()).decode()


def _goes_around(environ: dict[str, str], address: Address) -> bool:
    """Whether NO_PROXY names the host, a domain that it is in, or everything."""
    words = (environ.get("no_proxy") or environ.get("NO_PROXY") or "").replace(",", " ").split()
    for word in words:
        name, _, port = word.rpartition(":") if word.count(":") == 1 else (word, "", "")
        domain = name.lower().removeprefix("*").lstrip(".")
        if port and port != str(address.port):
            continue
        if name == "*" or (domain and (address.host == domain or address.host.endswith(f".{domain}"))):
            return True
    return _is_loopback(address.host)
