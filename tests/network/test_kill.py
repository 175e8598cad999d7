"""Whatever dies, and whenever: nothing of a box on tier `inet` stays, and no program runs without the filter."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Box
from network.internet import Resident
from network.processes import Household, adopting_orphans, descendants
from network.servers import PORT
from network.standins import BASH, DOES_NOTHING, WAITS, WAITS_IN_THE_MIDDLE, Gate, hold, install
from patience import comes_true

pytestmark = pytest.mark.req("NET-02")

FORBIDDEN = "192.168.50.2"  # a neighbour on the LAN, who answers
KNOCK = f"(exec 3<>/dev/tcp/{FORBIDDEN}/{PORT}) 2>/dev/null && echo reached || echo refused"
# From its first action to its last.
KNOCK_ON = f"echo begun >>outcome; while :; do {KNOCK}; sleep 0.05; done >>outcome"
# Opens what the first process of the box has open.
HOLD_ON = """
for each in /proc/1/fd/*; do { exec {held}<>"$each"; } 2>/dev/null; done
echo begun >>outcome
sleep 60
"""

REFUSED = 125  # by claudebox
KILLED = -signal.SIGKILL


TRIES = 14  # starts that are interrupted, for each account and each pasta


@dataclass
class Attempt:
    """A box whose program knocks at a forbidden door all the time."""

    box: Box
    household: Household
    before: list[Path]

    @property
    def outcome(self) -> str:
        """What the program saw; nothing if it did not run."""
        file = self.box.project / "outcome"
        return file.read_text() if file.exists() else ""

    def has_begun(self) -> bool:
        return "begun" in self.outcome

    def reach(self, gate: Gate) -> None:
        assert comes_true(lambda: gate.is_reached(self.household.members().get("init"))), self.household.remains()

    def end(self) -> int:
        """The status of the launcher, when nothing is left."""
        assert self.household.end() == []
        assert files(self.box.account.home) == self.before
        return self.household.launcher.wait()


Start = Callable[..., Attempt]


def files(home: Path) -> list[Path]:
    """What an account has, but for what the program made and for what the test network puts there."""
    made = {"outcome", "gate.arrived"}
    return sorted(path for path in home.rglob("*") if path.name not in made and "of-network-" not in path.name)


@pytest.fixture
def start(box: Box, account: Resident) -> Iterator[Start]:
    """Start a box, one after another as a test wants, with a directory for temporary files that is empty."""
    temporary = account.home / "tmp"
    temporary.mkdir()
    account.own(temporary)
    account.environ.update(TMPDIR=str(temporary), CLAUDEBOX_NETWORK="inet")
    latest: list[Household] = []

    def start_one(script: str = KNOCK_ON) -> Attempt:
        end_latest()
        (box.project / "outcome").unlink(missing_ok=True)
        before = files(account.home)
        others = frozenset(process.pid for process in descendants(os.getpid()))
        launcher = account.start(CLAUDEBOX, "--yes", "--run", BASH, "-c", script, cwd=box.project)
        latest.append(Household(launcher, others))
        return Attempt(box, latest[0], before)

    def end_latest() -> None:
        while latest:
            latest.pop().clean_up()

    with adopting_orphans():
        yield start_one
        end_latest()


def test_knock_is_answered_where_there_is_no_filter(start: Start, account: Resident) -> None:
    """On the host, and in a box whose filter was not loaded."""
    assert account.run(BASH, "-c", KNOCK).stdout == "reached\n"
    install(account, "nft", DOES_NOTHING)
    attempt = start()
    assert comes_true(lambda: "reached" in attempt.outcome)


@pytest.mark.parametrize(
    ("part", "status"),
    [("launcher", KILLED), ("builder", KILLED), ("pasta", KILLED), ("init", 137), ("program", 137)],
)
def test_box_ends_with_each_of_its_processes(start: Start, pasta: str, part: str, status: int) -> None:
    attempt = start()
    assert comes_true(attempt.has_begun)
    attempt.household.kill(part)
    assert attempt.end() == status
    assert "reached" not in attempt.outcome


def test_program_cannot_make_the_box_outlive_pasta(start: Start) -> None:
    attempt = start(HOLD_ON)
    assert comes_true(attempt.has_begun)
    attempt.household.kill("pasta")
    assert attempt.end() == KILLED


# Moments of a start at which it can be held, with which program, and what becomes of it when one of those dies who are
# there then.
HELD = {
    "before the filter": ("nft", WAITS, {"launcher": KILLED, "builder": KILLED, "pasta": REFUSED, "helper": REFUSED}),
    "before pasta": ("pasta", WAITS, {"launcher": KILLED, "builder": KILLED, "pasta": REFUSED}),
    "before bwrap": ("bwrap", WAITS, {"launcher": KILLED, "builder": KILLED, "pasta": KILLED}),
    "before the program": (
        "bwrap",
        WAITS_IN_THE_MIDDLE,
        {"launcher": KILLED, "builder": KILLED, "pasta": KILLED, "init": 137},
    ),
}
DEATHS = [
    pytest.param(moment, part, status, id=f"{part} {moment}")
    for moment, (_, _, parts) in HELD.items()
    for part, status in parts.items()
]


def start_until(moment: str, start: Start, account: Resident) -> tuple[Attempt, Gate]:
    name, text, _ = HELD[moment]
    gate = hold(account, name, text)
    attempt = start()
    attempt.reach(gate)
    return attempt, gate


@pytest.mark.parametrize(("moment", "part", "status"), DEATHS)
def test_death_at_a_start_leaves_nothing(start: Start, account: Resident, moment: str, part: str, status: int) -> None:
    attempt, gate = start_until(moment, start, account)
    attempt.household.kill(part)
    if status == KILLED:
        assert comes_true(lambda: attempt.household.launcher.poll() is not None)
    gate.open()
    assert comes_true(lambda: attempt.household.launcher.poll() is not None)
    comes_true(lambda: attempt.has_begun() or not attempt.household.remains())
    assert not attempt.has_begun()
    # A pasta that was ready before it died is missed a little later: by the parent, which then ends bwrap.
    assert attempt.end() in ((status, KILLED) if part == "pasta" else (status,))


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP), (signal.SIGINT, 130)]
)
@pytest.mark.parametrize("moment", ["before the filter", "before pasta"])
def test_start_can_be_given_up(start: Start, account: Resident, moment: str, number: int, status: int) -> None:
    attempt, _ = start_until(moment, start, account)
    os.kill(attempt.household.launcher.pid, number)
    assert attempt.end() == status
    assert not attempt.has_begun()


def test_death_at_any_moment_leaves_nothing(start: Start, pasta: str) -> None:
    """Moments from before the first line of claudebox to after the first of the program, and everybody in turn."""
    first, begin = start(), time.monotonic()
    assert comes_true(first.has_begun)
    whole = time.monotonic() - begin
    for number in range(TRIES):
        attempt = start()
        time.sleep(whole * 1.2 * number / TRIES)
        kill_one(attempt, number)
        assert "reached" not in attempt.outcome


def kill_one(attempt: Attempt, number: int) -> None:
    """Of those who are there, another one each time."""
    parts = [pid for part, pid in attempt.household.members().items() if part != "descendant"]
    try:
        os.kill(parts[number % len(parts)], signal.SIGKILL)
    except ProcessLookupError:
        pass  # a helper that had just finished
    attempt.household.launcher.kill()
    attempt.end()


def test_status_is_the_programs(box: Box, pasta: str) -> None:
    for script, status in (("exit 37", 37), ("kill -s KILL $$", 137)):
        assert box.inside("sh", "-c", script, options=("--network", "inet")).returncode == status
