"""Whatever becomes of the process that knows the list, or of the list: a box is never open."""

import json
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Box
from network.allowlist.world import GREETING
from network.internet import Internet, Resident
from network.processes import descendants, is_alive
from network.servers import PORT
from patience import PATIENCE, comes_true

pytestmark = pytest.mark.req("NAME-01")

KNOCK = "exec 3<>/dev/tcp/{host}/{port} && echo {token} >&3 && cat <&3"
# Says that it has begun, waits for a word, and knocks at two doors.
WAIT_AND_KNOCK = "echo begun; read -r _; (%s) 2>/dev/null || echo nobody; (%s) 2>/dev/null || echo nobody"


@contextmanager
def waiting(box: Box, account: Resident, script: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    words = ("--yes", "--network", "allowlist", "--allow", f"allowed.example:{PORT}", *options)
    process = account.start(CLAUDEBOX, *words, "--run", "bash", "-c", script, cwd=box.project)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "begun\n"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def knocks(token: str) -> str:
    allowed = KNOCK.format(host="allowed.example", port=PORT, token=token)
    return WAIT_AND_KNOCK % (allowed, KNOCK.format(host="refused.example", port=PORT, token=token))


def relay_of(launcher: int) -> int:
    """The process outside: a child of the launcher, in a session of its own and without a child."""
    family = descendants(launcher)
    found = [each for each in family if each.parent == launcher and each.session == each.pid]
    (relay,) = [each.pid for each in found if each.name != "bwrap" and all(one.parent != each.pid for one in family)]
    return relay


def is_gone(pid: int) -> bool:
    return not is_alive(pid)


def test_box_ends_with_the_process_that_knows_the_list(box: Box, account: Resident, internet: Internet) -> None:
    token = uuid.uuid4().hex
    with waiting(box, account, knocks(token)) as process:
        os.kill(relay_of(process.pid), signal.SIGKILL)
        output, errors = process.communicate("go\n", timeout=PATIENCE)
    assert process.returncode == 125
    assert output.replace("nobody\n", "") == ""  # it may have noticed, before it was ended
    assert "the process that knows the box's allowlist was ended" in errors
    assert internet.heard(token + "\n") == set()


def test_process_ends_with_the_box(box: Box, account: Resident) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with waiting(box, account, "echo begun; sleep 100") as process:
            relay = relay_of(process.pid)
            process.send_signal(number)
            process.wait(PATIENCE)
            assert comes_true(partial(is_gone, relay))


def test_box_that_is_not_served_yet_reaches_nothing(box: Box, account: Resident, internet: Internet) -> None:
    """A stopped process is like one that is not there yet: what the box opens waits, and arrives when it goes on."""
    token = uuid.uuid4().hex
    with waiting(box, account, knocks(token)) as process:
        relay = relay_of(process.pid)
        os.kill(relay, signal.SIGSTOP)
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        assert not comes_true(lambda: bool(internet.heard(token + "\n")), 0.5)
        os.kill(relay, signal.SIGCONT)
        output, _ = process.communicate(timeout=PATIENCE)
    assert output == "internetnobody\n"


def test_list_that_is_edited_changes_no_running_box(box: Box, account: Resident, internet: Internet) -> None:
    token = uuid.uuid4().hex
    config = account.home / ".claudebox" / "config.toml"
    account.write(config, "allow = []\n", 0o600)
    before = len(internet.lookups("refused.example"))
    with waiting(box, account, knocks(token)) as process:
        for text in ('allow = ["refused.example:*"]\n', 'network = "full"\n', "no [settings"):
            config.write_text(text)
        output, _ = process.communicate("go\n", timeout=PATIENCE)
    assert output == "internetnobody\n"
    assert len(internet.lookups("refused.example")) == before


def test_projects_file_cannot_lengthen_the_list(box: Box, account: Resident, internet: Internet) -> None:
    knock = KNOCK.format(host="{}", port=PORT, token="hello")
    script = f"({knock.format('allowed.example')}) 2>/dev/null || echo nobody; "
    script += f"({knock.format('four.example')}) 2>/dev/null || echo nobody"
    options = ("--network", "allowlist", "--allow", f"allowed.example:{PORT}")
    account.write(box.project / ".claudebox.toml", f'allow = ["four.example:{PORT}"]\n')
    assert box.inside("bash", "-c", script, options=options).stdout == "internetnobody\n"


def test_journal_tells_what_happened_and_suggests_what_is_needed(
    box: Box, account: Resident, internet: Internet
) -> None:
    token = uuid.uuid4().hex
    with waiting(box, account, knocks(token)) as process:
        process.communicate("go\n", timeout=PATIENCE)
    log = box.claudebox("--network-log").stdout.splitlines()
    assert [line.split()[2:] for line in log[1:]] == [
        ["allowed", "33B", "8B", f"allowed.example:{PORT}"],
        ["refused", "refused.example"],
    ]
    assert token not in "".join(path.read_text() for path in account.home.rglob("network.jsonl"))
    suggested = box.claudebox("--network-log", "--suggest").stdout
    assert [line.split("#")[0].strip() for line in suggested.splitlines()] == [
        'network = "allowlist"',
        "allow = [",
        f'"allowed.example:{PORT}",',
        '"refused.example",',
        "]",
    ]


@pytest.mark.parametrize("families", ["-4", "-6"])
def test_host_with_one_kind_of_address_is_enough(
    box: Box, account: Resident, internet: Internet, families: str
) -> None:
    """The other kind has no route: its addresses are tried, and do not hold up the rest."""
    route = internet.host.run("ip", "-6" if families == "-4" else "-4", "route", "show", "default").strip()
    kind = "-6" if families == "-4" else "-4"
    account.resolv_conf = "nameserver 192.168.50.1\n" if families == "-4" else "nameserver fd00:50::1\n"
    script = KNOCK.format(host="allowed.example", port=PORT, token="hello")
    internet.host.run("ip", kind, "route", "del", *route.split())
    try:
        done = box.inside("bash", "-c", script, options=("--network", "allowlist", "--allow", "allowed.example:*"))
    finally:
        internet.host.run("ip", kind, "route", "add", *route.split())
    assert done.stdout == "internet", done.stderr


def test_quiet_box_leaves_its_refusals_to_the_journal(box: Box, internet: Internet) -> None:
    words = ("--network", "allowlist", "--run", "getent", "hosts", "refused.example")
    assert "refused by --network allowlist: refused.example\n" in box.claudebox("--yes", *words).stderr
    assert box.claudebox("--yes", "--quiet", *words).stderr == ""
    assert "refused.example" in box.claudebox("--network-log").stdout


# Many connections, slow ones, half-closed ones and large ones: the box is served, and the host does not suffer.


CROWD = Path(__file__).with_name("crowd.py")
LARGEST_JOURNAL = 2 << 20


# Python's TLS forgets to close a socket whose client has gone before it was wrapped: of the stand-in, not of claudebox.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.exhaustive("thousands of connections")
def test_box_is_served_through_all_of_it(box: Box, account: Resident, world: Internet) -> None:
    shutil.copy(CROWD, box.project)
    options = ("--allow", f"allowed.example:{PORT}", "--allow", "allowed.example", "--allow", "*.wild.example")
    done = box.inside(
        *("/usr/bin/python3", "crowd.py", "allowed.example", str(PORT)),
        options=("--network", "allowlist", *options),
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "one_after_another": "internet",
        "at_the_same_time": "internet",
        "many": "internet",
        "byte_by_byte_to_nowhere": "internet",
        "half_closed": GREETING,
        "large": f"{1 << 26} True {GREETING}",
        "thousands_of_queries": "internet",
        "junk": "internet",
        "listener_itself": "HTTP/1.1 403 Forbidden",
    }
    assert world.lookups("x1.wild.example") == []
    (journal,) = account.home.rglob("network.jsonl")
    assert journal.stat().st_size < LARGEST_JOURNAL
