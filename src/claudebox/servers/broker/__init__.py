"""Keeps Claude's key or login outside of the box: the box talks to a port, and the broker behind it to the API.

The broker is a process of its own beside the box, one for each launch. This file has its story, from the start to the
end of a request. messages.py reads what the box and the API send, policy.py says what passes, body.py what the API may
be asked, credentials.py gets the credential, upstream.py connects to the API, and usage.py counts.

Each connection of the box has a thread, which does one thing after the other with sockets that block. Claude has a
handful of connections, not thousands; an event loop would turn each step that waits (TLS, a proxy, a lock on the
login) inside out, and `asyncio` alone takes more memory than all the rest.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from claudebox.model import Broker
from claudebox.process.companion import READY
from claudebox.record import Record
from claudebox.servers import carrier
from claudebox.servers.broker import messages, policy
from claudebox.servers.broker.body import check_body
from claudebox.servers.broker.credentials import ANSWER_SECONDS, NOT_RENEWED, Fixed, Subscription, renew
from claudebox.servers.broker.policy import FAILED, Refusal
from claudebox.servers.broker.upstream import CLOSING, Gone, Upstream, trust
from claudebox.servers.broker.usage import Allowance, Meter, Usage

LONGEST_WORD = 16  # that comes with the listener
MOST_CONNECTIONS = 128  # those beyond wait in the kernel
STACK_BYTES = 4 << 20  # for each thread: the parser that reads deep answers recurses
IDLE_SECONDS = 600.0  # for which a connection of the box may be silent
LINGER_SECONDS = 2.0
LARGEST_BODY = 34 * 1024 * 1024  # the API takes 32
FREE = "/v1/messages/count_tokens"  # it answers with a number, and costs nothing
HERE = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


class Session(Record):
    """What all connections of a box share."""

    dummy: str
    credential: Fixed | Subscription
    upstream: Upstream
    meter: Meter
    fetches: bool  # whether the API may fetch for the box


def run(broker: Broker, dummy: str, end: int, channel: int) -> None:
    """Serve the box until `end` becomes readable. Raises a Problem if that cannot be.

    The channel is told when all is ready, and brings the listener. It ends without one if there will be no box.
    """
    session = make_session(broker, dict(os.environ), dummy)
    # A shutdown or a logout sends this to all: the box ends by it, and this process with the box.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    parent = socket.socket(fileno=channel)  # which notices the end of this process by the end of it
    try:
        os.write(channel, READY)
        threading.Thread(target=_warm, args=(session,), daemon=True).start()
        _, listeners, _, _ = socket.recv_fds(parent, LONGEST_WORD, 1)
        for listener in listeners:
            serve(socket.socket(fileno=listener), session, end)
    finally:
        session.credential.settle()


def make_session(broker: Broker, environ: dict[str, str], dummy: str) -> Session:
    """Get everything ready. Raises a Problem if the broker could not do its work.

    The network is not tried: nobody should wait for it here.
    """
    context = trust(broker.certificates, broker.extra_certificates)
    credential: Fixed | Subscription
    if broker.variable:
        credential = Fixed(broker.variable, environ[broker.variable])
    else:
        endpoint = Upstream(broker.renewal, context, NOT_RENEWED, ANSWER_SECONDS)
        credential = Subscription(broker.file, broker.locks, broker.lock, partial(renew, endpoint))
    return Session(
        dummy=dummy,
        credential=credential,
        upstream=Upstream(broker.api, context),
        meter=Meter(Allowance(**dict(broker.limits)), broker.journal),
        fetches=broker.fetches,
    )


def _warm(session: Session) -> None:
    """Renew the login if it is due, and connect, before Claude asks. Errors are reported when Claude asks."""
    with suppress(Refusal):
        session.credential.headers()
        session.upstream.keep(session.upstream.connect())


def serve(listener: socket.socket, session: Session, end: int) -> None:
    work = partial(_serve_one, session)
    carrier.serve([(listener, work)], (end,), MOST_CONNECTIONS, STACK_BYTES)


def _serve_one(session: Session, client: socket.socket) -> None:
    Exchange(session, client).run()


class Exchange:
    """Serves a connection of the box: checks each request, sends it with the real credential, passes the answer on."""

    def __init__(self, session: Session, client: socket.socket) -> None:
        self.session = session
        self.client = client
        self.reader = messages.Reader(client.recv)
        self.stays_open = True  # whether another request may follow
        client.settimeout(IDLE_SECONDS)

    def run(self) -> None:
        # After one of these nothing can or may be said any more.
        with suppress(messages.Truncated, Gone, policy.Leak, OSError):
            while self.stays_open:
                self._answer_one()

    def _answer_one(self) -> None:
        self.stays_open, target = False, ""  # as long as nobody knows where the next request begins
        try:
            head = messages.read_request(self.reader)
            target = head.target
            with self.session.meter.room(head.framing.length):
                body = self._take(head)
                if body is None:
                    self.client.sendall(HERE)
                else:
                    if not self.session.fetches:
                        check_body(body, head.headers)
                    self.session.meter.admit()
                    self._forward(head, body)
        except messages.Malformed as error:
            self._refuse(target, Refusal(400, policy.INVALID, f"malformed request: {error}"))
        except Refusal as refusal:
            self._refuse(target, refusal)

    def _take(self, head: messages.RequestHead) -> bytes | None:
        """Read the whole request before any of it is sent: it may have to be sent twice, and is framed anew.

        Returns its body, or None if it only asks whether somebody is here. If it is refused, its body is read all the
        same: Claude looks at no answer before it has sent everything.
        """
        refusal, is_forwarded = None, False
        try:
            is_forwarded = policy.check_request(head.method, head.target, head.headers, self.session.dummy)
        except Refusal as error:
            refusal = error
        body = self._body(head.framing, keeps=is_forwarded)
        self.stays_open = head.keeps_open
        if refusal is not None:
            raise refusal
        return body if is_forwarded else None

    def _body(self, framing: messages.Framing, *, keeps: bool) -> bytes:
        too_large = Refusal(413, policy.TOO_LARGE, "the request is too large")
        if framing.length > LARGEST_BODY:
            raise too_large
        body, size = bytearray(), 0
        try:
            for piece in messages.read_body(self.reader, framing):
                size += len(piece)
                if size > LARGEST_BODY:
                    raise too_large
                if keeps:
                    body += piece
        except TimeoutError:
            raise Refusal(408, FAILED, "the request did not end") from None
        return bytes(body)

    def _forward(self, head: messages.RequestHead, body: bytes) -> None:
        """Send the request to the API and pass the answer on. Whatever comes of it is counted and noted."""
        session, started, refused = self.session, time.monotonic(), None
        status, usage = 0, Usage(is_stream=True)
        try:
            for _ in range(2):
                credential = session.credential.headers()
                headers = policy.sent_headers(head.headers, session.upstream.host, credential)
                with session.upstream.ask(head.method, head.target, headers, body, self.client) as (answer, pieces):
                    if answer.status != 401:
                        status, usage = answer.status, Usage(is_stream=_kind(answer).startswith("text/event-stream"))
                        self._relay(answer, pieces, usage)
                        break
                session.credential.renew(credential)
            else:
                raise policy.Revoked("the API does not accept the credential of this host; log in again there")
        except Refusal as refusal:
            status, refused = refusal.status, refusal
        except policy.Leak:
            status = 502
            raise
        finally:
            path = head.target.partition("?")[0]
            usage.finish(body, status, is_free=path == FREE)
            session.meter.release(usage.taken + usage.made)
            spent = {"input_tokens": usage.taken, "output_tokens": usage.made}
            milliseconds = int((time.monotonic() - started) * 1000)
            session.meter.note(path=path, model=usage.model, **spent, status=status, ms=milliseconds)
        # This comes last: a box that has seen the end may ask again at once, and this one has to be counted by then.
        if refused is None:
            self.client.sendall(messages.LAST_CHUNK)
        else:
            self._say_why(refused)

    def _relay(self, answer: messages.AnswerHead, pieces: Iterator[bytes], usage: Usage) -> None:
        """Pass the answer on piece by piece, without its last chunk. Until that comes, the answer counts as cut off."""
        if 300 <= answer.status < 400:
            raise Refusal(502, FAILED, "the API leads elsewhere, where the credential does not go")
        if dict(answer.headers).get("content-encoding", "identity").lower() != "identity":
            raise Refusal(502, FAILED, "the answer is compressed, although the broker asked for a plain one")
        cutter = policy.Cutter(self.session.credential.secrets)
        headers = (*policy.answered_headers(answer.headers, cutter.is_clean), ("transfer-encoding", "chunked"))
        try:
            self.client.sendall(self._head(f"{answer.status} Answer", headers))
            for piece in cutter.pieces(pieces):
                usage.feed(piece)
                self.client.sendall(messages.chunk(piece))
        except messages.Malformed:
            raise Gone from None

    def _refuse(self, target: str, refusal: Refusal) -> None:
        self.session.meter.note_refusal(target, refusal.status)
        self._say_why(refusal)

    def _say_why(self, refusal: Refusal) -> None:
        error = {"type": refusal.kind, "message": f"claudebox: {refusal.message}"}
        body = json.dumps({"type": "error", "error": error}).encode()
        headers = (
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("x-should-retry", "true" if refusal.may_retry else "false"),
        )
        said = self._head(f"{refusal.status} Refused", headers) + body
        if self.stays_open:
            self.client.sendall(said)
        else:
            carrier.say_last(self.client, said, LINGER_SECONDS)

    def _head(self, status: str, headers: messages.Headers) -> bytes:
        closing = () if self.stays_open else (CLOSING,)
        return messages.head_bytes(f"HTTP/1.1 {status}", (*headers, *closing))


def _kind(answer: messages.AnswerHead) -> str:
    return dict(answer.headers).get("content-type", "").lower()
