"""A masked file can be edited in the box: its other lines land, and its secrets stay where they are."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from patience import PATIENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conftest import Account, Box

pytestmark = pytest.mark.req("SEC-01")

CANARY = "cAnArY7x9"
ENV = f"# of the shop\nPORT=3000\nDB_PASSWORD={CANARY}\nDATABASE_URL=postgres://shop:{CANARY}@db.corp:5432/shop\n"


@pytest.fixture
def env(account: Account, project: Path) -> Path:
    account.write(project / ".env", ENV)
    (project / ".env").chmod(0o640)
    return project / ".env"


def test_other_lines_land_and_secrets_stay(box: Box, env: Path, account: Account) -> None:
    script = """
import os
with open(".env", "a") as file: file.write("NEW_FLAG=on\\n")
text = open(".env").read().replace("PORT=3000", "PORT=4000")
open(".env", "w").write(text)
"""
    done = box.inside("python3", "-c", script)
    assert done.returncode == 0, done.stderr
    assert env.read_text() == ENV.replace("PORT=3000", "PORT=4000") + "NEW_FLAG=on\n"
    status = env.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o640, account.uid, account.gid)
    assert "claudebox: .env: landed PORT, NEW_FLAG\n" in done.stderr
    assert not list((account.home / ".claudebox/instances").glob("*/edited/*"))


def test_number_of_the_old_file_is_forgotten(box: Box, env: Path, project: Path, account: Account) -> None:
    """Another file gets its inode, and was then taken for a secret that somebody had moved."""
    old = env.stat().st_ino
    box.sh("echo NEW=1 >>.env")
    assert env.stat().st_ino != old
    (memory,) = (account.home / ".claudebox/instances").glob("*/masked")
    assert f"\n{old}\t" not in memory.read_text()
    assert f"\n{env.stat().st_ino}\t" in memory.read_text()


def test_what_would_move_a_secret_does_not_land(box: Box, env: Path, account: Account) -> None:
    """A reference, the address around the password, the password under another key: each on its own would do."""
    script = (
        "echo 'X=${DB_PASSWORD}' >>.env; pw=$(grep ^DB_P .env | cut -d= -f2); echo COPY=$pw >>.env; "
        "echo FINE=1 >>.env; text=$(cat .env | tr @ '@' | awk '{gsub(\"db.corp\", \"evil.example\"); print}'); "
        'echo "$text" >.env; cat .env'
    )
    done = box.inside("sh", "-c", script)
    assert "evil.example" in done.stdout
    assert CANARY not in done.stdout
    assert env.read_text() == ENV + "FINE=1\n"
    said = " ".join(done.stderr.split())
    assert (
        "landed FINE; not landed: DATABASE_URL (holds a secret), X (refers to something else), COPY (has a made" in said
    )
    (kept,) = (account.home / ".claudebox/instances").glob("*/edited/*")
    assert "evil.example" in kept.read_text()
    assert CANARY not in kept.read_text()


def test_rename_over_it_says_why(box: Box, env: Path) -> None:
    done = box.inside("sh", "-c", "sed -i s/3000/4000/ .env; rm .env; mv .env x; ls -A")
    assert done.stderr.count("Device or resource busy") == 3
    assert env.read_text() == ENV


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("gradle.properties", f"org.gradle.jvmargs=-Xmx1g\nsigningPassword={CANARY}\n"),
        (".npmrc", f"registry=https://r.example/\n//r.example/:_authToken={CANARY}\n"),
        ("database.yml", f"x:\n  password: {CANARY}\n"),
        ("secrets.json", f'{{"password": "{CANARY}"}}\n'),
    ],
)
def test_other_kinds_of_files_stay_read_only(
    box: Box, project: Path, account: Account, name: str, content: str
) -> None:
    account.write(project / name, content)
    done = box.inside("sh", "-c", f"echo x >>{name}")
    assert done.returncode != 0
    assert (project / name).read_text() == content


def wait_for(path: Path) -> None:
    limit = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < limit, f"{path} did not appear"
        time.sleep(0.02)


def started(box: Box, background: ThreadPoolExecutor, name: str) -> Future[subprocess.CompletedProcess[str]]:
    """A box that edits the file and waits until it is told to end."""
    script = f"echo {name.upper()}=1 >>.env; touch {name}.edited; while [ ! -e {name}.go ]; do sleep 0.02; done"
    done = background.submit(box.inside, "sh", "-c", f"{script}; timeout 2 cat .env")
    wait_for(box.project / f"{name}.edited")
    return done


def test_two_boxes_at_once(box: Box, env: Path, project: Path, account: Account) -> None:
    """What the first one changed cannot land under the mask of the second, which would fall off."""
    with ThreadPoolExecutor(2) as background:
        first, second = started(box, background, "first"), started(box, background, "second")
        account.write(project / "first.go")
        assert "nothing landed: another box has it masked" in " ".join(first.result().stderr.split())
        assert env.read_text() == ENV
        account.write(project / "second.go")
        assert CANARY not in second.result().stdout
        assert "landed SECOND" in second.result().stderr
    assert env.read_text() == ENV + "SECOND=1\n"


def test_box_that_hides_the_file(box: Box, env: Path, project: Path, account: Account) -> None:
    """The new file would lie above what hides the old one, and that box would see it as it is."""
    script = "touch hidden.there; while [ ! -e hidden.go ]; do sleep 0.02; done; timeout 2 cat .env"
    with ThreadPoolExecutor(1) as background:
        hiding = background.submit(box.inside, "sh", "-c", script, options=("--hide", ".env"))
        wait_for(project / "hidden.there")
        done = box.inside("sh", "-c", "echo NEW=1 >>.env")
        account.write(project / "hidden.go")
        assert hiding.result().stdout == ""
    assert "nothing landed: another box has it masked" in " ".join(done.stderr.split())
    assert env.read_text() == ENV


@pytest.mark.parametrize("how", ["symlink", "other file", "edited", "fifo"])
def test_host_changes_the_file_meanwhile(account: Account, project: Path, box: Box, env: Path, how: str) -> None:
    other = project.parent / "other"
    account.write(other, ENV)
    with ThreadPoolExecutor(1) as background:
        running = started(box, background, "first")
        if how == "edited":
            env.write_text(ENV.replace("PORT", "MY_PORT"))
        else:
            env.rename(project.parent / "old")
        if how == "symlink":
            env.symlink_to(other)
        elif how == "other file":
            account.write(env, ENV)
        elif how == "fifo":
            os.mkfifo(env)
        (project / "first.go").touch()
        assert "nothing landed: " in " ".join(running.result().stderr.split())
    assert "FIRST" not in other.read_text()
    assert how == "fifo" or "FIRST" not in env.read_text()
