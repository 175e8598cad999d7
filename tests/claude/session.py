"""A session of the real Claude Code in a box, with a stand-in for the API that keeps what it was sent."""

import hashlib
import json
import os
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claude.api import FAREWELL, StandIn
from conftest import Account, Box

ANSWER = FAREWELL
DUMMY_KEY = {"ANTHROPIC_API_KEY": "sk-ant-api03-not-a-key-0123456789"}
QUIET = ("--env", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")


@dataclass
class Session:
    """What came of it."""

    status: int
    stdout: str
    stderr: str
    requests: list[dict[str, Any]]  # to the API, in order
    results: list[str]  # of the commands that Claude ran

    @property
    def sent(self) -> str:
        """All that Claude told the API, with the escapes of JSON undone."""
        return "\n".join(text for request in self.requests for text in texts(request))


def texts(value: Any) -> list[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in texts(part)]


def base_url(api: StandIn) -> tuple[str, str]:
    return "--env", f"ANTHROPIC_BASE_URL=http://127.0.0.1:{api.port}"


@dataclass
class Talk:
    """Starts sessions in a project."""

    box: Box
    claude: str

    def __post_init__(self) -> None:
        self.account.environ["CLAUDEBOX_CLAUDE"] = self.claude

    @property
    def account(self) -> Account:
        return self.box.account

    @property
    def project(self) -> Path:
        return self.box.project

    def words(self, api: StandIn) -> tuple[str, ...]:
        """Everything of the command line before what is Claude's."""
        return "--yes", *QUIET, *base_url(api)

    def __call__(
        self,
        *arguments: str,
        commands: tuple[str, ...] = (),
        prompt: str = "do it",
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Session:
        """`claudebox -p PROMPT ARGUMENTS`, in which Claude is told to run the commands."""
        with StandIn(*commands) as api:
            words = (*self.words(api), "-p", prompt, *arguments)
            done = self.box.claudebox(*words, env=DUMMY_KEY if env is None else env, cwd=cwd or self.project)
        return Session(done.returncode, done.stdout, done.stderr, api.requests, api.results)

    def inside(self, script: str, *options: str, **how: Any) -> subprocess.CompletedProcess[str]:
        """A shell script in the same box, without Claude: quicker where Claude would show nothing more."""
        words = ("--yes", *options, "--run", "sh", "-c", script)
        return self.box.claudebox(*words, **how)

    @property
    def instance(self) -> Path:
        """The state of the project on the host."""
        name = hashlib.sha256(os.fsencode(self.project)).hexdigest()[:16]
        return self.account.home / ".claudebox" / "instances" / name

    @property
    def state(self) -> Path:
        """The part of it that the box can write."""
        return self.instance / "claude"


def fingerprint(*places: Path) -> dict[str, tuple[int, str]]:
    """Kind, mode and content of everything in these places, to see whether anything changed."""
    found: dict[str, tuple[int, str]] = {}
    for place in places:
        for path in (place, *sorted(place.rglob("*"))) if place.is_dir() else (place,):
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                content = os.readlink(path)
            else:
                content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else ""
            found[str(path)] = mode, content
    return found


def broke(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether claudebox stumbled over something that it did not expect, instead of saying what is wrong."""
    return "Traceback" in done.stderr or "claudebox itself failed" in done.stderr


def load(path: Path) -> Any:
    return json.loads(path.read_text())
