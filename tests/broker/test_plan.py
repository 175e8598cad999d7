"""What the plan says with a broker; and a Claude that cannot use the socket, which gets a port instead."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.standin import Server, hello
from claudebox.features.broker import ask as claude_trial
from claudebox.features.broker.trial import (
    DOES_NOT,
    RECORD,
    SPEAKS,
    keeping_answer,
)
from claudebox.host import read_host
from claudebox.model import ClaudeTrial
from hosts.machine import EVERYONE, TREES, Machine

if TYPE_CHECKING:
    from conftest import Box

OLD = """#!/usr/bin/python3
import os, urllib.request
assert "ANTHROPIC_UNIX_SOCKET" not in os.environ
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
headers = {"authorization": "Bearer " + os.environ["ANTHROPIC_AUTH_TOKEN"]}
for number in range(3):
    with urllib.request.urlopen(urllib.request.Request(url, b"x" * 100000, headers)) as answer:
        print(answer.status, len(answer.read()) > 100, end=" ")
"""


@pytest.mark.req("AUTH-03")
@pytest.mark.box
def test_old_claude_works_without_a_network(box: Box) -> None:
    package = box.account.home / "node_modules" / "@anthropic-ai" / "claude-code"
    claude = box.account.write(package / "cli.py", OLD, mode=0o755)
    named = {"name": "@anthropic-ai/claude-code", "version": "2.0.76", "bin": {"claude": "cli.py"}}
    box.account.write(package / "package.json", json.dumps(named))
    with Server(hello) as api:
        environ = {"ANTHROPIC_API_KEY": "the-real-key-0123456789", "ANTHROPIC_BASE_URL": api.url}
        words = ("--yes", "--claude", str(claude), "--auth", "broker", "--network", "none", "-p", "hi")
        done = box.claudebox(*words, env=environ)
    assert (done.returncode, done.stdout) == (0, "200 True " * 3), done.stderr
    assert {asked.header("x-api-key") for asked in api.asked} == {"the-real-key-0123456789"}


def test_no_network_is_nothing_to_worry_about_with_a_broker(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    machine.environ["ANTHROPIC_API_KEY"] = "x"
    subjects = {"--network none", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"}
    with_broker, without = (machine.plan("--network", "none", *words) for words in (("--auth", "broker"), ()))
    assert not subjects & {finding.subject for finding in with_broker.findings}
    assert "--network none" in {finding.subject for finding in without.findings}


def machine_with(root: Path, version: str) -> Machine:
    machine = Machine(root)
    everyone = EVERYONE.read_text().replace("versions/2.1.0", f"versions/{version}")
    machine.plant((TREES / "debian12.txt").read_text()).plant(everyone)
    machine.environ["ANTHROPIC_API_KEY"] = "x"
    return machine


@pytest.mark.parametrize(
    ("version", "is_forwarded", "is_asked"),
    [
        ("2.0.76", True, False),
        ("2.1.197", False, False),
        ("2.1.196", True, True),
        ("2.1.197-beta", True, True),
        ("2.2.0", True, True),
        ("x", True, True),
    ],
)
def test_version_decides_only_if_it_was_tried(tmp_path: Path, version: str, is_forwarded: bool, is_asked: bool) -> None:
    plan = machine_with(tmp_path, version).plan("--auth", "broker")
    assert plan.broker is not None
    assert ("-c" in plan.signal_shim, plan.broker.trial is not None) == (is_forwarded, is_asked)


@pytest.mark.parametrize("speaks", [True, False])
def test_answer_is_remembered_for_as_long_as_the_program_stays(tmp_path: Path, speaks: bool) -> None:
    machine = machine_with(tmp_path, "2.2.0")
    machine.uid = os.geteuid()  # whose the record is
    broker = machine.plan("--auth", "broker").broker
    assert broker is not None
    assert broker.trial is not None
    _, record = keeping_answer(machine.host(), broker.trial, speaks=speaks)
    file = tmp_path / record.path.lstrip("/")
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(record.content)
    plan = machine.plan("--auth", "broker")
    assert plan.broker is not None
    assert ("-c" in plan.signal_shim, plan.broker.trial) == (not speaks, None)
    os.utime(tmp_path / broker.trial.program.lstrip("/"), (1, 1))
    changed = machine.plan("--auth", "broker").broker
    assert changed is not None
    assert changed.trial is not None


def trial_of(program: Path) -> ClaudeTrial:
    return ClaudeTrial(str(program), (str(program),), "/usr/bin:/bin", "its-identity")


HEARD = r"""#!/usr/bin/python3
import os, socket, sys
assert sys.argv[1:] == ["-p", "hi"], sys.argv
assert not os.listdir(os.environ["HOME"]), "the home is not empty"
assert not [name for name in os.environ if "SECRET" in name or name == "ANTHROPIC_API_KEY"]
assert len(open("/proc/net/route").readlines()) == 1
s = socket.socket(socket.AF_UNIX); s.connect(os.environ["ANTHROPIC_UNIX_SOCKET"])
s.sendall(b"HEAD / HTTP/1.1\r\n\r\n"); s.recv(100)
s = socket.socket(socket.AF_UNIX); s.connect(os.environ["ANTHROPIC_UNIX_SOCKET"])
s.sendall(b"POST /v1/messages?beta=true HTTP/1.1\r\n\r\n"); s.recv(100)
"""
SILENT = "#!/bin/sh\nexec sleep 60\n"
OTHERWISE = HEARD.replace("POST /v1/messages", "GET /other")


@pytest.mark.req("AUTH-03")
@pytest.mark.box
@pytest.mark.parametrize(("code", "answer"), [(HEARD, SPEAKS), (SILENT, DOES_NOT), (OTHERWISE, DOES_NOT)])
def test_claude_is_asked_alone(code: str, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bwrap = shutil.which("bwrap")
    assert bwrap
    monkeypatch.setenv("A_SECRET", "x")
    if code == SILENT:
        monkeypatch.setattr(claude_trial, "PATIENCE", 1.0)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as home:
        program = Path(home, "claude")
        program.write_text(code)
        program.chmod(0o755)
        elsewhere = Path(home, "home")
        elsewhere.mkdir()
        (elsewhere / "private").touch()
        host = read_host()
        host = host.replace(person=host.person.replace(home=str(elsewhere)))
        claude_trial.ask_claude(host, bwrap, trial_of(program))
        record = (elsewhere / ".claudebox" / RECORD).read_text()
    assert record.splitlines()[1:] == [f"its-identity {answer}"]


def test_claude_that_cannot_be_asked_gets_a_port(tmp_path: Path) -> None:
    host = read_host()
    host = host.replace(person=host.person.replace(home=str(tmp_path)))
    claude_trial.ask_claude(host, "/nonexistent/bwrap", trial_of(tmp_path / "claude"))
    assert (tmp_path / ".claudebox" / RECORD).read_text().endswith(f"its-identity {DOES_NOT}\n")
