"""A program wants to live on when claudebox, or a part of the box, has been killed.

(With `--network inet`: tests/network/test_kill.py.)
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from conftest import CHECKOUT, CLAUDEBOX, Account, Box
from network.processes import Household, adopting_orphans, descendants
from network.standins import BASH, WAITS, WAITS_IN_THE_MIDDLE, Gate, hold
from patience import comes_true

pytestmark = pytest.mark.req("SAND-15")

KILLED = -signal.SIGKILL
TRIES = 14

PLAIN = "echo begun >>outcome; exec sleep 1000"
# Ignores what can be ignored, with children that have sessions of their own and lost their parents.
HOLDS_ON = """
trap '' HUP INT QUIT TERM
for each in 1 2 3; do (trap '' HUP INT QUIT TERM; setsid sh -c 'sleep 1000 & sleep 1000' &) & done
echo begun >>outcome
while :; do sleep 1000; done
"""
# The first process of the box was told to die with its parent. By ptrace it can be made to forget that: it is waiting
# in a system call, so there is one at hand to repeat with other arguments.
FREES_THE_FIRST_PROCESS = """
import ctypes, os, signal, struct
trace = ctypes.CDLL(None, use_errno=True).ptrace
trace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
ATTACH, GET, SET, STEP, DETACH = 16, 12, 13, 9, 17
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)

def do(request, data=None):
    if trace(request, 1, None, data) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")

do(ATTACH)
os.waitpid(1, 0x40000000)
before = (ctypes.c_ulonglong * 27)()
do(GET, ctypes.cast(before, ctypes.c_void_p))
changed = (ctypes.c_ulonglong * 27)(*before)
RAX, RSI, RDI, ORIG_RAX, RIP = 10, 13, 14, 15, 16
PRCTL, SET_PARENT_DEATH_SIGNAL = 157, 1
changed[RAX], changed[RDI], changed[RSI], changed[ORIG_RAX] = PRCTL, SET_PARENT_DEATH_SIGNAL, 0, 2**64 - 1
changed[RIP] = before[RIP] - 2
do(SET, ctypes.cast(changed, ctypes.c_void_p))
do(STEP)
os.waitpid(1, 0x40000000)
after = (ctypes.c_ulonglong * 27)()
do(GET, ctypes.cast(after, ctypes.c_void_p))
do(SET, ctypes.cast(before, ctypes.c_void_p))
do(DETACH)
open("outcome", "a").write("begun" if after[RAX] == 0 else f"refused: {after[RAX]}")
while True:
    signal.pause()
"""
# claudebox on a machine that lets it make no namespace of its own.
WITHOUT_A_NAMESPACE = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from claudebox import cli, start
launch = start.launch
def start_weaker(one):
    one.plan = one.plan.replace(kernel=one.plan.kernel.replace(owns_pid_namespace=False))
    launch(one)
start.launch = start_weaker
cli.main()
"""
WEAKER = (os.path.realpath(sys.executable), "-I", "-c", WITHOUT_A_NAMESPACE, str(CHECKOUT / "src"))

Start = Callable[..., Household]


@pytest.fixture(params=["full", pytest.param("none", marks=pytest.mark.exhaustive("the same processes"))])
def start(box: Box, account: Account, request: pytest.FixtureRequest) -> Iterator[Start]:
    """Start a box, one after another as a test wants."""
    account.environ["CLAUDEBOX_NETWORK"] = request.param
    latest: list[Household] = []

    def start_one(*program: str, claudebox: tuple[str, ...] = (CLAUDEBOX,)) -> Household:
        end_latest()
        (box.project / "outcome").unlink(missing_ok=True)
        others = frozenset(process.pid for process in descendants(os.getpid()))
        launcher: subprocess.Popen[str] = subprocess.Popen(
            account.becoming(*claudebox, "--yes", "--run", *program),
            cwd=box.project,
            env=account.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        latest.append(Household(launcher, others))
        return latest[0]

    def end_latest() -> None:
        while latest:
            latest.pop().clean_up()

    with adopting_orphans():
        yield start_one
        end_latest()


def outcome(box: Box) -> str:
    file = box.project / "outcome"
    return file.read_text() if file.exists() else ""


def begins(box: Box) -> bool:
    return comes_true(lambda: "begun" in outcome(box))


@pytest.mark.parametrize("part", ["launcher", "builder", "init", "program"])
@pytest.mark.parametrize("script", [PLAIN, HOLDS_ON], ids=["plain", "holds on"])
def test_box_ends_with_each_of_its_processes(start: Start, box: Box, part: str, script: str) -> None:
    household = start(BASH, "-c", script)
    assert begins(box)
    household.kill(part)
    assert household.end() == []
    assert household.launcher.wait() == (KILLED if part in ("launcher", "builder") else 137)


def freed(start: Start, box: Box, **how: tuple[str, ...]) -> Household:
    """A box whose program has worked on the first process."""
    box.account.write(box.project / "attack", FREES_THE_FIRST_PROCESS)
    household = start("python3", "attack", **how)
    assert begins(box), outcome(box)
    return household


@pytest.mark.parametrize("part", ["launcher", "builder"])
@pytest.mark.x86
def test_box_ends_though_its_first_process_was_freed(start: Start, box: Box, part: str) -> None:
    household = freed(start, box)
    household.kill(part)
    assert household.end() == []


@pytest.mark.x86
@pytest.mark.root_repeats("shows that the attack is real, which one account does")
def test_freed_process_lives_on_where_there_is_no_namespace_of_ours(start: Start, box: Box) -> None:
    """The attack works; and this is what a note warns of on such machines."""
    household = freed(start, box, claudebox=WEAKER)
    household.kill("launcher")
    assert household.end(patience=5) != []  # who lives on so long has nothing that would end it


def test_program_that_does_not_work_against_it_ends_there_too(start: Start, box: Box) -> None:
    household = start(BASH, "-c", HOLDS_ON, claudebox=WEAKER)
    assert begins(box)
    household.kill("launcher")
    assert household.end() == []


@pytest.mark.parametrize("part", ["builder", "init", "program"])
@pytest.mark.x86
def test_all_else_is_held_there_too(start: Start, box: Box, part: str) -> None:
    household = freed(start, box, claudebox=WEAKER)
    household.kill(part)
    assert household.end() == []


# Moments of a start at which it can be held, and what becomes of it when one of those dies who are there then.
HELD = {
    "before bwrap": (WAITS, {"launcher": KILLED, "builder": KILLED}),
    "before the program": (WAITS_IN_THE_MIDDLE, {"launcher": KILLED, "builder": KILLED, "init": 137}),
}
DEATHS = [
    pytest.param(moment, part, status, id=f"{part} {moment}")
    for moment, (_, parts) in HELD.items()
    for part, status in parts.items()
]


def held(moment: str, start: Start, account: Account) -> tuple[Household, Gate]:
    gate = hold(account, "bwrap", HELD[moment][0])
    household = start(BASH, "-c", PLAIN)
    assert comes_true(lambda: gate.is_reached(household.members().get("init"))), household.remains()
    return household, gate


@pytest.mark.parametrize(("moment", "part", "status"), DEATHS)
def test_death_at_a_start_leaves_nothing(
    start: Start, box: Box, account: Account, moment: str, part: str, status: int
) -> None:
    household, gate = held(moment, start, account)
    household.kill(part)
    gate.open()
    assert (household.end(), outcome(box)) == ([], "")
    assert household.launcher.wait() == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", HELD)
def test_start_can_be_given_up(start: Start, box: Box, account: Account, moment: str, number: int) -> None:
    household, _ = held(moment, start, account)
    os.kill(household.launcher.pid, number)
    assert (household.end(), outcome(box)) == ([], "")
    assert household.launcher.wait() == -number


def test_death_at_any_moment_leaves_nothing(start: Start, box: Box) -> None:
    """Moments from before the first line of claudebox to after the first of the program, and everybody in turn."""
    start(BASH, "-c", PLAIN)
    begin = time.monotonic()
    assert begins(box)
    whole = time.monotonic() - begin
    for number in range(TRIES):
        household = start(BASH, "-c", HOLDS_ON)
        time.sleep(whole * 1.2 * number / TRIES)
        parts = [pid for part, pid in household.members().items() if part != "descendant"]
        os.kill(parts[number % len(parts)], signal.SIGKILL)
        household.launcher.kill()
        assert household.end() == []
