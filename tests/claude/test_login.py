"""Claude's login is the same on the host and in all boxes, and nothing that only looks like one gets out."""

import contextlib
import fcntl
import json
import os
import shlex
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from claude.session import ANSWER, Talk, broke, load
from claudebox.servers.login import SOONER_AT_MOST, copy_newer
from claudebox.state import State
from claudebox.state.login import FIELDS
from conftest import CLAUDEBOX, Account
from patience import PATIENCE, comes_true
from unit.servers.test_login import login_of

pytestmark = pytest.mark.req("AUTH-01")

HOUR = 3600 * 1000
PRIVATE = 0o600
# Where Claude in the box keeps it: replaced by rename, as Claude does.
STORE = "$CLAUDE_SECURESTORAGE_CONFIG_DIR"
FILE = f"{STORE}/.credentials.json"


def now() -> int:
    return int(time.time() * 1000)


def oauth(name: str, hours: float) -> dict[str, Any]:
    """A login that is valid for so many hours."""
    return {
        "accessToken": f"access-{name}",
        "refreshToken": f"refresh-{name}",
        "expiresAt": now() + int(hours * HOUR),
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }


def credentials(name: str, hours: float, **more: Any) -> str:
    return json.dumps({"claudeAiOauth": oauth(name, hours), **more})


MCP = {"mcpOAuth": {"tea|1": {"accessToken": "canary-mcp"}}}


def log_in(account: Account, name: str = "first", hours: float = 1, place: str = ".claude") -> Path:
    return account.write(account.home / place / ".credentials.json", credentials(name, hours, **MCP), mode=PRIVATE)


def copy_of(talk: Talk, project: Path | None = None) -> Path:
    """The login of the boxes of a project."""
    return Path(State(str(talk.account.home)).instance(str(project or talk.project)).auth_login)


def token(path: Path) -> str:
    """Whose login a file holds."""
    return str(load(path)["claudeAiOauth"]["accessToken"])


def refresh(text: str) -> str:
    """A script that stores new credentials as Claude does."""
    return f"umask 077; cat > {STORE}/.new <<'END'\n{text}\nEND\nmv {STORE}/.new {FILE}\n"


@contextlib.contextmanager
def running(talk: Talk, script: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A box that goes on until its standard input ends."""
    words = (CLAUDEBOX, "--yes", *options, "--run", "sh", "-c", script)
    with talk.account.running(*words, cwd=talk.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process


def watchers(home: Path) -> list[int]:
    """The processes of this test's claudebox, by the environment that they were started with."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and f"HOME={home}\0".encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
    return found


def test_claude_is_logged_in(user_talk: Talk) -> None:
    log_in(user_talk.account)
    session = user_talk(env={})
    assert (session.status, session.stdout) == (0, ANSWER + "\n"), session.stderr


@pytest.mark.req("SAND-09")
def test_only_the_login_enters(talk: Talk) -> None:
    file = log_in(talk.account)
    done = talk.inside(f"cat {FILE}; grep -rs canary-m'cp' / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr")
    inside, outside = json.loads(done.stdout), load(file)["claudeAiOauth"]
    # It seems to end a little sooner there, in each project at another moment.
    assert 0 <= outside["expiresAt"] - inside["claudeAiOauth"].pop("expiresAt") <= SOONER_AT_MOST
    del outside["expiresAt"]
    assert inside == {"claudeAiOauth": outside}


def test_refresh_inside_reaches_the_host(talk: Talk) -> None:
    file = log_in(talk.account)
    done = talk.inside(refresh(credentials("new", 8)))
    assert done.returncode == 0, done.stderr
    assert comes_true(lambda: token(file) == "access-new")
    assert load(file)["mcpOAuth"] == MCP["mcpOAuth"]
    status = file.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid) == (PRIVATE, talk.account.uid)
    # The lock goes a moment after the login has come.
    assert comes_true(lambda: [path.name for path in file.parent.iterdir()] == [".credentials.json"])


def test_refresh_inside_reaches_the_host_while_the_box_runs(user_talk: Talk) -> None:
    file = log_in(user_talk.account)
    with running(user_talk, refresh(credentials("new", 8)) + "cat"):
        assert comes_true(lambda: token(file) == "access-new")


def test_refresh_where_the_file_usually_is_reaches_the_host(talk: Talk) -> None:
    """A Claude that does not know of the shared directory renames over the symlink to it."""
    file = log_in(talk.account)
    own = "~/.claude/.credentials.json"
    done = talk.inside(f"cat {own}; umask 077; echo '{credentials('new', 8)}' > ~/.claude/new; mv ~/.claude/new {own}")
    assert "access-first" in done.stdout
    assert comes_true(lambda: token(file) == "access-new")
    assert comes_true((talk.state / ".credentials.json").is_symlink)
    assert "access-new" in talk.inside(f"cat {own}").stdout


def test_credentials_behind_a_symlink_stay_behind_it(user_talk: Talk) -> None:
    real = log_in(user_talk.account, place="dotfiles")
    link = user_talk.account.home / ".claude" / ".credentials.json"
    link.parent.mkdir()
    link.symlink_to(real)
    user_talk.account.own(link.parent)  # where Claude locks
    user_talk.inside(refresh(credentials("new", 8)))
    assert comes_true(lambda: token(real) == "access-new")
    assert link.is_symlink()


def test_rename_on_the_host_is_seen_inside(user_talk: Talk) -> None:
    file = log_in(user_talk.account)
    script = f"echo up; until grep -q access-new {FILE}; do sleep 0.05; done; echo seen"
    with running(user_talk, script) as box:
        assert box.stdout
        assert box.stdout.readline() == "up\n"
        user_talk.account.write(file.with_name("x"), credentials("new", 8, **MCP), mode=PRIVATE).rename(file)
        assert comes_true(lambda: box.poll() is not None)
        assert box.stdout.read() == "seen\n"
    assert token(file) == "access-new"


# As Claude does it: under its lock, and never over a login that is newer than its own.
REFRESH_UNDER_LOCK = """
import json, os, sys, time
store = os.environ["CLAUDE_SECURESTORAGE_CONFIG_DIR"]
file, lock, mine = store + "/.credentials.json", store + "/.storage-write.lock", f"{store}/.new{os.getpid()}"
for text in sys.argv[1:]:
    while True:
        try:
            os.mkdir(lock)
            break
        except FileExistsError:
            time.sleep(0.01)
    if json.loads(text)["claudeAiOauth"]["expiresAt"] > json.load(open(file))["claudeAiOauth"]["expiresAt"]:
        open(mine, "w").write(text)
        os.rename(mine, file)
    os.rmdir(lock)
    time.sleep(0.1)
"""


def test_two_boxes_that_refresh_at_once_leave_the_newest(user_talk: Talk) -> None:
    file = log_in(user_talk.account)
    rounds = [
        shlex.join(
            ["python3", "-c", REFRESH_UNDER_LOCK]
            + [credentials(f"{name}{number}", 2 + number + offset) for number in range(5)]
        )
        for name, offset in (("a", 0.0), ("b", 0.5))
    ]
    with running(user_talk, rounds[0]) as first, running(user_talk, rounds[1]) as second:
        assert (first.wait(PATIENCE), second.wait(PATIENCE)) == (0, 0)
        assert comes_true(lambda: watchers(user_talk.account.home) == [])
    assert token(file) == "access-b4"
    assert token(copy_of(user_talk)) == "access-b4"
    assert load(file)["mcpOAuth"] == MCP["mcpOAuth"]


FORGERIES = {
    "blanked": json.dumps({"claudeAiOauth": {**oauth("x", 8), "accessToken": "", "refreshToken": ""}}),
    "year 3000": json.dumps({"claudeAiOauth": {**oauth("x", 8), "expiresAt": 32503680000000}}),
    "for ever": json.dumps({"claudeAiOauth": {**oauth("x", 8), "expiresAt": float("inf")}}),
    "not a number": json.dumps({"claudeAiOauth": {**oauth("x", 8), "expiresAt": float("nan")}}),
    "a text": json.dumps({"claudeAiOauth": {**oauth("x", 8), "expiresAt": "2099-01-01"}}),
    "huge": json.dumps({"claudeAiOauth": {**oauth("x", 8), "expiresAt": 10**400}}),
    "without refresh token": json.dumps(
        {"claudeAiOauth": {key: value for key, value in oauth("x", 8).items() if key != "refreshToken"}}
    ),
    "tokens of another type": json.dumps({"claudeAiOauth": {**oauth("x", 8), "accessToken": {"a": ["b"]}}}),
    "older": credentials("x", 0.5),
    "half": credentials("x", 8)[:-20],
    "a list": "[1]",
    "empty": "",
    "no login": '{"mcpOAuth": {"evil": {}}}',
}
# In the place of the file at once: the one who keeps logins in step would put it back meanwhile.
SHAPES = {
    "symlink": f"ln -s /etc/hostname {FILE}.new; mv -T {FILE}.new {FILE}",
    "symlink to itself": f"ln -sfn .credentials.json {FILE}",
    "fifo": f"mkfifo {FILE}.new; mv -T {FILE}.new {FILE}",
    "directory": f"rm {FILE}; mkdir -p {FILE}/x",
    "nothing": f"rm {FILE}",
    "10 MB": f"head -c 10000000 /dev/zero > {FILE}",
    "10 MB of blanks": f"(head -c 10000000 /dev/zero | tr '\\0' ' '; echo '{credentials('x', 8)}') > {FILE}",
    "deep": f"yes '[' | head -200000 | tr -d '\\n' > {FILE}",
}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", [*FORGERIES, *SHAPES])
def test_what_is_no_newer_login_never_wins(tmp_path: Path, name: str) -> None:
    """And it does not keep a newer one of the host from entering."""
    login = login_of(tmp_path, "/shop")
    host, boxes = Path(login.file), Path(login.instance.auth_login)
    host.write_text(credentials("first", 1, **MCP))
    copy_newer(login)
    assert token(boxes) == "access-first"
    script = SHAPES[name] if name in SHAPES else refresh(FORGERIES[name])
    subprocess.run(["sh", "-c", script], env={"CLAUDE_SECURESTORAGE_CONFIG_DIR": login.instance.auth}, check=True)
    before = host.read_bytes()
    copy_newer(login)
    assert host.read_bytes() == before
    host.write_text(credentials("second", 2))
    copy_newer(login)
    assert token(host) == "access-second"
    assert token(boxes) == "access-second"


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", ["blanked", "huge", "symlink", "fifo"])
def test_what_is_no_newer_login_never_gets_out(user_talk: Talk, name: str) -> None:
    file = log_in(user_talk.account)
    before = file.read_bytes()
    script = SHAPES[name] if name in SHAPES else refresh(FORGERIES[name])
    assert user_talk.inside(script).returncode == 0
    assert comes_true(lambda: watchers(user_talk.account.home) == [])
    assert file.read_bytes() == before
    # The host's own Claude touches its file: both sides are looked at again.
    user_talk.account.write(file, credentials("second", 2), mode=PRIVATE)
    done = user_talk.inside(f"cat {FILE}")
    assert not broke(done), done.stderr
    assert json.loads(done.stdout)["claudeAiOauth"]["accessToken"] == "access-second"


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: path.symlink_to("/tmp")])
def test_lock_that_the_agent_leaves_does_not_lose_a_login(tmp_path: Path, make: Callable[[Path], None]) -> None:
    login = login_of(tmp_path, "/shop")
    Path(login.file).write_text(credentials("first", 1))
    make(Path(login.instance.auth) / ".storage-write.lock")
    copy_newer(login)
    assert token(Path(login.instance.auth_login)) == "access-first"


def after_a_box_stored(tmp_path: Path, text: str) -> tuple[str, dict[str, Any]]:
    """What the host's file holds when a box has written this into the shared one: as text, and the login in it."""
    login = login_of(tmp_path, "/shop")
    host = Path(login.file)
    host.write_text(credentials("first", 1, **MCP))
    copy_newer(login)
    Path(login.instance.auth_login).write_text(text)
    copy_newer(login)

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is no JSON, and Claude could not read its file")

    return host.read_text(), json.loads(host.read_text(), parse_constant=refuse)["claudeAiOauth"]


@pytest.mark.req("SEC-01")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("expiresAt", "NaN"),
        ("expiresAt", "Infinity"),
        ("expiresAt", "1e999"),
        ("expiresAt", "true"),
        ("refreshTokenExpiresAt", "NaN"),
        ("refreshTokenExpiresAt", "-Infinity"),
        ("foreign", "NaN"),
        ("accessToken", json.dumps("two words")),
        ("accessToken", json.dumps("x" * 20_000)),
        ("refreshToken", json.dumps("line\nbreak")),
        ("refreshToken", '"\\ud800"'),
    ],
)
def test_what_no_claude_writes_does_not_reach_the_host(tmp_path: Path, name: str, value: str) -> None:
    """Nor does the rest of such a login: half of one and half of another is none."""
    if name in ("refreshTokenExpiresAt", "foreign"):
        stored = json.dumps({"claudeAiOauth": {**oauth("new", 8), name: 4711}}).replace("4711", value)
    else:
        stored = json.dumps({"claudeAiOauth": {**oauth("new", 8), name: 4711}}).replace(": 4711", f": {value}")
    _, login = after_a_box_stored(tmp_path, stored)
    assert login["accessToken"] == "access-first"


@pytest.mark.req("SEC-01")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("foreign", "canary"),
        ("foreign", 4711),
        ("loginEnded", "canary"),
        ("subscriptionType", "canary " * 2),
        ("subscriptionType", "canary" * 100),
        ("subscriptionType", ["canary"]),
        ("rateLimitTier", {"canary": 1}),
        ("clientId", "canary\x1b[2J"),
        ("scopes", "canary"),
        ("scopes", ["canary"] * 100),
        ("scopes", ["user:inference", {"canary": 1}]),
        ("refreshTokenExpiresAt", "canary"),
        ("refreshTokenExpiresAt", 10**400),
    ],
)
def test_field_that_is_not_a_logins_does_not_reach_the_host(tmp_path: Path, name: str, value: Any) -> None:
    text, login = after_a_box_stored(tmp_path, json.dumps({"claudeAiOauth": {**oauth("new", 8), name: value}}))
    assert login == {**oauth("first", 1), **oauth("new", 8), "expiresAt": login["expiresAt"]}
    assert login["accessToken"] == "access-new"
    assert 'canary"' not in text.replace("canary-mcp", "")
    assert MCP["mcpOAuth"] == json.loads(text)["mcpOAuth"]


def test_every_field_of_a_login_reaches_the_host(tmp_path: Path) -> None:
    new = {
        **oauth("new", 8),
        "refreshTokenExpiresAt": now() + 30 * 24 * HOUR,
        "subscriptionTypeSource": "profile",
        "subscriptionTypeVerifiedAt": now(),
        "rateLimitTier": "default_claude_max_5x",
        "clientId": "9d1c250a-e61b-44d9-88ed-5944d1962f5e",
    }
    assert new.keys() == FIELDS.keys()
    _, login = after_a_box_stored(tmp_path, json.dumps({"claudeAiOauth": new}))
    assert login == new


@pytest.mark.slow("waits for a lock")
def test_lock_is_where_claude_has_it_and_not_where_a_symlink_leads(tmp_path: Path) -> None:
    login = login_of(tmp_path, "/shop")
    real = tmp_path / "dotfiles" / "credentials.json"
    real.parent.mkdir()
    real.write_text(credentials("first", 1))
    login = login.replace(file=str(real))
    copy_newer(login)
    Path(login.instance.auth_login).write_text(credentials("box", 4))
    lock = Path(login.locks) / ".storage-write.lock"
    lock.mkdir()
    copy_newer(login)
    assert token(real) == "access-first"
    lock.rmdir()
    copy_newer(login)
    assert token(real) == "access-box"


def test_host_lock_is_respected(user_talk: Talk) -> None:
    """The host's own Claude is writing: wait for it."""
    file = log_in(user_talk.account)
    lock = file.parent / ".storage-write.lock"
    lock.mkdir()
    user_talk.account.own(lock)
    boxes = copy_of(user_talk)
    with running(user_talk, refresh(credentials("new", 8)) + "cat") as box:
        assert comes_true(lambda: is_fresh(lock) and boxes.exists() and token(boxes) == "access-new")
        comes_true(
            lambda: is_fresh(lock) and is_taken(user_talk.account.home / ".claudebox" / "auth.lock"), 5
        )  # somebody waits for it
        assert token(file) == "access-first"
        lock.rmdir()
        assert box.stdin
        box.stdin.close()
        assert comes_true(lambda: token(file) == "access-new")
    assert comes_true(lambda: not lock.exists())


def is_fresh(lock: Path) -> bool:
    """An old one would be taken for one that a dead process left."""
    os.utime(lock)
    return True


def is_taken(file: Path) -> bool:
    """Whether somebody has locked this file."""
    with file.open() as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_login_without_a_box_is_preferred_to_none_but_not_made(user_talk: Talk) -> None:
    """A login made in a box, without one on the host, is kept for the boxes."""
    user_talk.inside(refresh(credentials("inside", 8)))
    assert json.loads(user_talk.inside(f"cat {FILE}").stdout)["claudeAiOauth"]["accessToken"] == "access-inside"
    assert not (user_talk.account.home / ".claude").exists()


def test_logging_out_on_the_host_logs_the_boxes_out(user_talk: Talk) -> None:
    file = log_in(user_talk.account)
    user_talk.inside("true")
    file.unlink()
    assert "refresh-first" not in user_talk.inside(f"cat {FILE}").stdout


def test_login_is_not_brought_back_after_logging_out_on_the_host(user_talk: Talk) -> None:
    file = log_in(user_talk.account)
    user_talk.inside("true")
    user_talk.account.write(file, json.dumps(MCP), mode=PRIVATE)  # what `/logout` leaves
    user_talk.inside("true")
    assert comes_true(lambda: watchers(user_talk.account.home) == [])
    assert load(file) == MCP


def test_login_for_boxes_only_is_preferred(talk: Talk) -> None:
    host = log_in(talk.account, "host", 8)
    boxes = log_in(talk.account, "boxes", 1, ".claudebox")
    done = talk.inside(f"cat {FILE}")
    assert json.loads(done.stdout)["claudeAiOauth"]["accessToken"] == "access-boxes"
    talk.inside(refresh(credentials("new", 9)))
    assert comes_true(lambda: token(boxes) == "access-new")
    assert token(host) == "access-host"


def test_logins_are_not_mixed_when_the_user_starts_to_keep_one_for_boxes(user_talk: Talk) -> None:
    """The other way round as well: each file keeps its own refresh token, or somebody is logged out."""
    host = log_in(user_talk.account, "host", 8)
    user_talk.inside("true")
    boxes = log_in(user_talk.account, "boxes", 1, ".claudebox")
    done = user_talk.inside(f"cat {FILE}")
    assert (token(host), token(boxes)) == ("access-host", "access-boxes")
    assert json.loads(done.stdout)["claudeAiOauth"]["accessToken"] == "access-boxes"
    boxes.unlink()
    log_in(user_talk.account, "host", 0.5)
    user_talk.inside("true")
    assert token(host) == "access-host"


def test_box_that_shared_another_login_leaves_the_new_one_alone(tmp_path: Path) -> None:
    """It may still run, or be about to end: the two would replace each other's copy in turns."""
    former = login_of(tmp_path, "/shop")
    Path(former.file).write_text(credentials("host", 8))
    copy_newer(former)
    later = former.replace(file=str(tmp_path / "boxes.json"))
    Path(later.file).write_text(credentials("boxes", 1))
    copy_newer(later)
    shared = Path(later.instance.auth_login)
    assert token(shared) == "access-boxes"
    Path(former.file).write_text(credentials("host", 4))
    copy_newer(former, may_switch=False)
    assert token(shared) == "access-boxes"
    copy_newer(later, may_switch=False)
    assert [token(Path(one.file)) for one in (former, later)] == ["access-host", "access-boxes"]
    copy_newer(former)
    assert token(shared) == "access-host"


def test_login_can_stay_outside(talk: Talk) -> None:
    file = log_in(talk.account)
    script = 'echo "${CLAUDE_SECURESTORAGE_CONFIG_DIR-unset}"; ls -A "$XDG_RUNTIME_DIR"'
    done = talk.inside(script, "--auth", "none")
    assert done.stdout == "unset\n"
    assert "--auth" not in done.stderr
    assert not copy_of(talk).parent.exists()
    assert token(file) == "access-first"
    found = talk.inside(
        "grep -rs refresh-f'irst' / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr", "--auth=none"
    )
    assert found.stdout == ""


@pytest.mark.req("AUTH-02")
def test_without_a_login_one_line_says_so(user_talk: Talk) -> None:
    done = user_talk.inside("true")
    assert done.returncode == 0
    said = [line.strip() for line in done.stderr.lower().splitlines() if "login" in line or "logged in" in line]
    assert said == ["login        nobody is logged in: type /login in the box"]
    assert user_talk().stdout == ANSWER + "\n"
    assert watchers(user_talk.account.home) == []


@pytest.mark.req("SAND-15")
@pytest.mark.parametrize("end", ["by itself", "killed"])
def test_nothing_stays_behind(talk: Talk, end: str) -> None:
    log_in(talk.account)
    with running(talk, "echo up; cat") as box:
        assert box.stdout
        assert box.stdin
        assert box.stdout.readline() == "up\n"
        assert len(watchers(talk.account.home)) >= 2
        if end == "killed":
            box.send_signal(signal.SIGKILL)
        else:
            box.stdin.close()
        box.wait(PATIENCE)
        assert comes_true(lambda: watchers(talk.account.home) == [])
    names = {path.name for path in copy_of(talk).parent.iterdir()}
    assert names == {".credentials.json"}
    assert {path.name for path in (talk.account.home / ".claude").iterdir()} == {".credentials.json"}


@pytest.mark.req("SAND-15", "SAND-14")
def test_output_ends_with_the_box(user_talk: Talk) -> None:
    """`claudebox … | cat` comes back at once: who keeps the login up to date may be slow, and holds no pipe."""
    log_in(user_talk.account)
    with running(user_talk, "echo up; cat; echo done; exit 7") as box:
        assert box.stdout
        assert box.stdin
        assert box.stdout.readline() == "up\n"
        beside = [pid for pid in watchers(user_talk.account.home) if os.getsid(pid) == pid != box.pid]
        assert beside
        for pid in beside:
            os.kill(pid, signal.SIGSTOP)
        try:
            box.stdin.close()
            assert box.stdout.read() == "done\n"
        finally:
            for pid in beside:
                os.kill(pid, signal.SIGCONT)
        assert box.wait(PATIENCE) == 7
