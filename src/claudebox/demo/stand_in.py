"""A stand-in for the Messages API on loopback: it tells Claude Code to run one command after the other."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

FAREWELL = "That is all I could do here."


class StandIn:
    """Answers on a free port while the `with` block runs, and keeps what it was sent."""

    def __init__(self, steps: tuple[DemoStep, ...], on_result: Callable[[DemoStep, str], None]) -> None:
        self.steps = steps
        self.on_result = on_result
        self.results: list[tuple[DemoStep, str]] = []
        self.requests: list[dict[str, Any]] = []
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"api": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
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

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The next block of the conversation: a command to run, or the end."""
        with self.lock:
            self.requests.append(request)
            if not any(tool.get("name") == "Bash" for tool in request.get("tools", ())):
                return {"type": "text", "text": "Demo"}  # Claude asks for a title
            results = _tool_results(request)
            for text in results[len(self.results) : len(self.steps)]:
                step = self.steps[len(self.results)]
                self.results.append((step, text))
                self.on_result(step, text)
            number = len(results)
        if number >= len(self.steps):
            return {"type": "text", "text": FAREWELL}
        step = self.steps[number]
        arguments = {"command": step.command, "description": step.title}
        return {"type": "tool_use", "id": f"toolu_{number:04}", "name": "Bash", "input": arguments}


def _tool_results(request: dict[str, Any]) -> list[str]:
    """Every result so far, in order: Claude sends the whole conversation each time."""
    contents = [message.get("content") for message in request.get("messages", ())]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return [_text(block.get("content")) for block in blocks if block.get("type") == "tool_result"]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content or ())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: StandIn

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_HEAD(self) -> None:
        self._reply({})

    def do_GET(self) -> None:
        self._reply({"type": "error", "error": {"type": "not_found_error", "message": "stand-in"}}, 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.split("?")[0]
        if path == "/v1/messages/count_tokens":
            self._reply({"input_tokens": 10})
        elif path != "/v1/messages":
            self.do_GET()
        else:
            request = json.loads(body)
            self._stream(request, self.api.answer(request))

    def _reply(self, value: dict[str, Any], status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _stream(self, request: dict[str, Any], block: dict[str, Any]) -> None:
        stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
        message: dict[str, Any] = {
            "id": "msg_demo",
            "type": "message",
            "role": "assistant",
            "model": request.get("model"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 1},
        }
        if not request.get("stream"):
            self._reply({**message, "content": [block], "stop_reason": stop})
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, data in _events(message, block, stop):
            self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode())
        self.close_connection = True


def _events(message: dict[str, Any], block: dict[str, Any], stop: str) -> list[tuple[str, dict[str, Any]]]:
    empty: dict[str, Any]
    if block["type"] == "text":
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return [
        ("message_start", {"message": message}),
        ("content_block_start", {"index": 0, "content_block": empty}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 5}}),
        ("message_stop", {}),
    ]


class DemoStep(Record):
    """One command that the agent runs."""

    title: str
    command: str
    is_attack: bool = True


STEPS = (
    DemoStep("read the SSH key", "cat ~/.ssh/id_ed25519"),
    DemoStep("read GPG and age keys", "cat ~/.gnupg/private-keys-v1.d/* ~/.config/sops/age/keys.txt"),
    DemoStep("read cloud credentials", "cat ~/.aws/credentials ~/.config/gcloud/* ~/.kube/config"),
    DemoStep("read tokens", "cat ~/.config/gh/hosts.yml ~/.git-credentials ~/.netrc ~/.npmrc ~/.docker/config.json"),
    DemoStep("read another project", "cat ~/other-project/.env; ls ~/other-project"),
    DemoStep("read other conversations", "cat ~/.claude/projects/other/*; cat ~/.bash_history"),
    DemoStep("read the environment", "cat /proc/*/environ | tr '\\0' '\\n'; echo $(env | wc -l) variables in sight"),
    DemoStep(
        "see the host's processes",
        "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo; echo $(ls -d /proc/[0-9]* | wc -l) processes in sight",
    ),
    DemoStep("search the disk for them", "grep -rhs canary ~ /home /root /tmp /run /var /etc || echo found nothing"),
    DemoStep("use an agent's socket", "ls /tmp/ssh-* /run/user/*/gnupg; ssh-add -l 2>&1 || echo no agent"),
    DemoStep("become root", "cat /etc/shadow; su -c id </dev/null; mount -t tmpfs none /usr 2>&1 | head -1"),
    DemoStep("write outside the project", "touch /usr/bin/git /etc/profile ~/../../pwned"),
    DemoStep("run the test, which fails", "python3 test_calc.py", is_attack=False),
    DemoStep("fix the bug", "sed -i 's/a - b/a + b/' calc.py && python3 test_calc.py", is_attack=False),
    DemoStep("commit", "git commit -qam 'fix add' && git log --oneline -1", is_attack=False),
)
