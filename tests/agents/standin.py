"""A stand-in for the APIs of other agents on loopback: it answers with one sentence, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

ANSWER = "That is all I could do here."


def responses() -> bytes:
    """What codex reads."""
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}
    usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "1"}},
        {"type": "response.output_item.done", "item": message},
        {"type": "response.completed", "response": {"id": "1", "usage": {**usage, "total_tokens": 2}}},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def content(is_stream: bool) -> bytes:
    """What gemini reads."""
    candidate = {"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finishReason": "STOP", "index": 0}
    counts = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    text = json.dumps({"candidates": [candidate], "usageMetadata": counts})
    return (f"data: {text}\r\n\r\n" if is_stream else text).encode()


class StandIn:
    """Answers on a free port while the `with` block runs."""

    def __init__(self) -> None:
        self.seen: list[tuple[dict[str, str], str]] = []
        handler = type("Handler", (_Handler,), {"api": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def sent(self) -> str:
        return "\n".join(body for _, body in self.seen)

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: StandIn

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode(errors="replace")
        self.api.seen.append(({name.lower(): value for name, value in self.headers.items()}, body))
        is_stream = "stream" in self.path or self.path.endswith("/responses")
        self._answer(responses() if self.path.endswith("/responses") else content(is_stream), is_stream)

    def do_GET(self) -> None:
        self._answer(b'{"data": [], "models": []}', is_stream=False)

    def _answer(self, data: bytes, is_stream: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if is_stream else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass
