"""With a broker the credential is nowhere in the box, and no option brings it in."""

import shutil
import socket

import pytest

from broker.login import log_in
from broker.talk import API_KEY, Talk, is_over
from claude.test_login import watchers
from patience import comes_true

# They look for brokers, and an ordinary user sees those of the other workers.
pytestmark = [pytest.mark.req("AUTH-03"), pytest.mark.xdist_group("broker")]


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


@pytest.mark.req("SAND-03")
def test_credential_is_nowhere_in_the_box(with_key: Talk) -> None:
    done = with_key.inside(sweep(API_KEY))
    assert done.stdout == "looked at 4 processes; claudebox-\n", done.stderr


def test_credential_would_be_found(user_with_key: Talk) -> None:
    """Where it does enter, the same search finds it: in the environment, and in memory."""
    talk = user_with_key
    words = ("--yes", "--run", "sh", "-c", sweep(API_KEY))
    found = talk.box.claudebox(*words, env=talk.environ).stdout
    assert "FOUND /proc/1/environ" in found
    assert "/mem" in found
    assert "/.claude.json" in found  # the end of the key, by which Claude knows it


def test_login_of_an_earlier_box_is_out_of_sight(talk: Talk) -> None:
    file = log_in(talk.account.home / ".claude", 3600)
    talk.account.own(file.parent)
    before = talk.box.claudebox("--yes", "--run", "sh", "-c", "cat ~/.claude/.credentials.json")
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


@pytest.mark.parametrize("network", ["none", "full", pytest.param("allowlist", marks=pytest.mark.network)])
def test_the_box_reaches_nothing_but_what_claude_needs(user_with_key: Talk, network: str) -> None:
    script = r"""
import os, socket
port = os.environ["ANTHROPIC_BASE_URL"].rpartition(":")[2]
def ask(line, token):
    s = socket.create_connection(("127.0.0.1", int(port)))
    head = f"{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}"
    head += "\r\nContent-Type: application/json\r\nContent-Length: 2"
    s.sendall(f"{head}\r\n\r\n{{}}".encode())
    return s.recv(100).split()[1].decode()
mine = os.environ["ANTHROPIC_AUTH_TOKEN"]
for line, token in (("POST /v1/messages", mine), ("POST /v1/messages", "x"), ("GET /v1/organizations/me", mine),
                    ("POST /api/oauth/claude_cli/create_api_key", mine), ("CONNECT example.org:443", mine)):
    print(ask(line, token), end=" ")
print()
"""
    talk = user_with_key
    with talk.api():
        words = talk.words("--network", network, "--run", "python3", "-c", script)
        done = talk.box.claudebox(*words, env=talk.environ)
    assert done.stdout == "200 403 404 404 404 \n", done.stderr


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"ANTHROPIC_API_KEY": ""}, "there is no credential for the broker to use"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "CLAUDE_CODE_USE_BEDROCK is set"),
        ({"NODE_EXTRA_CA_CERTS": "/nowhere"}, "cannot read the certificates"),
    ],
)
def test_what_the_broker_cannot_do_starts_nothing(user_with_key: Talk, environ: dict[str, str], message: str) -> None:
    talk = user_with_key
    done = talk.box.claudebox(*talk.words("--run", "echo", "started"), env={**talk.environ, **environ})
    assert (done.returncode, done.stdout) == (125, "")
    assert message in " ".join(done.stderr.split())
    assert comes_true(lambda: is_over(talk))


# Answers in the place of an API that is not running at the moment.
IN_ITS_PLACE = """
import os, socket, sys
api = socket.create_server(("127.0.0.1", int(sys.argv[1])))
api.settimeout(20)
box = socket.create_connection(("127.0.0.1", int(os.environ["ANTHROPIC_BASE_URL"].rpartition(":")[2])))
token = os.environ["ANTHROPIC_AUTH_TOKEN"]
box.sendall(f"POST /v1/messages HTTP/1.1\\r\\nHost: localhost\\r\\nx-api-key: {token}\\r\\n\\r\\n".encode())
print(api.accept()[0].recv(1000))
"""


@pytest.mark.req("FAIL-01")
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


@pytest.mark.parametrize(
    "wish",
    [
        *("ANTHROPIC_API_KEY", "MY_COPY", "CLAUDE_CODE_OAUTH_TOKEN=x", "ANTHROPIC_UNIX_SOCKET=/x"),
        *(f"WRITTEN=key={API_KEY}", "WRITTEN=access-token-0", "OTHER_COPY"),
    ],
)
def test_no_option_brings_the_credential_in(user_with_key: Talk, wish: str) -> None:
    """Nor one that the broker does not use: the login, beside a key."""
    talk = user_with_key
    talk.account.own(log_in(talk.account.home / ".claude", 3600).parent)
    environ = {**talk.environ, "MY_COPY": f"key={API_KEY}", "OTHER_COPY": "refresh-token-0"}
    done = talk.box.claudebox(*talk.words("--env", wish, "--run", "env"), env=environ)
    assert (done.returncode, done.stdout) == (125, "")
