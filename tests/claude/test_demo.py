"""`claudebox --demo`: the first thing that somebody tries."""

import os
import re
import shutil
from pathlib import Path

import pytest

from claudebox.commands.demo import ATTACKS, HOME_FILES, VARIABLES, WORK
from conftest import CLAUDEBOX, Account
from terminal.pseudoterminal import ROWS, terminal

SECRETS = len(HOME_FILES) + len(VARIABLES)
SOURCE = str(Path(__file__).parent.parent.parent / "src")
# A box that shows one secret: the stage puts it into the project.
LEAKY = """
import sys
sys.path.insert(0, sys.argv[1])
from claudebox.commands import demo
from claudebox.commands.demo import build_stage
def leaky(*arguments):
    stage = build_stage(*arguments)
    with open(stage.project + "/leak", "w") as file:
        file.write(stage.canaries["~/.netrc"])
    return stage
demo.build_stage = leaky
sys.exit(demo.run_demo(None))
"""
# A box that ends before anything was tried.
LAZY = """
import sys
sys.path.insert(0, sys.argv[1])
from claudebox.commands import demo
demo.own_command = lambda: ["/bin/true"]
sys.exit(demo.run_demo(None))
"""


def commands_in(account: Account, *names: str) -> str:
    """A PATH with just these programs."""
    place = account.home / "bin"
    place.mkdir()
    for name in names:
        (place / name).symlink_to(shutil.which(name) or name)
    return str(place)


NEEDED = ("bwrap", "git", "sh", "env", "python3", "readlink")


@pytest.mark.req("SAND-01", "SAND-09")
@pytest.mark.box
@pytest.mark.root_repeats("the demo is played in boxes like any other")
def test_demo_succeeds_and_leaves_nothing(account: Account) -> None:
    temporary = account.home / "tmp"
    temporary.mkdir()
    account.own(temporary)
    path = commands_in(account, *NEEDED)
    done = account.run(CLAUDEBOX, "--demo", env={"PATH": path, "TMPDIR": str(temporary)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SECRETS} of {SECRETS} secrets stayed outside." in done.stdout
    assert "GOT IT" not in done.stdout
    assert [title for title, _ in (*ATTACKS, *WORK) if title not in done.stdout] == []
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    # Nothing is left behind.
    assert (list(temporary.iterdir()), sorted(os.listdir(account.home))) == ([], ["bin", "tmp"])


@pytest.mark.box
@pytest.mark.parametrize("columns", [80, 60])
def test_demo_fits_a_small_terminal_with_the_command_and_the_prompt(user: Account, columns: int) -> None:
    """Else the first lines have scrolled away when somebody looks; and no screen shows a code instead of a colour."""
    path = commands_in(user, *NEEDED)
    with terminal(user, CLAUDEBOX, "--demo", cwd=user.home, env={"PATH": path, "TERM": "xterm"}) as opened:
        opened.resize(ROWS, columns)
        assert opened.wait() == 0
        shown = opened.read_all()
    assert "\x1b[1mIt tries to\x1b[0m" in shown
    assert "\\x1b" not in shown
    lines = re.sub("\x1b\\[[0-9]+m", "", shown).splitlines()
    assert [line for line in lines if len(line) > columns] == []
    assert columns < 80 or len(lines) <= ROWS - 2


@pytest.mark.box
def test_demo_notices_a_leak(user: Account) -> None:
    path = commands_in(user, *NEEDED)
    done = user.run("/usr/bin/python3", "-I", "-S", "-c", LEAKY, SOURCE, env={"PATH": path})
    assert done.returncode == 1, done.stdout + done.stderr
    assert "~/.netrc was seen inside" in done.stdout
    assert "GOT IT" in done.stdout
    assert f"{SECRETS - 1} of {SECRETS} secrets stayed outside." in done.stdout


@pytest.mark.box
def test_demo_notices_that_nothing_was_tried(user: Account) -> None:
    path = commands_in(user, *NEEDED)
    done = user.run("/usr/bin/python3", "-I", "-S", "-c", LAZY, SOURCE, env={"PATH": path})
    assert done.returncode == 1
    assert "did not run to its end" in done.stdout
