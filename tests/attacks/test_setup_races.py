"""While a box starts, an agent in another one replaces what is about to be mounted, or where it is mounted."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import CHECKOUT, CLAUDEBOX, Account, Box
from patience import comes_true
from running.versions import each_bwrap

pytestmark = pytest.mark.req("SAND-09")

CANARY = "canary-3ad01c"
REFUSED = 125
LAUNCHES = int(os.environ.get("CLAUDEBOX_TEST_LAUNCHES", "20"))
MOST_LAUNCHES = 400  # until an attack on a box that is not protected has success

# What the agent runs in its box, which is the directory above: exchange two names, over and over, with one and the
# other in place for a while.
SWAPS = """
import ctypes, random, time
exchange = ctypes.CDLL(None, use_errno=True).renameat2
open("begun", "w").close()
while True:
    if exchange(-100, b"{one}", -100, b"{other}", 2) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")
    time.sleep(random.choice((0.002, 0.02, 0.2)))
"""
# claudebox that does not look at what bwrap has mounted.
BLIND = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from claudebox import cli
import claudebox.sandbox.launch as launch
launch.expect = lambda *_: ()
cli.main()
"""
# claudebox, while an agent exchanges the project for another directory as soon as it has been looked at.
LATE = """
import os, sys
sys.path.insert(0, sys.argv.pop(1))
from claudebox import cli, start
launch = start.launch
def launch_another(plan):
    os.rename("../sub", "../before")
    os.rename("../other", "../sub")
    launch(plan)
start.launch = launch_another
cli.main()
"""
# claudebox, while an agent exchanges a directory with a secret for another one as soon as it has been looked at.
EXCHANGED = """
import os, sys
sys.path.insert(0, sys.argv.pop(1))
from claudebox import cli, start
import claudebox.sandbox.launch as module
launch = start.launch
if "--blind" in sys.argv:
    sys.argv.remove("--blind")
    module.expect = lambda *_: ()
def launch_another(plan):
    os.rename("app", "kept")
    os.rename("node_modules", "app")
    os.rename("kept", "node_modules")
    launch(plan)
start.launch = launch_another
cli.main()
"""
LOOKING = (CLAUDEBOX,)
Attack = Callable[[Box, tuple[str, ...], int], Counter[str]]
NOT_LOOKING = (os.path.realpath(sys.executable), "-I", "-c", BLIND, str(CHECKOUT / "src"))
EXCHANGING = (os.path.realpath(sys.executable), "-I", "-c", EXCHANGED, str(CHECKOUT / "src"))
TOO_LATE = (os.path.realpath(sys.executable), "-I", "-c", LATE, str(CHECKOUT / "src"))


@contextmanager
def agent(account: Account, where: Path, one: str, other: str) -> Iterator[None]:
    """An agent at work, in its own box."""
    program = SWAPS.format(one=one, other=other)
    with account.running(CLAUDEBOX, "--yes", "--run", "python3", "-c", program, cwd=where) as process:
        assert comes_true((where / "begun").exists)
        yield
        assert process.poll() is None, "the agent gave up"


def launch(box: Box, claudebox: tuple[str, ...], here: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start a box in an open directory, whatever that is called just now."""
    return subprocess.run(
        box.account.becoming(*claudebox, "--yes", *arguments),
        cwd=f"/proc/{os.getpid()}/fd/{here}",
        env=box.account.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        start_new_session=True,
    )


def outcomes(box: Box, claudebox: tuple[str, ...], here: int, *arguments: str, launches: int) -> Counter[str]:
    """What boxes show that are started there. Without protection, the first success is enough."""
    seen: Counter[str] = Counter()
    while seen.total() < launches and not (claudebox == NOT_LOOKING and seen[CANARY]):
        done = launch(box, claudebox, here, *arguments)
        if done.returncode == REFUSED:
            seen["refused"] += 1
        elif "--hide" in arguments and "hidden       ~/mono/sub/dir/private" not in done.stderr:
            seen["something else is hidden"] += 1  # the plan met the symlink, and said so
        else:
            seen[CANARY if CANARY in done.stdout else done.stdout or "failed"] += 1
    os.close(here)
    print(seen)
    return seen


def of_an_exchanged_project(box: Box, claudebox: tuple[str, ...], launches: int) -> Counter[str]:
    """The agent exchanges the project for a symlink."""
    mono = box.account.home / "mono"
    box.account.write(mono.parent / "private" / "file", CANARY)
    box.account.write(mono / "sub" / "file", "own")
    (mono / "decoy").symlink_to(mono.parent / "private")
    here = os.open(mono / "sub", os.O_RDONLY)
    with agent(box.account, mono, "sub", "decoy"):
        return outcomes(box, claudebox, here, "--run", "cat", "file", launches=launches)


def of_an_exchanged_place(box: Box, claudebox: tuple[str, ...], launches: int) -> Counter[str]:
    """The agent exchanges a directory, in which something is hidden, for a symlink to another."""
    mono = box.account.home / "mono"
    box.account.write(mono / "sub" / "dir" / "private", CANARY)
    box.account.write(mono / "sub" / "other" / "private", "decoy\n")
    (mono / "sub" / "decoy").symlink_to("other")
    here = os.open(mono / "sub", os.O_RDONLY)
    options = ("--hide", "dir/private", "--run", "sh", "-c", "cat dir/private decoy/private")
    with agent(box.account, mono, "sub/dir", "sub/decoy"):
        return outcomes(box, claudebox, here, *options, launches=launches)


@pytest.mark.root_repeats("the same look at the same mounts")
@each_bwrap
def test_project_is_not_exchanged_for_something_else(box: Box) -> None:
    assert of_an_exchanged_project(box, LOOKING, LAUNCHES)[CANARY] == 0


@pytest.mark.root_repeats("the same look at the same mounts")
@each_bwrap
def test_hide_does_not_land_elsewhere(box: Box) -> None:
    assert of_an_exchanged_place(box, LOOKING, LAUNCHES)[CANARY] == 0


def test_directory_that_nobody_has_looked_at_is_not_mounted(box: Box) -> None:
    """It is no symlink; but its secrets are not masked."""
    mono = box.account.home / "mono"
    box.account.write(mono / "other" / ".env", f"API_KEY={CANARY}")
    box.account.write(mono / "sub" / "file", "own")
    done = launch(box, TOO_LATE, os.open(mono / "sub", os.O_RDONLY), "--run", "cat", ".env")
    assert (done.returncode, done.stdout) == (REFUSED, "")
    assert "is not what it was" in done.stderr


@pytest.mark.parametrize(("option", "shown"), [((), ""), (("--blind",), f"API_KEY={CANARY}\n")])
@pytest.mark.root_differs("root could mount over any file")
def test_mask_does_not_land_on_another_file(box: Box, option: tuple[str, ...], shown: str) -> None:
    """Where nobody looks, the secret is shown: it lies where no walk looks, and the mask over the agent's own file."""
    project = box.account.home / "shop"
    box.account.write(project / "app" / ".env", f"API_KEY={CANARY}\n")
    box.account.write(project / "node_modules" / ".env", "API_KEY=of-the-agent-1\n")
    here = os.open(project, os.O_RDONLY)
    done = launch(box, (*EXCHANGING, *option), here, "--run", "cat", "node_modules/.env")
    os.close(here)
    assert done.stdout == shown
    assert done.returncode == (0 if shown else REFUSED), done.stderr


@pytest.mark.parametrize("attack", [of_an_exchanged_project, of_an_exchanged_place])
def test_attack_has_success_where_nobody_looks(user: Account, attack: Attack) -> None:
    box = Box(user, user.home / "mono")
    assert attack(box, NOT_LOOKING, MOST_LAUNCHES)[CANARY] > 0


# An agent replaces what a launch writes into Claude's home: in another box, while one starts, or before.


KEY_CANARY = "canary-71c0de"
FAKE = "#!/bin/sh\necho started\n"
FEW_LAUNCHES = 5  # most of them succeed if the symlink is followed

# What the agent runs. The state of Claude is large, so that writing it takes a while; as soon as the new file is there
# under its temporary name, it becomes a symlink to a file of the host, and its final name becomes free.
REPLACES = """
import ctypes, json, os
exchange = ctypes.CDLL(None).renameat2
os.chdir(os.path.expanduser("~/.claude"))
def reset():
    with open("large", "w") as file:
        json.dump({"padding": "x" * 12_000_000}, file)
    os.replace("large", ".claude.json")
    os.path.lexists("trap") or os.symlink(os.environ["TARGET"], "trap")
reset()
open(os.environ["BEGUN"], "w").close()
while True:
    for name in os.listdir("."):
        if name.startswith("..claude.json.") and exchange(-100, b"trap", -100, name.encode(), 2) == 0:
            os.unlink(".claude.json")
            while any(other == name for other in os.listdir(".")):
                pass
            if not os.path.islink(".claude.json"):
                with open(".claude.json") as file:
                    content = file.read(100)
                with open(os.environ["STOLEN"], "a") as file:
                    file.write(content)
            os.path.lexists("trap") and os.unlink("trap")
            reset()
"""


def test_no_file_of_the_host_gets_a_name_in_claudes_home(box: Box) -> None:
    account = box.account
    account.write(account.home / "opt" / "claude", FAKE, mode=0o755)
    secret = account.write(account.home / ".ssh" / "id_ed25519", KEY_CANARY, mode=0o600)
    stolen = account.write(box.project / "stolen")
    environ = {"PATH": f"{account.home}/opt:{account.environ['PATH']}"}
    told = {"TARGET": str(secret), "BEGUN": str(box.project / "begun"), "STOLEN": str(stolen)}
    words = [word for name, value in told.items() for word in ("--env", f"{name}={value}")]
    start = (CLAUDEBOX, "--yes", *words, "--run", "python3", "-c", REPLACES)
    with account.running(*start, cwd=box.project, env=environ) as agent:
        assert comes_true((box.project / "begun").exists)
        for _ in range(FEW_LAUNCHES):
            box.inside("true", env=environ)
        assert agent.poll() is None, "the agent gave up"
    assert KEY_CANARY not in stolen.read_text()
    assert secret.stat().st_nlink == 1


def test_nothing_is_made_where_a_symlink_in_claudes_home_leads(box: Box) -> None:
    """Claude lies below its own directory where an old installer has put it. So its state has places to mount that."""
    account = box.account
    program = ".claude/local/node_modules/@anthropic-ai/claude-code/cli.js"
    account.environ["CLAUDEBOX_CLAUDE"] = str(account.write(account.home / program, FAKE, mode=0o755))
    target = account.write(account.home / ".config" / "file").parent
    plant = f"mv ~/.claude/local ~/.claude/away && ln -s {target} ~/.claude/local && echo planted"
    assert box.sh(plant) == "planted\n"
    assert box.sh("~/.local/bin/claude") == "started\n"
    assert sorted(path.name for path in target.iterdir()) == ["file"]
