"""A stand-in for the API: it has Claude Code run commands, one after the other, then say farewell."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

FAREWELL = "That is all I could do here."


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def reply(self, body: bytes, status: int = 200, *, is_stream: bool = False) -> None:
        self.send_response(status)
        self.send_header("content-type", "text/event-stream" if is_stream else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server:
    """Answers on a free port while the `with` block runs."""

    def __init__(self, handler: type[Handler]) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), {"api": self}))
        self.server.daemon_threads = True

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class StandIn(Server):
    """Answers as the API, and keeps what it was sent."""

    def __init__(self, *commands: str) -> None:
        super().__init__(_Handler)
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
        command = self.commands[len(results)]
        arguments = {"command": command, "description": command[:30]}
        return {"type": "tool_use", "id": f"toolu_{len(results):04}", "name": "Bash", "input": arguments}


def _tool_results(request: dict[str, Any]) -> list[str]:
    """Every result so far, in order: Claude sends the whole conversation each time."""
    contents = [message.get("content") for message in request.get("messages", ())]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    found = [block.get("content") for block in blocks if block.get("type") == "tool_result"]
    return [one if isinstance(one, str) else "".join(str(part.get("text", "")) for part in one or ()) for one in found]


class _Handler(Handler):
    api: StandIn

    def do_HEAD(self) -> None:
        self.reply(b"")

    def do_GET(self) -> None:
        self.reply(b'{"type": "error", "error": {"type": "not_found_error", "message": "stand-in"}}', 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.split("?")[0]
        if path == "/v1/messages":
            request = json.loads(body)
            message = _message(request, self.api.answer(request))
            is_stream = request.get("stream")
            self.reply(_events(message) if is_stream else json.dumps(message).encode(), is_stream=is_stream)
        elif path == "/v1/messages/count_tokens":
            self.reply(b'{"input_tokens": 10}')
        else:
            self.do_GET()


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
