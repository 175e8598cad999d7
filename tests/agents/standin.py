"""A stand-in for the APIs of other agents on loopback: it answers with one sentence, and keeps what it was sent."""

from __future__ import annotations

import json
from typing import Any

from claude.api import FAREWELL, Handler, Server

ANSWER = FAREWELL


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


class StandIn(Server):
    """Answers on a free port while the `with` block runs."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.seen: list[tuple[dict[str, str], str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def sent(self) -> str:
        return "\n".join(body for _, body in self.seen)


class _Handler(Handler):
    api: StandIn

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode(errors="replace")
        self.api.seen.append(({name.lower(): value for name, value in self.headers.items()}, body))
        is_stream = "stream" in self.path or self.path.endswith("/responses")
        self.reply(responses() if self.path.endswith("/responses") else content(is_stream), is_stream=is_stream)

    def do_GET(self) -> None:
        self.reply(b'{"data": [], "models": []}')
