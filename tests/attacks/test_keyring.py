"""Keys that the kernel keeps for the user: passwords of network drives, tickets, tokens of a browser or an agent."""

import json
import shutil
import uuid
from dataclasses import dataclass

import pytest

from attacks.unprotected import FILTER, without
from conftest import CLAUDEBOX, Account, Box

pytestmark = pytest.mark.req("SEC-02")

CANARY = "canary-41be07"
NAME = f"claudebox-test:{uuid.uuid4().hex}"  # root has one keyring for all workers, and for all runs of these tests
CALLS = """
import ctypes, errno, json, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
ADD_KEY, KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}[platform.machine()]
SESSION, USER = -3, -4
JOIN, CHANGE_PERMISSIONS, LINK, UNLINK, SEARCH, READ = 1, 5, 8, 9, 10, 11

def call(number, *arguments):
    ctypes.set_errno(0)
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result
"""
# A session of a user who has stored something: a key in its keyring, and one that all processes of the user may read.
LOGIN = f"""{CALLS}
call(KEYCTL, JOIN, None)
call(KEYCTL, LINK, USER, SESSION)
for keyring, permissions in ((SESSION, 0x3f010000), (USER, 0x3f3f0000)):
    key = call(ADD_KEY, b"user", b"{NAME}", b"{CANARY}", len("{CANARY}"), keyring)
    call(KEYCTL, CHANGE_PERMISSIONS, key, permissions)
try:
    os.spawnvp(os.P_WAIT, sys.argv[1], [*sys.argv[1:], str(key)])
finally:
    call(KEYCTL, UNLINK, key, USER)
"""
# What an attacker can find: through the session, through the user, by the number of a key, and in the list of names.
STEAL = f"""{CALLS}
found = []
def attempt(way, find):
    try:
        content = ctypes.create_string_buffer(100)
        length = call(KEYCTL, READ, find(), content, 100)
        found.append([way, content.raw[:length].decode()])
    except OSError as error:
        found.append([way, errno.errorcode[error.errno]])
for way, keyring in (("session", SESSION), ("user", USER)):
    attempt(way, lambda: call(KEYCTL, SEARCH, keyring, b"user", b"{NAME}", 0))
attempt("number", lambda: int(sys.argv[-1]))
try:
    found.append(["names", "seen" if "{NAME}" in open("/proc/keys").read() else "nothing"])
except PermissionError:
    found.append(["names", "nothing"])
print(json.dumps(dict(found)))
"""
PLAIN_BWRAP = (shutil.which("bwrap") or "bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--")
ALL = {"session": CANARY, "user": CANARY, "number": CANARY, "names": "seen"}


@dataclass
class Session:
    """A login of an account that has stored a key."""

    account: Account

    def run(self, *command: str, **how: object) -> dict[str, str]:
        done = self.account.run("python3", "-c", LOGIN, *command, "python3", "-c", STEAL, **how)  # type: ignore[arg-type]
        return dict(json.loads(done.stdout)) if done.stdout else {"error": done.stderr}

    def in_box(self, box: Box) -> dict[str, str]:
        return self.run(CLAUDEBOX, "--yes", "--run", cwd=box.project, env=box.account.environ)


@pytest.fixture
def session(account: Account) -> Session:
    return Session(account)


def test_keys_can_be_taken_on_the_host(session: Session) -> None:
    assert session.run("env") == ALL


def test_key_of_the_session_can_be_taken_from_a_plain_bwrap(session: Session) -> None:
    found = session.run(*PLAIN_BWRAP)
    assert (found["session"], found["number"], found["names"]) == (CANARY, CANARY, "seen")


def test_no_key_can_be_taken_from_the_box(box: Box, session: Session) -> None:
    assert session.in_box(box) == {"session": "ENOSYS", "user": "ENOSYS", "number": "ENOSYS", "names": "nothing"}


def test_keyring_of_the_session_is_gone_even_without_the_filter(box: Box, session: Session) -> None:
    found = session.in_box(without(box, FILTER))
    assert (found["session"], found["user"]) == ("ENOKEY", "ENOKEY")


def test_list_of_users_with_keys_is_empty(box: Box) -> None:
    assert box.account.run("cat", "/proc/key-users").stdout != ""
    assert box.sh("cat /proc/key-users /proc/keys 2>/dev/null; echo done") == "done\n"
