"""Other agents than Claude in the same box: what each gets, and what it does not."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker.standin import STREAM, Asked, Pieces, Server, reply
from claude.api import FAREWELL
from claudebox.features.claude.agents import AGENTS
from conftest import Account, Box
from running import pins
from running.needs import needed

CLAUDES_KEY = "sk-ant-api03-made-up-for-this-test"
KEYS = {"ANTHROPIC_API_KEY": CLAUDES_KEY, "OPENAI_API_KEY": "sk-made-up", "GEMINI_API_KEY": "made-up-gemini"}
TELLS = """#!/usr/bin/python3
import json, os, sys
home = os.environ["HOME"]
seen = {path: os.path.exists(f"{home}/{path}") for path in (".ssh", ".claude", ".codex/auth.json")}
print(json.dumps({"argv": sys.argv[1:], "environ": dict(os.environ), "seen": seen}))
for path in sys.argv[-1].split(",") if sys.argv[-1].startswith("write:") else ():
    open(f"{home}/{path.removeprefix('write:')}", "w").write("kept")
"""


@pytest.fixture
@needed("box")
def box(user: Account) -> Box:
    project = user.home / "src" / "shop"
    user.write(project / "README.md", "a shop\n")
    for secret in (".ssh/id_ed25519", ".claude/.credentials.json", ".codex/auth.json"):
        user.write(user.home / secret, '{"secret": "of the host"}', mode=0o600)
    user.environ["PATH"] = f"{user.home}/opt:{user.environ['PATH']}"
    return Box(user, project)


def told(box: Box, name: str, *words: str, **environ: str) -> dict[str, object]:
    box.account.write(box.account.home / "opt" / name, TELLS, mode=0o755)
    done = box.claudebox("--yes", "--program", name, "--", *words, env=environ)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("name", AGENTS)
def test_agent_is_started_unattended_with_its_own_key(box: Box, name: str) -> None:
    agent, home = AGENTS[name], str(box.account.home)
    answer = told(box, name, "fix it", **KEYS)
    assert answer["argv"] == [*(word.replace("~", home) for word in agent.unattended), "fix it"]
    environ = answer["environ"]
    assert isinstance(environ, dict)
    assert {key: environ.get(key) for key in KEYS} == {key: KEYS[key] if key in agent.keys else None for key in KEYS}
    assert answer["seen"] == {".ssh": False, ".claude": False, ".codex/auth.json": False}


@pytest.mark.parametrize("name", AGENTS)
def test_agent_is_told_where_it_is(box: Box, name: str) -> None:
    box.account.write(
        box.account.home / "opt" / name, '#!/bin/sh\ncat "$HOME/$TOLD"; echo x >"$HOME/$TOLD"\n', mode=0o755
    )
    done = box.claudebox("--yes", "--env", f"TOLD={AGENTS[name].told}", "--program", name)
    assert "You are in a sandbox" in done.stdout
    assert "Read-only file system" in done.stderr


def test_state_of_an_agent_is_kept_for_its_project_alone(box: Box) -> None:
    told(box, "codex", "write:.codex/session")
    box.account.write(box.account.home / "opt/codex", '#!/bin/sh\ncat "$HOME/.codex/session"\n', mode=0o755)
    assert box.claudebox("--yes", "--program", "codex").stdout == "kept"
    other = box.account.home / "src" / "other"
    box.account.write(other / "README.md")
    assert box.claudebox("--yes", "--program", "codex", cwd=other).stdout == ""
    assert not (box.account.home / ".codex/session").exists()


@pytest.mark.req("FAIL-01")
def test_broker_is_refused_for_an_agent_that_it_does_not_know(box: Box) -> None:
    box.account.write(box.account.home / "opt/codex", TELLS, mode=0o755)
    done = box.claudebox("--yes", "--auth", "broker", "--program", "codex", env=KEYS)
    assert (done.returncode, done.stdout) == (125, "")
    assert "--auth none" in done.stderr


@pytest.mark.req("FAIL-01")
def test_agent_from_where_a_box_can_write_is_refused(box: Box) -> None:
    box.account.write(box.project / "bin/codex", TELLS, mode=0o755)
    told(box, "gemini")  # a box of this project was there
    environ = {"PATH": f"{box.project}/bin:/usr/bin:/bin"}
    done = box.claudebox("--yes", "--program", "codex", cwd=box.account.home / "opt", env=environ)
    assert done.returncode in (125, 127)
    assert done.stdout == ""


def test_missing_agent_comes_with_the_command_that_installs_it(box: Box) -> None:
    done = box.claudebox("--yes", "--program", "opencode")
    assert done.returncode == 127
    assert " opencode-ai" in done.stderr


@pytest.fixture
@needed("codex")
def codex() -> str:
    return pins.agent("codex")


@pytest.fixture
@needed("gemini")
def gemini() -> str:
    return pins.agent("gemini")


@pytest.mark.exhaustive("needs a large download")
def test_real_codex_works_in_the_box(box: Box, codex: str) -> None:
    with Server(standin) as api:
        provider = (
            f'{{name="x",base_url="http://127.0.0.1:{api.port}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}}'
        )
        words = ("exec", "--skip-git-repo-check", "-c", f"model_providers.x={provider}", "-c", "model_provider=x", "hi")
        path = f"{Path(codex).parent}:{box.account.environ['PATH']}"
        done = box.claudebox("--yes", "--program", "codex", "--", *words, env={**KEYS, "PATH": path}, timeout=120)
    assert done.returncode == 0, done.stderr
    assert ANSWER in done.stdout
    heads, sent = posted(api)
    assert {headers.get("authorization") for headers in heads} == {f"Bearer {KEYS['OPENAI_API_KEY']}"}
    assert "You are in a sandbox (claudebox)" in sent
    assert CLAUDES_KEY not in sent


@pytest.mark.exhaustive("needs a large download")
def test_real_gemini_works_in_the_box(box: Box, gemini: str) -> None:
    told(box, "gemini")  # makes the directory of its state
    (state,) = (box.account.home / ".claudebox/instances").glob("*/agents/gemini/gemini")
    box.account.write(state / "settings.json", '{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    with Server(standin) as api:
        path = f"{Path(gemini).parent}:/usr/local/bin:/usr/bin:/bin"
        environ = {**KEYS, "PATH": path, "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{api.port}"}
        words = ("-m", "gemini-2.5-flash", "-p", "hi")
        done = box.claudebox("--yes", "--program", "gemini", "--", *words, env=environ, timeout=120)
    assert done.returncode == 0, done.stderr
    assert ANSWER in done.stdout
    heads, sent = posted(api)
    assert {headers.get("x-goog-api-key") for headers in heads} == {KEYS["GEMINI_API_KEY"]}
    assert "You are in a sandbox (claudebox)" in sent


# A stand-in for the APIs of other agents on loopback: it answers with one sentence, and keeps what it was sent.


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


def standin(asked: Asked) -> Pieces:
    """The APIs of other agents on loopback, which answer with one sentence."""
    if asked.line.startswith("GET"):
        yield reply({"data": [], "models": []})
    elif asked.path.endswith("/responses"):
        yield reply(responses(), headers=STREAM)
    else:
        yield reply(content("stream" in asked.path), headers=STREAM if "stream" in asked.path else "")


def posted(api: Server) -> tuple[list[dict[str, str]], str]:
    """Headers of what the agent sent, and all of it."""
    posts = [asked for asked in api.asked if asked.line.startswith("POST")]
    return [dict(asked.headers) for asked in posts], "\n".join(asked.body.decode(errors="replace") for asked in posts)
