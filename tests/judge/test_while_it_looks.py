"""What happens while the judge looks: the box is killed, or an agent in another box renames directories."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter

import pytest

from conftest import CHECKOUT, CLAUDEBOX, Account, Box
from patience import comes_true

pytestmark = pytest.mark.req("JUDGE-01")

REFUSED = 125
LAUNCHES = 30
CANARY = "cAnArY7x9renamed"
PYTHON = (os.path.realpath(sys.executable), "-I", "-S", "-c")
SOURCES = str(CHECKOUT / "src")

# claudebox whose box is killed just before the judge takes one of its steps: `whom` is `first` or `builder`.
KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv.pop(1))
step, whom = sys.argv.pop(1), sys.argv.pop(1)
from claudebox.cli import main
from claudebox.sandbox.judge import Judge
from claudebox.sandbox import judge
def kill(number):
    os.kill(number, signal.SIGKILL)
    # It is gone, or a zombie of which nothing can be read.
    while open(f"/proc/{number}/stat").read().rpartition(")")[2].split()[0] not in "ZX": pass
owner = judge if step == "Mounts" else Judge
before = getattr(owner, step)
def killing(*arguments):
    self = arguments[0]
    if not isinstance(self, Judge):
        self = sys._getframe(1).f_locals["self"]
    try: kill(int(getattr(self, {"first": "process", "builder": "builder"}[whom]).rpartition("/")[2]))
    except OSError: pass
    return before(*arguments)
def afterwards(*arguments):
    before(*arguments)
    kill(int(getattr(arguments[0], {"first": "process", "builder": "builder"}[whom]).rpartition("/")[2]))
setattr(owner, step, afterwards if step == "require_lawful" else killing)
main()
"""
ENDS = {-signal.SIGKILL: "builder", 128 + signal.SIGKILL: "first"}  # claudebox, if that was killed
STEPS = ("_of_process", "_of_descriptors", "_of_environment", "Mounts", "_of_mount", "_of_place", "_of_what_is_made")
# A kernel that is built without lists of children.
CHILDLESS = """
import builtins, sys
sys.path.insert(0, sys.argv.pop(1))
from claudebox.cli import main
from claudebox.sandbox import gate
def open_others(path, *how):
    if str(path).endswith("/children"): raise FileNotFoundError(path)
    return builtins.open(path, *how)
gate.open = open_others
main()
"""
# A kernel whose list of mounts cannot be understood.
UNREADABLE = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from claudebox.cli import main
from claudebox.sandbox import judge
row = judge.Row
def understand(line): return row(line.replace(b" - ", b" ")) if b" /proc " in line else row(line)
judge.Row = understand
main()
"""
# What the agent runs: it renames directories, and lets them rest for a while.
RENAMES = """
import contextlib, os, random, time
open("begun", "w").close()
while True:
    for old, new in (("app", "moved"), ("docs", "app"), ("app", "docs"), ("moved", "deep/app"), ("deep/app", "app")):
        # In the place of what has gone away, bwrap may have made something to mount on.
        with contextlib.suppress(OSError): os.rename(old, new)
        time.sleep(random.choice((0.001, 0.02, 0.3)))
"""
CHOICES = ((), ("--hide", "app"), ("--hide", "app/private"), ("--hide", "app", "--network", "none"))


def start(box: Box, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return box.account.run(*PYTHON, program, SOURCES, *words, cwd=box.project)


def say(done: subprocess.CompletedProcess[str]) -> str:
    return f"{done.returncode}\n{done.stdout}{done.stderr}"


@pytest.mark.root_repeats("the same steps")
@pytest.mark.parametrize("whom", ["builder", "first"])
def test_box_that_is_killed_meanwhile(whom: str, box: Box) -> None:
    """Nothing starts, and nobody sees a traceback."""
    for step in STEPS:
        done = start(box, KILLED, step, whom, "--yes", "--quiet", "--run", "echo", "started")
        assert "Traceback" not in done.stderr, f"{step}: {say(done)}"
        assert "started" not in done.stdout, f"{step}: {say(done)}"
        assert done.returncode in (REFUSED, *ENDS), f"{step}: {say(done)}"


@pytest.mark.parametrize("whom", ENDS)
def test_box_that_is_killed_when_the_judge_has_looked(whom: int, box: Box) -> None:
    done = start(box, KILLED, "require_lawful", ENDS[whom], "--yes", "--quiet", "--run", "echo", "started")
    assert (done.returncode, done.stdout) == (whom, ""), say(done)
    assert "ended by signal 9" in done.stderr


def test_kernel_without_lists_of_children(box: Box) -> None:
    for options in ((), ("--review",), ("--network", "none")):
        done = start(box, CHILDLESS, "--yes", "--quiet", *options, "--run", "cat", "README.md")
        assert (done.returncode, done.stdout) == (0, "a shop\n"), say(done)


def test_list_of_mounts_that_cannot_be_understood_is_refused(box: Box) -> None:
    done = start(box, UNREADABLE, "--yes", "--quiet", "--run", "echo", "started")
    assert (done.returncode, done.stdout) == (REFUSED, ""), say(done)
    assert "Traceback" not in done.stderr, say(done)


def launch(box: Box, *options: str) -> str:
    """What becomes of a box."""
    done = box.inside("cat", ".env", "README.md", options=("--quiet", *options))
    assert "Traceback" not in done.stderr, say(done)
    if done.returncode == REFUSED:
        print(done.stderr)
        return "refused"
    assert (done.returncode, done.stdout[-7:]) == (0, "a shop\n"), say(done)
    assert CANARY not in done.stdout
    return "right"


@pytest.mark.root_repeats("the same look at the same mounts")
def test_agent_renames_directories_while_boxes_start(box: Box, account: Account) -> None:
    for name in ("app/private/file", "docs/page.md", "deep/file"):
        account.write(box.project / name, "x\n")
    account.write(box.project / ".env", f"DB_PASSWORD={CANARY}\n")
    choices = random.Random(28)  # the same in each run
    seen: Counter[str] = Counter()
    words = ("--yes", "--run", "python3", "-c", RENAMES)
    with (
        (account.home / "log").open("w") as log,
        account.running(CLAUDEBOX, *words, cwd=box.project, stderr=log.fileno()) as agent,
    ):
        assert comes_true((box.project / "begun").exists)
        for _ in range(LAUNCHES):
            seen[launch(box, *choices.choice(CHOICES))] += 1
        assert agent.poll() is None, (account.home / "log").read_text()
    print(seen)
    assert seen.total() == LAUNCHES


# While the first process is a zombie, it still has a directory in /proc. The box was killed, and that is all.
@pytest.mark.root_repeats("the same steps")
@pytest.mark.parametrize("whom", ENDS)
def test_box_that_is_killed_meanwhile_ends_as_one_that_is_killed(whom: int, box: Box) -> None:
    for step in STEPS:
        done = start(box, KILLED, step, ENDS[whom], "--yes", "--quiet", "--run", "echo", "started")
        assert done.returncode == whom, f"{step}: {say(done)}"
