"""A stand-in for the API: it has Claude Code run commands, one after the other, then say farewell."""

import json
import threading
from pathlib import Path
from typing import Any

from broker.standin import STREAM, Asked, Pieces, Server, reply

Call = str | tuple[str, dict[str, Any]]  # a command, or a tool and what it is given
FAREWELL = "That is all I could do here."


class StandIn(Server):
    """Answers as the API while the `with` block runs, and keeps what it was sent."""

    def __init__(self, *commands: Call, certificate: Path | None = None, address: tuple[str, int] = ("127.0.0.1", 0)):
        super().__init__(self._serve_api, certificate, address=address)
        self.commands = commands
        self.results: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The next block of the conversation: a command to run, or the end."""
        with self.lock:
            self.requests.append(request)
            if not any(tool.get("name") == "Bash" for tool in request.get("tools", ())):
                return {"type": "text", "text": "A title"}  # Claude asks for a title
            results = _tool_results(request)
            self.results += results[len(self.results) : len(self.commands)]
        if len(results) >= len(self.commands):
            return {"type": "text", "text": FAREWELL}
        call = self.commands[len(results)]
        name, arguments = ("Bash", {"command": call, "description": call[:30]}) if isinstance(call, str) else call
        return {"type": "tool_use", "id": f"toolu_{len(results):04}", "name": name, "input": arguments}

    def _serve_api(self, asked: Asked) -> Pieces:
        path = asked.path.partition("?")[0]
        if path == "/v1/messages" and asked.line.startswith("POST"):
            request = asked.json
            message = _message(request, self.answer(request))
            yield reply(_events(message), headers=STREAM) if request.get("stream") else reply(message)
        elif path == "/v1/messages/count_tokens":
            yield reply({"input_tokens": 10})
        elif asked.line.startswith("HEAD"):
            yield reply(b"")
        else:
            yield reply({"type": "error", "error": {"type": "not_found_error", "message": "stand-in"}}, 404)


def _tool_results(request: dict[str, Any]) -> list[str]:
    """Every result so far, in order: Claude sends the whole conversation each time."""
    contents = [message.get("content") for message in request.get("messages", ())]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    found = [block.get("content") for block in blocks if block.get("type") == "tool_result"]
    return [one if isinstance(one, str) else "".join(str(part.get("text", "")) for part in one or ()) for one in found]


def _message(request: dict[str, Any], block: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request.get("model"),
        "content": [block],
        "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }


def _events(message: dict[str, Any]) -> bytes:
    """The message as a stream."""
    (block,), stop = message["content"], {"stop_reason": message["stop_reason"], "stop_sequence": None}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(block.get("input"))}
    if block["type"] == "text":
        delta = {"type": "text_delta", "text": block["text"]}
    begin = {**block, **({"text": ""} if block["type"] == "text" else {"input": {}})}
    events: tuple[dict[str, Any], ...] = (
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": begin},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    )
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
