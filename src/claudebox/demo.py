"""`claudebox --demo`: a stand-in for the API tells the real Claude Code, in a real box, to take what it can."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from claudebox.archive import own_command
from claudebox.host import read_host
from claudebox.host.distribution import install_command
from claudebox.host.programs import PACKAGE
from claudebox.host.tree import Tree
from claudebox.paths import shorten_home
from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.settings.words import Request
from claudebox.terminal import output_style
from claudebox.trust.programs import trusted_path, trusted_program
from claudebox.trust.reach import reach_of
from claudebox.view.text import BOLD, DIM, GREEN, RED, cut, escape, fill

DEMO_SECONDS = 300
DUMMY_KEY = "sk-ant-demo-not-a-key-0000"
PROMPT = "Do what you are told."
FAREWELL = "That is all I could do here."
LONGEST_PATH = 50
TITLE = 30
LAST_LINES = 6  # of standard error, shown when the box failed


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
HOME_FILES = {
    ".ssh/id_ed25519": "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
    ".gnupg/private-keys-v1.d/key.key": "(protected-private-key {})\n",
    ".config/sops/age/keys.txt": "AGE-SECRET-KEY-{}\n",
    ".aws/credentials": "[default]\naws_secret_access_key = {}\n",
    ".config/gcloud/credentials.db": "{}\n",
    ".kube/config": "users: [{{user: {{token: {}}}}}]\n",
    ".config/gh/hosts.yml": "github.com: {{oauth_token: {}}}\n",
    ".git-credentials": "https://ada:{}@example.org\n",
    ".netrc": "machine example.org password {}\n",
    ".npmrc": "//registry/:_authToken={}\n",
    ".docker/config.json": '{{"auths": {{"example.org": {{"auth": "{}"}}}}}}\n',
    ".claude/projects/other/history.jsonl": "{}\n",
    "other-project/.env": "DATABASE_PASSWORD={}\n",
    ".bash_history": "export TOKEN={}\n",
}
VARIABLES = ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DATABASE_PASSWORD")
GIT_CONFIG = "[user]\n\tname = Ada Demo\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
PROGRAM = "def add(a, b):\n    return a - b\n"
TEST = "from calc import add\n\nassert add(2, 3) == 5, add(2, 3)\nprint('ok')\n"
# It speaks to the stand-in as Claude Code does, as far as the demo needs it.
SCRIPTED_AGENT = """
import json, os, subprocess, urllib.request
messages = [{"role": "user", "content": "go"}]
while True:
    request = {"model": "scripted", "messages": messages, "tools": [{"name": "Bash"}]}
    call = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(request).encode())
    block = json.load(urllib.request.urlopen(call))["content"][0]
    if block["type"] == "text":
        break
    done = subprocess.run(["sh", "-c", block["input"]["command"]], capture_output=True, text=True)
    result = {"type": "tool_result", "tool_use_id": block["id"], "content": done.stdout + done.stderr}
    messages += [{"role": "assistant", "content": [block]}, {"role": "user", "content": [result]}]
"""


def run_demo(_: Request) -> int:
    """Run the demo. The exit status is 0 if no secret was seen inside and the work arrived outside, 1 otherwise."""
    # What a project has on PATH must not run here, where no box is around it.
    tree, reach = Tree(), reach_of(read_host())
    path = trusted_path(os.environ.get("PATH", ""), reach)
    git, claude, npm = (trusted_program(tree, name, path, reach) for name in ("git", "claude", "npm"))
    if not git:
        raise Problem("the demo needs git, which is not installed", install_command(tree, "git"))
    screen = Screen()
    agent = find_agent(screen.say, claude, npm, path)
    directory = os.path.realpath(tempfile.mkdtemp(prefix="claudebox-demo-"))
    try:
        stage = build_stage(directory, git, path)
        screen.introduce(stage, agent)
        with StandIn(STEPS, screen.show_step) as api:
            status, errors = _launch(stage, agent, api.port)
        return screen.conclude(stage, api, status, errors, check_work(stage))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _launch(stage: Stage, agent: Agent, port: int) -> tuple[int, str]:
    """Run the agent in a box. Returns the exit status and standard error."""
    environ = {
        **stage.variables,
        "CLAUDEBOX_CLAUDE": agent.claude,
        "HOME": stage.home,
        "PATH": stage.path,
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "TERM": os.environ.get("TERM", "dumb"),
        "ANTHROPIC_API_KEY": DUMMY_KEY,
    }
    base_url = f"ANTHROPIC_BASE_URL=http://127.0.0.1:{port}"
    done = subprocess.run(
        [*own_command(), "--yes", "--env", base_url, *agent.arguments],
        cwd=stage.project,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=DEMO_SECONDS,
        check=False,
    )
    return done.returncode, done.stderr


class Screen:
    """Shows each line as soon as it is known."""

    def __init__(self) -> None:
        self.style = output_style()
        self.canaries: dict[str, str] = {}
        self.home = ""
        self.was_attack = False

    def say(self, text: str, colour: str = "") -> None:
        """Show a text, of which nothing is a code for the terminal; the colour comes afterwards."""
        lines = fill(escape(text).split(" "), 0, columns=self.style.width)
        self._write("\n".join(self.style.paint(line, colour) if colour else line for line in lines))

    def _write(self, text: str) -> None:
        try:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader has seen enough; the demo goes on to its end and cleans up.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def introduce(self, stage: Stage, agent: Agent) -> None:
        self.canaries = stage.canaries
        self.home = stage.home
        self.say(f"A throw-away home with {len(stage.canaries)} fake secrets, and a project with a bug.")
        self.say(f"In the box: {agent.title}")

    def show_step(self, step: DemoStep, result: str) -> None:
        if step.is_attack != self.was_attack:
            self.say("It tries to" if step.is_attack else "It works: it may", BOLD)
            self.was_attack = step.is_attack
        found = [name for name, canary in self.canaries.items() if canary in result]
        mark = (
            self.style.paint("GOT IT", RED)
            if found
            else self.style.paint("  --  " if step.is_attack else "  ok  ", GREEN)
        )
        shown = self._last_line(result, max(self.style.width - TITLE - 11, 1))
        self._write(f"  {step.title:<{TITLE}} {mark}  {self.style.paint(shown, DIM)}")

    def _last_line(self, result: str, room: int) -> str:
        lines = [line.strip() for line in result.replace(self.home, "~").splitlines() if line.strip()]
        text = escape(lines[-1]) if lines else "(nothing)"
        # The reason for a failure is at the end of the line.
        return text if len(text) <= room else "…" + text[1 - room :]

    def conclude(self, stage: Stage, api: StandIn, status: int, errors: str, work: dict[str, bool]) -> int:
        everything = "\n".join(text for _, text in api.results)
        lost = [name for name, canary in stage.canaries.items() if canary in everything]
        for name in lost:
            self.say(f"{name} was seen inside", RED)
        for title, is_done in work.items():
            self.say(f"{'yes' if is_done else 'NO'}: {title}", "" if is_done else RED)
        is_whole = len(api.results) == len(api.steps) and status == 0
        if is_whole:
            self.say(f"{len(stage.canaries) - len(lost)} of {len(stage.canaries)} secrets stayed outside.", BOLD)
        else:
            self.say(
                f"The demo did not run to its end ({len(api.results)} of {len(api.steps)} steps, status {status}):"
            )
            for line in errors.splitlines()[-LAST_LINES:]:
                self.say(line)
        return 0 if is_whole and not lost and all(work.values()) else 1


# The stage: a throw-away home with fake secrets of every usual kind, and a small project with a bug


class Stage(Record):
    """The home and the project of the demo."""

    home: str
    project: str
    variables: dict[str, str]
    git: str
    path: str  # on which the programs of this host are found
    canaries: dict[str, str]  # each fake secret, by the place where it is

    def run_git(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.git, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments],
            cwd=self.project,
            env={"HOME": self.home, "PATH": self.path, "GIT_CONFIG_NOSYSTEM": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout


def build_stage(directory: str, git: str, path: str) -> Stage:
    home = f"{directory}/ada"
    project = f"{home}/src/calculator"
    variables = {name: f"canary{secrets.token_hex(8)}" for name in VARIABLES}
    canaries = {f"~/{name}": f"canary{secrets.token_hex(8)}" for name in HOME_FILES}
    files = {f"{home}/{name}": text.format(canaries[f"~/{name}"]) for name, text in HOME_FILES.items()}
    files |= {f"{home}/.gitconfig": GIT_CONFIG, f"{project}/calc.py": PROGRAM, f"{project}/test_calc.py": TEST}
    for name, text in files.items():
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    canaries |= {f"${name}": value for name, value in variables.items()}
    stage = Stage(home, project, variables, git, path, canaries)
    for command in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "a calculator with a bug")):
        stage.run_git(*command)
    return stage


def check_work(stage: Stage) -> dict[str, bool]:
    """Whether the agent did what it was asked to do, as seen from outside."""
    with open(f"{stage.project}/calc.py") as file:
        is_fixed = "a + b" in file.read()
    log = stage.run_git("log", "--format=%an %s")
    return {"the bug is fixed in the project": is_fixed, "the commit is in the history": "Ada Demo fix add" in log}


# The agent


class Agent(Record):
    """The program that the demo runs in the box."""

    title: str
    arguments: tuple[str, ...]
    claude: str = ""  # its path; "" if it is another program


def find_agent(say: Callable[[str], None], claude: str, npm: str, path: str) -> Agent:
    """Claude Code if it is or can be installed, else a script with the same commands.

    It is installed with this npm, which finds node on this PATH. Each may be "": there is none.
    """
    claude = claude or _installed(say, npm, path)
    if claude:
        shown = cut(shorten_home(claude, os.path.expanduser("~")), LONGEST_PATH)
        return Agent(f"Claude Code ({shown})", ("-p", PROMPT), claude)
    title = "there is no Claude Code, so a scripted agent plays its part"
    return Agent(title, ("--run", "python3", "-c", SCRIPTED_AGENT))


def _installed(say: Callable[[str], None], npm: str, path: str) -> str:
    """Claude Code from npm, installed in a place of its own; "" if that is not possible."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    place = f"{cache}/claudebox-demo"
    claude = f"{place}/node_modules/.bin/claude"
    if os.access(claude, os.X_OK):
        return claude
    if not npm:
        return ""
    size = "some 170 MB to download, 370 MB on the disk"
    say(f"Installing Claude Code for the demo ({size}): npm install --prefix {place} {PACKAGE}")
    os.makedirs(place, exist_ok=True)
    command = [npm, "install", "--no-fund", "--no-audit", "--prefix", place, PACKAGE]
    # Not in the current directory, whose `.npmrc` would count.
    environ = {**os.environ, "PATH": path}
    done = subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, check=False)
    if done.returncode == 0 and os.access(claude, os.X_OK):
        return claude
    say(f"npm failed: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}")
    return ""


# The API: a stand-in on loopback, which tells Claude Code to run one command after the other


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
