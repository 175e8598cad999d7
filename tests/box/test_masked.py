"""The made-up files of a box: programs can tell where they are, they go with the box, and old state is left alone."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from claudebox.host.git import index
from claudebox.host.git.index import Indexes
from claudebox.host.tree import Tree
from conftest import CLAUDEBOX, Account, Box
from patience import comes_true

pytestmark = pytest.mark.req("MASK-01")

ENV = "PORT=3000\nDB_PASSWORD=cAnArY7x9\n"
REAL_PATHS = """
import os
for name in (".env", ".npmrc"):
    with open(name) as file: print(os.readlink(f"/proc/self/fd/{file.fileno()}") == os.path.realpath(name))
"""


@pytest.fixture
def env(account: Account, project: Path) -> Path:
    account.write(project / ".npmrc", "//registry.example/:_authToken=cAnArY7x9\n")
    return account.write(project / ".env", ENV)


def kept(account: Account) -> list[str]:
    return sorted(path.name for path in account.home.glob(".claudebox/instances/*/masks/*"))


@pytest.mark.attributes
@pytest.mark.parametrize("review", ["off", "on"])
def test_program_can_tell_where_the_file_is(box: Box, env: Path, review: str) -> None:
    """Claude Code reads no file whose real path it cannot tell, as that of a file which bwrap made and unlinked."""
    done = box.inside("python3", "-c", REAL_PATHS, options=("--review", review))
    assert done.stdout == "True\nTrue\n", done.stderr
    assert kept(box.account) == ["lock"]


def test_what_a_killed_box_left_goes_with_the_next_one(box: Box, env: Path, account: Account) -> None:
    box.sh("true")
    (masks,) = account.home.glob(".claudebox/instances/*/masks")
    account.write(masks / "0123456789abcdef/3", "PORT=3000\n")
    box.sh("true")
    assert kept(account) == ["lock"]


def test_file_of_a_box_that_runs_is_left_alone(box: Box, env: Path, project: Path, account: Account) -> None:
    script = "touch ready; until test -e go; do sleep 0.02; done"
    with ThreadPoolExecutor(1) as background:
        running = background.submit(box.inside, "sh", "-c", f"{script}; exec python3 -c '{REAL_PATHS}'")
        comes_true((project / "ready").exists)
        box.sh("true")
        account.write(project / "go")
        assert running.result().stdout == "True\nTrue\n"


@pytest.mark.box
def test_what_an_earlier_claudebox_left_is_not_touched(user: Account) -> None:
    """claudebox 0.2.0 let boxes edit decoys, and kept aside what could not land. The user may still want it."""
    shop = user.write(user.home / "src/shop/.env", ENV).parent
    box = Box(user, shop)
    box.sh("true")
    (instance,) = user.home.glob(".claudebox/instances/*")
    aside = user.write(instance / "edited/.env-01234567", "PORT=4000\n")
    left = user.write(instance / "edited/1-0123456789ab/3", "PORT=4000\n")
    os.mkfifo(user.home / ".claudebox/masks.lock", 0o600)
    user.own(user.home / ".claudebox")
    done = box.claudebox("--yes", "--quiet", "--run", "true")
    assert (done.returncode, done.stderr) == (0, "")
    assert (aside.exists(), left.exists()) == (True, True)
    assert str(shop) in box.claudebox("--instances").stdout
    assert user.run(CLAUDEBOX, "--uninstall", "--yes").returncode == 0
    assert not (user.home / ".claudebox").exists()


@pytest.mark.parametrize("version", [2, 3, 4])
def test_names_in_an_index(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"a", "d/b", "d/e/c", "ä/ö"} | {f"many/{number}" for number in range(20)}
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    for words in (["init", "-q"], ["config", "index.version", str(version)], ["add", "-A"], ["add", "-N", "."]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    if version == 3:  # which git chooses by itself for what is to be added later
        (tmp_path / "later").write_text("x")
        subprocess.run(["git", "-C", tmp_path, "add", "-N", "later"], check=True)
        names |= {"later"}
    for many in (index.MANY, 1):
        monkeypatch.setattr(index, "MANY", many)
        found = Indexes(Tree(), str(tmp_path), f"{tmp_path}/.git").tracked(str(tmp_path))
        assert list(found) == sorted(names)
