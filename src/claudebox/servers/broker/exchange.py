"""Serves a connection of the box: checks each request, sends it with the real credential, and passes the answer on."""

from __future__ import annotations

import json
import socket
import time

from claudebox.record import Record
from claudebox.servers.broker.credentials import Fixed, Revoked, Subscription, Unavailable
from claudebox.servers.broker.messages import (
    LAST_CHUNK,
    AnswerHead,
    Malformed,
    Reader,
    RequestHead,
    Truncated,
    chunk,
    head_bytes,
    read_body,
    read_request,
)
from claudebox.servers.broker.policy import (
    FAILED,
    FORBIDDEN,
    INVALID,
    TOO_LARGE,
    Cutter,
    Leak,
    Refusal,
    answered_headers,
    check_request,
    sent_headers,
)
from claudebox.servers.broker.upstream import Connection, Gone, Unreachable, Upstream
from claudebox.servers.broker.usage import Meter, Usage

IDLE_SECONDS = 600.0  # for which a connection of the box may be silent
LINGER_SECONDS = 2.0
LARGEST_BODY = 34 * 1024 * 1024  # the API takes 32
LARGE_BODY = 1024 * 1024
UNAUTHORIZED = 401
FREE = "/v1/messages/count_tokens"  # it answers with a number, and costs nothing
HERE = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


class Session(Record):
    """What all connections of a box share."""

    dummy: str
    credential: Fixed | Subscription
    upstream: Upstream
    meter: Meter


class Exchange:
    """Serves a connection until its end."""

    def __init__(self, session: Session, client: socket.socket) -> None:
        self.session = session
        self.client = client
        self.reader = Reader(client.recv)
        self.is_large = False  # whether one of the places for large requests is taken
        self.is_in_step = True  # whether what comes next on the connection is the beginning of a request
        client.settimeout(IDLE_SECONDS)

    def run(self) -> None:
        try:
            while self._answer_one():
                self._make_room()
        except (Truncated, Gone, Leak, OSError):
            pass  # nothing can or may be said any more
        finally:
            self._make_room()
            self.client.close()

    def _make_room(self) -> None:
        if self.is_large:
            self.is_large = False
            self.session.meter.large.release()

    def _answer_one(self) -> bool:
        """Answer one request. Returns whether another one may follow."""
        self.reader.next_message()
        target, stays_open, self.is_in_step = "", False, False
        try:
            head = read_request(self.reader)
            target = head.target
            stays_open = "close" not in dict(head.headers).get("connection", "").lower()
            is_forwarded, body = self._take(head)
            if is_forwarded:
                self.session.meter.admit()
        except (Malformed, Refusal) as error:
            refusal = error if isinstance(error, Refusal) else malformed(error)
            self.session.meter.note_refusal(target, refusal.status)
            return self._refuse(refusal, stays_open=stays_open and self.is_in_step)
        if not is_forwarded:
            self.client.sendall(HERE)
            return stays_open
        try:
            self._forward(head, body, stays_open=stays_open)
        except Refusal as refusal:
            return self._refuse(refusal, stays_open=stays_open)
        return stays_open

    def _take(self, head: RequestHead) -> tuple[bool, bytes]:
        """Read the whole request before any of it is sent: it may have to be sent twice, and is framed anew.

        If it is refused, its body is read all the same: Claude looks at no answer before it has sent everything.
        """
        refusal: Refusal | None = None
        is_forwarded = False
        try:
            is_forwarded = check_request(head.method, head.target, head.headers, self.session.dummy)
        except Refusal as error:
            refusal = error
        body = self._body(head, keeps=refusal is None)
        self.is_in_step = True
        if refusal is not None:
            raise refusal
        return is_forwarded, body

    def _body(self, head: RequestHead, *, keeps: bool) -> bytes:
        if head.framing.length > LARGEST_BODY:
            raise _too_large()
        body, size = bytearray(), 0
        try:
            for piece in read_body(self.reader, head.framing):
                size += len(piece)
                if size > LARGEST_BODY:
                    raise _too_large()
                if keeps and size > LARGE_BODY and not self.is_large:
                    self.is_large = self.session.meter.large.acquire(timeout=IDLE_SECONDS)
                    if not self.is_large:
                        raise TimeoutError
                if keeps:
                    body += piece
        except TimeoutError:
            raise Refusal(408, FAILED, "claudebox: the request did not end") from None
        return bytes(body)

    def _forward(self, head: RequestHead, body: bytes, *, stays_open: bool) -> None:
        session = self.session
        started = time.monotonic()
        status, usage = 0, Usage(is_stream=True)
        try:
            connection, answer = self._ask(head, body)
            status = answer.status
            try:
                kind = dict(answer.headers).get("content-type", "").lower()
                usage = Usage(is_stream=kind.startswith("text/event-stream"))
                self._relay(connection, answer, usage, stays_open=stays_open)
            except BaseException:
                connection.close()
                raise
            if answer.keeps_open:
                session.upstream.keep(connection)
            else:
                connection.close()
        except Refusal as refusal:
            status = refusal.status
            raise
        except Leak:
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
        self.client.sendall(LAST_CHUNK)

    def _ask(self, head: RequestHead, body: bytes) -> tuple[Connection, AnswerHead]:
        """Get the API's answer, which is never that the credential is wrong. Raises a Refusal."""
        try:
            for _ in range(2):
                credential = self.session.credential.headers()
                headers = sent_headers(head.headers, self.session.upstream.host, credential)
                connection, answer = self.session.upstream.ask(head.method, head.target, headers, body, self.client)
                if answer.status != UNAUTHORIZED:
                    break
                connection.close()
                self.session.credential.renew(credential)
            else:
                raise Revoked("the API does not accept the credential of this host; log in again there")
        except Revoked as error:
            raise Refusal(403, FORBIDDEN, f"claudebox: {error}") from None
        except Unavailable as error:
            raise Refusal(502, FAILED, f"claudebox: {error}", may_retry=True) from None
        except Unreachable as error:
            raise Refusal(502, FAILED, f"claudebox: the API cannot be reached: {error}", may_retry=True) from None
        if 300 <= answer.status < 400:
            connection.close()
            raise Refusal(502, FAILED, "claudebox: the API leads elsewhere, where the credential does not go")
        if dict(answer.headers).get("content-encoding", "identity").lower() != "identity":
            connection.close()
            raise Refusal(502, FAILED, "claudebox: the answer is compressed, although the broker asked for a plain one")
        return connection, answer

    def _relay(self, connection: Connection, answer: AnswerHead, usage: Usage, *, stays_open: bool) -> None:
        """Pass the answer on piece by piece, except for its end. Without that, the box sees that it was cut off."""
        cutter = Cutter(self.session.credential.secrets)
        kept = answered_headers(answer.headers, cutter.is_clean)
        closing = () if stays_open else (("connection", "close"),)
        first = f"HTTP/1.1 {answer.status} Answer"
        framed = (*kept, *closing, ("transfer-encoding", "chunked"))
        try:
            self.client.sendall(head_bytes(first, framed))
            for piece in cutter.pieces(read_body(connection.reader, answer.framing)):
                usage.feed(piece)
                self.client.sendall(chunk(piece))
        except Malformed:
            raise Gone from None

    def _refuse(self, refusal: Refusal, *, stays_open: bool) -> bool:
        """Say why. Returns whether another request may follow."""
        error = {"type": refusal.kind, "message": refusal.message}
        body = json.dumps({"type": "error", "error": error}).encode()
        headers = (
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("x-should-retry", "true" if refusal.may_retry else "false"),
            *(() if stays_open else (("connection", "close"),)),
        )
        self.client.sendall(head_bytes(f"HTTP/1.1 {refusal.status} Refused", headers) + body)
        if not stays_open:
            self._linger()
        return stays_open

    def _linger(self) -> None:
        """Read on for a moment: what is not read would make the end of the connection an error, and lose the answer."""
        self.client.shutdown(socket.SHUT_WR)
        self.client.settimeout(LINGER_SECONDS)
        deadline = time.monotonic() + LINGER_SECONDS
        while time.monotonic() < deadline and self.client.recv(1 << 16):
            pass


def malformed(error: Malformed) -> Refusal:
    return Refusal(error.status, INVALID, f"malformed request: {error}")


def _too_large() -> Refusal:
    return Refusal(413, TOO_LARGE, "claudebox: the request is too large")
