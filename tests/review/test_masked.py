"""A masked file in a layer: the box never sees the real one, and nothing that boxes make of it lands."""

import os
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Account, Box, keepers_of
from patience import comes_true

pytestmark = [pytest.mark.req("SEC-01", "MASK-01"), pytest.mark.attributes]

CANARY = "cAnArY7x9"
ENV = f"# of the shop\nPORT=3000\nDB_PASSWORD={CANARY}\nDATABASE_URL=postgres://shop:{CANARY}@db.corp/shop\n"
SEARCH = f"grep -ra '[{CANARY[0]}]{CANARY[1:]}' . /proc/self/root$PWD 2>/dev/null"
REVIEW = ("--review", "on")


@pytest.fixture
def env(account: Account, project: Path) -> Path:
    account.write(project / "app/.env", ENV)
    account.write(project / "app/main.py", "x\n")
    account.write(project / ".github/.env", ENV)
    return account.write(project / ".env", ENV)


@pytest.mark.parametrize("options", [REVIEW, ("--review", "guarded")])
def test_real_file_is_in_sight_at_no_moment(box: Box, env: Path, options: tuple[str, ...]) -> None:
    """Whatever is done to the file and to the directories around it."""
    steps = [
        "true",
        "cat .env >/dev/null; ls -l .env",
        "echo A=1 >>.env",
        "chmod 600 app/.env",
        "ln app/.env linked; ln -s app/.env soft; cat linked soft >/dev/null",
        "mv app moved || true",
        "mv -T moved app || true",
        "rm app/.env",
        "git init -q . && git add -Af . && git stash -q -u || true",
        "rm -rf .github; mkdir .github; mkdir .github/inner; mv .github elsewhere; cp -a .github copied",
        "rm -rf app; mkdir app; cat app/.env 2>/dev/null || true",
        "rmdir app; ln -s . app; cat app/.env >/dev/null",
        "rm .env; cat .env 2>/dev/null || true",
        "touch .env; cat .env",
        "sync; echo 3 >/proc/sys/vm/drop_caches 2>/dev/null || true",
    ]
    script = "\n".join(f"{step}\n{SEARCH} && echo seen after: {step.split(';')[0]!r}" for step in steps) + "\ntrue"
    done = box.inside("sh", "-c", script, options=options)
    assert CANARY not in done.stdout
    assert "seen after" not in done.stdout
    assert env.read_text() == ENV
    again = box.inside("sh", "-c", f"{SEARCH}; true", options=options)
    assert again.stdout == "", "nor when a box goes on with the layer"


def test_search_would_find_it(box: Box, env: Path) -> None:
    done = box.inside("sh", "-c", f"{SEARCH}; true", options=(*REVIEW, "--reveal", "."))
    assert CANARY in done.stdout


# Never sleeps. It says which files showed a canary.
NEVER_SLEEPS = """
import os, sys
open("ready", "w").close()
seen = set()
while not os.path.getsize("go"):
    for name in (".env", ".env.local", "app/.env.production", ".netrc"):
        try:
            with open(name) as file: seen |= {name} if "cAnArY" in file.read() else set()
        except OSError: pass
print("seen:", *seen)
open(".env.local", "w").write("A=1\\n")
"""


def test_what_the_host_makes_or_saves_is_never_seen(box: Box, env: Path, project: Path, account: Account) -> None:
    """Not even for a moment: names of secrets are deleted in a layer of their own. The agent can make such a file."""
    go = account.write(project / "go")
    with ThreadPoolExecutor(1) as background:
        running = background.submit(box.inside, "python3", "-c", NEVER_SLEEPS, options=(*REVIEW, "--land", "all"))
        comes_true(lambda: bool(list(account.home.glob(".claudebox/instances/*/layers/1/upper/ready"))))
        for name in (".env", ".env.local", "app/.env.production", ".netrc") * 50:
            account.write(project / "new", ENV).rename(project / name)
        go.write_text("x\n")
        done = running.result()
    assert done.stdout == "seen:\n", done.stderr
    assert (project / ".env.local").read_text() == ENV, "what both have made is a conflict"


# Looks at a file for the first time when it is there: what was looked for before, the kernel knows as missing.
LOOKS_LATER = """
touch ready; until test -s go; do sleep 0.02; done
cat .env .env.local app/.env app/.env.production later/.netrc .netrc; true
"""


@pytest.mark.parametrize("options", [REVIEW, ("--review", "off")], ids=["review", "direct"])
def test_what_the_host_makes_is_never_seen_even_if_nobody_masks_it(
    box: Box, env: Path, project: Path, account: Account, options: tuple[str, ...]
) -> None:
    """The process that masks again is stopped, so that the gap lasts: in a layer there is none all the same."""
    go = account.write(project / "go")
    words = (CLAUDEBOX, "--yes", "--quiet", *options, "--run", "sh", "-c", LOOKS_LATER)
    with account.running(*words, cwd=project, stdout=subprocess.PIPE) as process:
        layer = ".claudebox/instances/*/layers/1/upper/ready"
        assert comes_true(lambda: (project / "ready").exists() or bool(list(account.home.glob(layer))))
        _, keeper = keepers_of(process.pid)
        os.kill(keeper, signal.SIGSTOP)
        for file in (".env", ".env.local", "app/.env", "app/.env.production", ".netrc"):
            account.write(project / "new", ENV).rename(project / file)
        go.write_text("x\n")
        assert process.stdout is not None
        shown = process.stdout.read()
        os.kill(keeper, signal.SIGCONT)
    assert ("DB_PASSWORD=" in shown, CANARY in shown) == (True, options != REVIEW)


@pytest.mark.parametrize("left", ["edited", "deleted", "link", "directory", "parent deleted", "parent replaced"])
def test_what_an_earlier_claudebox_let_boxes_edit_never_lands(box: Box, env: Path, project: Path, left: str) -> None:
    """claudebox 0.2.0 kept decoys in the layer, where a box could do to them what it liked."""
    deeds = {
        "edited": "echo NEW=1 >>app/.env",
        "deleted": "rm app/.env",
        "link": "ln -sf /etc/passwd app/.env",
        "directory": "rm app/.env; mkdir app/.env; touch app/.env/x",
        "parent deleted": "rm -r app",
        "parent replaced": "rm -r app; echo x >app",
    }
    # Without a mask, the layer becomes what it was in such a box.
    box.sh(f"{deeds[left]}; echo fine >fine", options=(*REVIEW, "--reveal", "app"))
    (layer,) = box.account.home.glob(".claudebox/instances/*/layers/1")
    given = layer / "decoys/app/.env"
    box.account.write(given, ENV.replace(CANARY, "mAdEuP44x"))
    box.account.own(layer / "decoys")
    landed = box.claudebox("--review", "land", "--land", "all", "--yes")
    assert landed.returncode == 0, landed.stderr
    assert "masked, with made-up values; edited with claudebox 0.2.0" in " ".join(landed.stderr.split())
    assert (project / "fine").read_text() == "fine\n"
    assert (project / "app/.env").read_text() == ENV
    assert (project / "app/main.py").exists()
    again = box.inside("sh", "-c", f"{SEARCH}; true", options=(*REVIEW, "--land", "all"))
    assert CANARY not in again.stdout
    assert (project / "app/.env").read_text() == ENV
    shutil.rmtree(layer / "decoys")
    box.claudebox("--review", "land", "--land", "all", "--yes")
    assert not (project / "app/.env").is_file() or (project / "app/.env").read_text() != ENV, "else it would land"
