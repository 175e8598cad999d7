"""The real Claude Code in a box without any network: the broker is its only way out, and keeps the credential."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker.login import Issuer, log_in, stored
from broker.standin import Certificates, Server
from claude.session import ANSWER
from claude.test_interactive import PROMPT, QUESTIONS, screen
from claude.test_login import watchers
from claudebox.demo.stand_in import DemoStep, StandIn
from patience import PATIENCE, comes_true

if TYPE_CHECKING:
    from conftest import Account, Box

KEY = "sk-ant-api03-w7Rk2pXz9QmLt4Vb8NcYd1Hs6Jf3Ga5Ue0KoTiZqWxCv"
BROKER = ("--auth", "broker", "--network", "none")


@dataclass
class Talk:
    """Sessions of Claude behind a broker."""

    box: Box
    claude: str
    certificates: Certificates
    environ: dict[str, str] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    seen: list[dict[str, str]] = field(default_factory=list)  # headers
    results: list[str] = field(default_factory=list)

    @property
    def account(self) -> Account:
        return self.box.account

    @contextlib.contextmanager
    def api(self, *commands: str) -> Iterator[StandIn]:
        """A stand-in over TLS, which has Claude run these commands."""
        api = StandIn(tuple(DemoStep(command[:30], command) for command in commands), lambda *_: None)
        handler: Any = api.server.RequestHandlerClass
        seen = self.seen

        class Noting(handler):  # type: ignore[misc]
            def do_POST(self) -> None:
                seen.append({name.lower(): value for name, value in self.headers.items()})
                super().do_POST()

        api.server.RequestHandlerClass = Noting
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificates.server)
        api.server.socket = context.wrap_socket(api.server.socket, server_side=True, do_handshake_on_connect=False)
        authority = self.account.home / "ca.pem"
        shutil.copy(self.certificates.authority, authority)
        authority.chmod(0o644)
        self.environ |= {"ANTHROPIC_BASE_URL": f"https://localhost:{api.port}", "NODE_EXTRA_CA_CERTS": str(authority)}
        with api:
            yield api
        self.requests = api.requests
        self.results = [text for _, text in api.results]

    def words(self, *arguments: str) -> tuple[str, ...]:
        return "--yes", "--claude", self.claude, *BROKER, *arguments

    def __call__(self, *arguments: str, commands: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        with self.api(*commands):
            return self.box.claudebox(*self.words("-p", "do it", *arguments), env=self.environ)

    def inside(self, script: str) -> subprocess.CompletedProcess[str]:
        with self.api():
            return self.box.claudebox(*self.words("--run", "sh", "-c", script), env=self.environ)

    @property
    def left(self) -> list[str]:
        """What is left of brokers on the host."""
        directory = self.account.home / ".claudebox" / "broker"
        return [path.name for path in directory.iterdir()] if directory.exists() else []


@pytest.fixture
def talk(box: Box, claude: str, certificates: Certificates) -> Talk:
    return Talk(box, claude, certificates)


@pytest.fixture
def with_key(talk: Talk) -> Talk:
    talk.environ["ANTHROPIC_API_KEY"] = KEY
    return talk


@pytest.fixture
def user_with_key(user: Account, claude: str, certificates: Certificates) -> Talk:
    from conftest import Box

    project = user.home / "src" / "shop"
    user.write(project / "README.md", "a shop\n")
    return Talk(Box(user, project), claude, certificates, {"ANTHROPIC_API_KEY": KEY})


@pytest.mark.req("AUTH-03")
def test_claude_works_without_a_network(with_key: Talk) -> None:
    done = with_key()
    assert (done.returncode, done.stdout) == (0, ANSWER + "\n"), done.stderr
    assert {headers.get("x-api-key") for headers in with_key.seen} == {KEY}
    assert {headers.get("authorization") for headers in with_key.seen} == {None}
    assert comes_true(lambda: with_key.left == [])


@pytest.mark.req("AUTH-03")
def test_claude_runs_tools_and_continues(user_with_key: Talk) -> None:
    talk = user_with_key
    done = talk(commands=("echo from-the-$((40 + 2))",))
    assert done.returncode == 0, done.stderr
    assert "from-the-42" in talk.results[0]
    done = talk("--continue")
    assert done.returncode == 0, done.stderr
    assert "from-the-42" in json.dumps(talk.requests)


@pytest.mark.req("AUTH-03")
def test_subscription_is_used_and_renewed(talk: Talk) -> None:
    file = log_in(talk.account.home / ".claude", 0)
    talk.account.own(file.parent)
    issuer = Issuer()
    with Server(issuer) as server:
        talk.environ["CLAUDEBOX_TOKEN_URL"] = f"{server.url}/v1/oauth/token"
        done = talk(commands=("env; cat ~/.claude/.credentials.json",))
    assert done.returncode == 0, done.stderr
    assert {headers.get("authorization") for headers in talk.seen} == {"Bearer access-token-1"}
    assert all("oauth-2025-04-20" in headers["anthropic-beta"] for headers in talk.seen)
    assert stored(file)["refreshToken"] == "refresh-token-1"
    assert (file.stat().st_uid, issuer.refused) == (talk.account.uid, [])
    assert "CLAUDE_CODE_SUBSCRIPTION_TYPE=max\n" in talk.inside("env").stdout
    assert not any(secret in json.dumps(talk.requests) for secret in ("access-token", "refresh-token"))


# What a process in the box can read of others, of itself and of the files. The secret comes backwards: the program
# itself, and the command line that it came with, are in the box, too.
SWEEP = r"""
import os, sys
secret = sys.argv[1][::-1].encode()
tail = secret[-20:]
def look(path, size=-1, start=0):
    try:
        with open(path, "rb", 0) as file:
            file.seek(start)
            content = file.read(size)
    except (OSError, OverflowError, ValueError):
        return
    if secret in content or tail in content:
        print("FOUND", path)
for base, directories, names in os.walk("/"):
    directories[:] = [name for name in directories if os.path.join(base, name) not in ("/proc", "/sys", "/usr", "/nix")]
    for name in names:
        path = os.path.join(base, name)
        if os.path.isfile(path):
            look(path, 1 << 24)
    for name in (*names, *directories):
        if os.path.islink(os.path.join(base, name)) and secret in os.fsencode(os.readlink(os.path.join(base, name))):
            print("FOUND", base, name)
processes = [name for name in os.listdir("/proc") if name.isdigit()]
for pid in processes:
    for name in ("environ", "cmdline", "maps", "mountinfo", "stat"):
        look(f"/proc/{pid}/{name}")
    for descriptor in range(100):
        path = f"/proc/{pid}/fd/{descriptor}"
        if os.path.isfile(path):
            look(path, 1 << 20)
    if int(pid) != os.getpid():
        try:
            lines = open(f"/proc/{pid}/maps").readlines()
        except OSError:
            continue
        for line in lines:
            start, end = (int(number, 16) for number in line.split()[0].split("-"))
            look(f"/proc/{pid}/mem", end - start, start)
print("looked at", len(processes), "processes;", os.environ.get("ANTHROPIC_AUTH_TOKEN", "")[:10])
"""


def sweep(secret: str) -> str:
    return f"cat > /tmp/sweep.py <<'END'\n{SWEEP}END\nsleep 1000 & python3 /tmp/sweep.py {secret[::-1]}"


@pytest.mark.req("AUTH-03", "SAND-03")
def test_credential_is_nowhere_in_the_box(with_key: Talk) -> None:
    done = with_key.inside(sweep(KEY))
    assert done.stdout == "looked at 4 processes; claudebox-\n", done.stderr


def test_credential_would_be_found(user_with_key: Talk) -> None:
    """Where it does enter, the same search finds it: in the environment, and in memory."""
    talk = user_with_key
    words = ("--yes", "--claude", talk.claude, "--run", "sh", "-c", sweep(KEY))
    found = talk.box.claudebox(*words, env=talk.environ).stdout
    assert "FOUND /proc/1/environ" in found
    assert "/mem" in found
    assert "/.claude.json" in found  # the end of the key, by which Claude knows it


@pytest.mark.req("AUTH-03")
def test_login_of_an_earlier_box_is_out_of_sight(talk: Talk) -> None:
    file = log_in(talk.account.home / ".claude", 3600)
    talk.account.own(file.parent)
    before = talk.box.claudebox(
        "--yes", "--claude", talk.claude, "--run", "sh", "-c", "cat ~/.claude/.credentials.json"
    )
    assert "access-token-0" in before.stdout
    assert comes_true(lambda: watchers(talk.account.home) == [])  # who would take it from there
    # One that a Claude stored where it usually is, and nobody has taken from there.
    (state,) = (talk.account.home / ".claudebox" / "instances").glob("*/claude")
    (state / ".credentials.json").unlink()
    shutil.copy(file, state / ".credentials.json")
    talk.account.own(state)
    for secret in ("access-token-0", "refresh-token-0"):
        done = talk.inside(sweep(secret))
        assert done.stdout == "looked at 4 processes; \n", done.stderr


@pytest.mark.req("AUTH-03")
def test_the_box_reaches_nothing_but_what_claude_needs(user_with_key: Talk) -> None:
    script = r"""
import os, socket
def ask(line, token):
    s = socket.socket(socket.AF_UNIX); s.connect(os.environ["XDG_RUNTIME_DIR"] + "/claude-broker/api.sock")
    head = f"{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 2"
    s.sendall(f"{head}\r\n\r\n{{}}".encode())
    return s.recv(100).split()[1].decode()
mine = os.environ["ANTHROPIC_AUTH_TOKEN"]
for line, token in (("POST /v1/messages", mine), ("POST /v1/messages", "x"), ("GET /v1/organizations/me", mine),
                    ("POST /api/oauth/claude_cli/create_api_key", mine), ("CONNECT example.org:443", mine)):
    print(ask(line, token), end=" ")
print(sorted(os.listdir((os.environ["XDG_RUNTIME_DIR"] + "/claude-broker"))))
try:
    open((os.environ["XDG_RUNTIME_DIR"] + "/claude-broker") + "/x", "w")
except OSError as error:
    print(error.strerror)
"""
    done = user_with_key.inside(f"python3 -c '{script}'")
    assert done.stdout == "200 403 404 404 405 ['api.sock']\nRead-only file system\n", done.stderr


@contextlib.contextmanager
def running(talk: Talk, script: str) -> Iterator[subprocess.Popen[str]]:
    from conftest import CLAUDEBOX

    with (
        talk.api(),
        subprocess.Popen(
            (CLAUDEBOX, *talk.words("--run", "sh", "-c", script)),
            cwd=talk.box.project,
            env={**talk.account.environ, **talk.environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **talk.account.process_arguments(),  # type: ignore[call-overload]
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def brokers(talk: Talk) -> list[int]:
    """The processes of this test that listen on a socket of a broker: by what they have open."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{name}/status").read_text()
            environ = Path(f"/proc/{name}/environ").read_bytes()
            if f"HOME={talk.account.home}\0".encode() in environ and "Threads:\t" in status:
                links = [os.readlink(f"/proc/{name}/fd/{fd}") for fd in os.listdir(f"/proc/{name}/fd")]
                if any(link.startswith("socket:") for link in links) and "anon_inode:[pidfd]" in links:
                    found.append(int(name))
    return found


# Waits for an answer of the broker, whatever it is.
IS_AT_WORK = """
import os, socket
box = socket.socket(socket.AF_UNIX)
box.connect(os.environ["XDG_RUNTIME_DIR"] + "/claude-broker/api.sock")
box.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
box.recv(1)
"""


@pytest.mark.req("AUTH-03")
def test_broker_ends_with_the_box_whoever_is_killed(user_with_key: Talk) -> None:
    talk = user_with_key
    with running(talk, "echo up; sleep 1000") as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        assert comes_true(lambda: len(brokers(talk)) == 1)
        process.kill()
        assert comes_true(lambda: brokers(talk) == [])
        assert comes_true(lambda: talk.left == [])


@pytest.mark.req("AUTH-03")
def test_box_ends_with_the_broker(user_with_key: Talk) -> None:
    talk = user_with_key
    with running(talk, f"python3 -c '{IS_AT_WORK}'; echo up; sleep 1000") as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        assert comes_true(lambda: len(brokers(talk)) == 1)
        (broker,) = brokers(talk)
        os.kill(broker, signal.SIGKILL)
        assert process.wait(PATIENCE) == 125
        assert process.stderr
        assert "the broker was ended, and the box with it" in process.stderr.read()
    assert talk.left == []


@pytest.mark.req("AUTH-03")
def test_broker_killed_at_any_moment_leaves_nothing(user_with_key: Talk) -> None:
    talk = user_with_key
    for number in range(10):
        with running(talk, "echo up; sleep 1000") as process:
            # The launcher holds the same things for a moment, before it hands them over.
            assert comes_true(lambda: bool({*brokers(talk)} - {process.pid}))
            time.sleep(number * 0.02)
            for broker in {*brokers(talk)} - {process.pid}:
                os.kill(broker, signal.SIGKILL)
            assert process.wait(PATIENCE) != 0
        assert comes_true(lambda: (brokers(talk), talk.left) == ([], []))


@pytest.mark.req("AUTH-03")
def test_what_was_left_when_everything_was_killed_is_removed_later(user_with_key: Talk) -> None:
    talk = user_with_key
    with running(talk, "echo up; sleep 1000") as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        assert comes_true(lambda: len(brokers(talk)) == 1)
        (broker,) = brokers(talk)
        os.kill(broker, signal.SIGSTOP)
        process.kill()
        os.kill(broker, signal.SIGKILL)
    (left,) = talk.left
    with running(talk, "echo up; sleep 1000"):
        assert comes_true(lambda: left not in talk.left)


@pytest.mark.req("AUTH-03", "FAIL-01")
@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"ANTHROPIC_API_KEY": ""}, "there is no credential for the broker to use"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "CLAUDE_CODE_USE_BEDROCK is set"),
        ({"CLAUDE_CODE_USE_VERTEX": "true"}, "CLAUDE_CODE_USE_VERTEX is set"),
        ({"ANTHROPIC_BASE_URL": "http://gateway.example"}, "everybody on the way could read"),
        ({"HTTPS_PROXY": "socks5://localhost:1", "ANTHROPIC_BASE_URL": "https://x.example"}, "cannot be used"),
        ({"NODE_EXTRA_CA_CERTS": "/nowhere"}, "cannot read the certificates"),
    ],
)
def test_what_the_broker_cannot_do_starts_nothing(user_with_key: Talk, environ: dict[str, str], message: str) -> None:
    talk = user_with_key
    done = talk.box.claudebox(*talk.words("--run", "echo", "started"), env={**talk.environ, **environ})
    assert (done.returncode, done.stdout) == (125, "")
    assert message in " ".join(done.stderr.split())
    assert comes_true(lambda: (brokers(talk), talk.left) == ([], []))


# Answers in the place of an API that is not running at the moment.
IN_ITS_PLACE = """
import os, socket, sys
api = socket.create_server(("127.0.0.1", int(sys.argv[1])))
api.settimeout(20)
box = socket.socket(socket.AF_UNIX)
box.connect(os.environ["XDG_RUNTIME_DIR"] + "/claude-broker/api.sock")
token = os.environ["ANTHROPIC_AUTH_TOKEN"]
box.sendall(f"POST /v1/messages HTTP/1.1\\r\\nHost: localhost\\r\\nx-api-key: {token}\\r\\n\\r\\n".encode())
print(api.accept()[0].recv(1000))
"""


@pytest.mark.req("AUTH-03", "FAIL-01")
@pytest.mark.parametrize("name", ["ANTHROPIC_BASE_URL", "CLAUDEBOX_TOKEN_URL"])
@pytest.mark.network
def test_box_cannot_take_the_place_of_the_api(user_with_key: Talk, name: str) -> None:
    talk = user_with_key
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    for network in (("--network", "full"), ("--network", "inet", "--publish", port)):
        words = talk.words(*network, "--run", "python3", "-c", IN_ITS_PLACE, port)
        done = talk.box.claudebox(*words, env={**talk.environ, name: f"http://localhost:{port}"})
        assert (done.returncode, done.stdout) == (125, ""), done.stderr
        assert f"{name} has no https" in done.stderr


@pytest.mark.req("AUTH-03")
@pytest.mark.parametrize(
    "wish",
    [
        *("ANTHROPIC_API_KEY", "MY_COPY", "CLAUDE_CODE_OAUTH_TOKEN=x", "ANTHROPIC_BASE_URL"),
        *(f"WRITTEN=key={KEY}", "WRITTEN=access-token-0", "OTHER_COPY"),
    ],
)
def test_no_option_brings_the_credential_in(user_with_key: Talk, wish: str) -> None:
    """Nor one that the broker does not use: the login, beside a key."""
    talk = user_with_key
    talk.account.own(log_in(talk.account.home / ".claude", 3600).parent)
    environ = {**talk.environ, "MY_COPY": f"key={KEY}", "OTHER_COPY": "refresh-token-0"}
    done = talk.box.claudebox(*talk.words("--env", wish, "--run", "env"), env=environ)
    assert (done.returncode, done.stdout) == (125, "")


def test_limits_and_the_log_of_a_box(user_with_key: Talk) -> None:
    talk = user_with_key
    with talk.api("true", "true"):
        words = talk.words("--auth-limit", "requests=1", "-p", "do it")
        done = talk.box.claudebox(*words, env=talk.environ)
    assert "used up its 1 requests" in done.stdout + done.stderr
    log = talk.box.claudebox("--auth-log", env=talk.environ)
    assert log.returncode == 0, log.stderr
    assert "/v1/messages" in log.stdout
    assert KEY not in log.stdout


@pytest.mark.req("AUTH-03", "UX-06")
@pytest.mark.parametrize("kind", ["key", "login"])
@pytest.mark.tmux
def test_claude_on_a_terminal(user_with_key: Talk, kind: str) -> None:
    talk = user_with_key
    if kind == "login":
        talk.account.own(log_in(talk.account.home / ".claude", 3600).parent)
        del talk.environ["ANTHROPIC_API_KEY"]
    from conftest import CLAUDEBOX

    with talk.api("echo it-ran > marker"):
        words = [CLAUDEBOX, *talk.words()]
        with screen(talk.account, words, str(talk.box.project), talk.environ) as opened:
            assert opened.shows(PROMPT), opened.text()
            assert [question for question in QUESTIONS if question in opened.text()] == []
            opened.type("please do it", "Enter")
            assert opened.shows(ANSWER), opened.text()
            assert (talk.box.project / "marker").read_text() == "it-ran\n"
            assert opened.leave(), opened.text()
    assert comes_true(lambda: (brokers(talk), talk.left) == ([], []))


@pytest.mark.req("AUTH-03")
def test_twenty_turns(user_with_key: Talk) -> None:
    commands = tuple(f"echo turn-{number}" for number in range(20))
    done = user_with_key(commands=commands)
    assert (done.returncode, done.stdout) == (0, ANSWER + "\n"), done.stderr
    assert [f"turn-{number}" in text for number, text in enumerate(user_with_key.results)] == [True] * 20


@pytest.mark.req("AUTH-03")
def test_revoked_login_is_told_and_not_retried(user_with_key: Talk) -> None:
    talk = user_with_key
    del talk.environ["ANTHROPIC_API_KEY"]
    talk.account.own(log_in(talk.account.home / ".claude", 0).parent)
    with Server(Issuer(has_ended=True)) as server:
        talk.environ["CLAUDEBOX_TOKEN_URL"] = f"{server.url}/v1/oauth/token"
        done = talk()
        renewals = len(server.asked)
    assert done.returncode == 1
    assert "type /login" in done.stdout
    assert renewals == 1


@pytest.mark.req("AUTH-03")
@pytest.mark.parametrize("how", ["box ends", "launcher is killed", "broker is asked to end"])
def test_end_while_the_login_is_renewed_does_not_lose_it(user_with_key: Talk, how: str) -> None:
    """The refresh token has been used by then, and what came for it is known to the broker alone."""
    talk, go = user_with_key, threading.Event()
    issuer = Issuer(go=go)
    file = log_in(talk.account.home / ".claude", 60)
    talk.account.own(file.parent)
    with Server(issuer) as server:
        talk.environ |= {"ANTHROPIC_API_KEY": "", "CLAUDEBOX_TOKEN_URL": f"{server.url}/v1/oauth/token"}
        with running(talk, "echo up; cat") as process:
            assert process.stdin
            assert process.stdout
            assert process.stdout.readline() == "up\n"
            assert issuer.begun.wait(PATIENCE)
            if how == "box ends":
                process.stdin.close()
                assert process.stdout.read() == ""
            elif how == "launcher is killed":
                process.kill()
                process.wait(PATIENCE)
            else:
                assert comes_true(lambda: len(brokers(talk)) == 1)
                (broker,) = brokers(talk)
                os.kill(broker, signal.SIGTERM)
            go.set()
            process.wait(PATIENCE)
        assert comes_true(lambda: bool(issuer.grants))
        assert comes_true(lambda: (brokers(talk), talk.left) == ([], []))
    assert stored(file)["refreshToken"] == "refresh-token-1"


@pytest.mark.req("AUTH-03")
def test_an_older_claude_works_without_a_network(with_key: Talk, old_claude: str) -> None:
    with_key.claude = old_claude
    done = with_key()
    assert (done.returncode, done.stdout) == (0, ANSWER + "\n"), done.stderr
