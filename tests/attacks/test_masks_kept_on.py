"""What an agent or the user's own tools do while a box runs, so that a mask stays off or comes too late."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Account, Box, git, keepers_of
from live import CANARY, ENV, READER, Running, running
from patience import comes_true
from terminal.pseudoterminal import PLAIN, claudebox_terminal

pytestmark = [pytest.mark.req("MASK-01"), pytest.mark.attributes]

SOON = 2  # seconds: on a busy machine, too


@pytest.fixture
def env(account: Account, project: Path) -> Path:
    account.write(project / "app/main.py", "x\n")
    return account.write(project / ".env", ENV)


def is_kept(inside: Running, *names: str) -> bool:
    """Whether a saved file and new ones are masked soon, or empty."""
    for name in names:
        inside.save(name, ENV)
    return comes_true(lambda: not any(CANARY in inside.last(name) for name in names), SOON)


def test_symlinks_in_circles(box: Box, env: Path) -> None:
    with running(box, ".env", ".env.local") as inside:
        for number in range(100):
            for one, other in (("a", "b"), ("b", "a")):
                (box.project / f"{one}{number}").symlink_to(f"{other}{number}")
        time.sleep(0.5)
        assert is_kept(inside, ".env", ".env.local")


def test_thousands_of_symlinks(box: Box, env: Path) -> None:
    with running(box, ".env", ".env.local") as inside:
        for number in range(5000):
            (box.project / f".env.{number}").symlink_to(f"x{number}")
        assert is_kept(inside, ".env", ".env.local")


def test_who_judges_is_held_up(box: Box, env: Path) -> None:
    """As by a file that takes long to judge. What waits for it is covered meanwhile."""
    with running(box, ".env", ".env.local", "app/database.yml") as inside:
        judge, _ = keepers_of(inside.process.pid)
        os.kill(judge, signal.SIGSTOP)
        try:
            assert is_kept(inside, ".env", ".env.local", "app/database.yml")
        finally:
            os.kill(judge, signal.SIGCONT)
        assert comes_true(lambda: inside.is_masked(".env.local"))


def test_nobody_reads_what_is_told(box: Box, env: Path, account: Account) -> None:
    """As with `2>&1 | less`, when the agent has filled the pipe."""
    fill = "while True: os.write(2, bytes(4096))"
    script = f"import os\nif os.fork() == 0:\n  {fill}\n{READER}"
    reader, writer = os.pipe()
    words = (CLAUDEBOX, "--yes", "--quiet", "--run", "timeout", "30", "python3", "-c", script, ".env", ".env.local")
    log = account.write(account.home / "log")
    with (
        log.open("w") as out,
        account.running(*words, cwd=box.project, stdout=out.fileno(), stderr=writer) as process,
    ):
        assert comes_true((box.project / "round").exists)
        inside = Running(box.project, account, process, log, log)
        time.sleep(0.5)
        for _ in range(3):
            assert is_kept(inside, ".env", ".env.local")
        (box.project / "stop").touch()
        os.close(reader)
        os.close(writer)


def test_judged_file_is_exchanged_for_the_masked_one(box: Box, env: Path, account: Account) -> None:
    """The agent moves the directory of a masked file away, has another file judged at its path, and moves it back."""
    with running(box, "app/.env.local") as inside:
        assert is_kept(inside, "app/.env.local")
        assert comes_true(lambda: inside.is_masked("app/.env.local"), SOON)
        app, old = box.project / "app", box.project / "old"
        judge, hand = keepers_of(inside.process.pid)
        os.kill(judge, signal.SIGSTOP)
        app.rename(old)
        account.write(box.project / "app/.env.local", "PORT=3000\n")
        time.sleep(0.3)
        os.kill(hand, signal.SIGSTOP)
        os.kill(judge, signal.SIGCONT)
        time.sleep(0.3)
        app.rename(box.project / "other")
        old.rename(app)
        os.kill(hand, signal.SIGCONT)
        time.sleep(0.5)
        assert inside.is_masked("app/.env.local")


def test_file_is_saved_while_that_of_the_agent_is_judged(box: Box, env: Path, account: Account) -> None:
    """What was judged is what counts as known to the agent, and not what was in its place afterwards."""
    with running(box, ".env.local") as inside:
        for number in range(5):
            account.write(box.project / "harmless", f"PORT={number}\n" + "# words\n" * 60_000).rename(
                box.project / ".env.local"
            )
            time.sleep(0.05)
            inside.save(".env.local", ENV)
            assert comes_true(lambda: CANARY not in inside.last(".env.local"), SOON)
            time.sleep(1)
            assert CANARY not in inside.last(".env.local")


def test_large_directory_is_moved_again_and_again(box: Box, env: Path, account: Account) -> None:
    account.run("sh", "-c", "mkdir big; seq -f 'big/%.0f.js' 60000 | xargs touch", cwd=box.project)
    names = ["big", "big2"]
    with running(box, ".env", ".env.local") as inside:
        for _ in range(10):
            (box.project / names[0]).rename(box.project / names[1])
            names.reverse()
        assert is_kept(inside, ".env", ".env.local")


@pytest.mark.parametrize("name", [".database.yml.swp", ".server.pem.swo", ".env.un~"])
def test_what_an_editor_keeps_while_somebody_edits(box: Box, env: Path, account: Account, name: str) -> None:
    """vim writes it in a form of its own, in blocks, and does not close it. It held what the file holds."""
    with running(box, name) as inside, (box.project / name).open("wb", buffering=0) as swap:
        account.own(box.project / name)
        time.sleep(0.5)
        swap.write(b"b0VIM 9.0" + bytes(4000) + f"password: {CANARY}\n".encode())
        assert comes_true(lambda: CANARY not in inside.last(name), SOON)


def test_file_that_is_written_to_later(box: Box, env: Path, account: Account) -> None:
    """`(sleep 1; echo API_TOKEN=…; sleep 5) >.env.local`"""
    with running(box, ".env.local") as inside, account.write(box.project / ".env.local").open("a") as file:
        time.sleep(0.5)
        file.write(ENV)
        file.flush()
        assert comes_true(lambda: inside.is_masked(".env.local"), SOON)


def test_directory_is_moved_to_where_nobody_looks(box: Box, env: Path) -> None:
    """The shell of the user is still in there."""
    with running(box, "node_modules/x/app/.env.local") as inside:
        (box.project / "node_modules/x").mkdir(parents=True)
        (box.project / "app").rename(box.project / "node_modules/x/app")
        assert is_kept(inside, "node_modules/x/app/.env.local")
    assert "node_modules/x/app/.env.local was moved away" in " ".join(inside.errors.read_text().split())


@pytest.mark.parametrize("name", [".env", ".env.local"])
def test_fifo(box: Box, env: Path, name: str) -> None:
    """A password manager writes into it, and who reads it in the box would get the secret."""
    with running(box, name) as inside:
        os.mkfifo(box.project / "fifo")
        os.chown(box.project / "fifo", inside.account.uid, inside.account.gid)
        (box.project / "fifo").rename(box.project / name)
        writer = os.open(box.project / name, os.O_RDWR | os.O_NONBLOCK)  # without one, it would seem to be empty
        try:
            assert comes_true(lambda: inside.last(name) == "b''", SOON)
        finally:
            os.close(writer)


def test_hidden_file_is_saved(box: Box, env: Path, account: Account) -> None:
    account.write(box.project / "notes.md", CANARY)
    with running(box, "notes.md", options=("--hide", "notes.md")) as inside:
        inside.save("notes.md", f"{CANARY} again")
        time.sleep(0.5)
        assert inside.last("notes.md") == "b''"
    assert "notes.md was saved" in inside.errors.read_text()


def test_agent_uses_up_what_is_watched(box: Box, env: Path) -> None:
    """Directories that were there when the box started are watched before the program starts."""
    with running(box, "app/.env.local") as inside:
        for number in range(3500):
            (box.project / f"new{number}").mkdir()
        assert is_kept(inside, "app/.env.local")
    assert "there is too much to watch" in inside.errors.read_text()


def test_more_directories_than_are_watched(box: Box, env: Path) -> None:
    """An earlier box can have made them. What leads to a masked file is watched all the same."""
    box.account.run("sh", "-c", "seq -f x%.0f 3200 | xargs mkdir", cwd=box.project)
    box.account.write(box.project / "z/y/app/.env", ENV)
    box.account.write(box.account.home / "new/.env", ENV)
    with running(box, "z/y/app/.env") as inside:
        (box.project / "z/y/app").rename(box.account.home / "old")
        (box.account.home / "new").rename(box.project / "z/y/app")
        time.sleep(1)
        assert inside.is_masked("z/y/app/.env")
    assert "there is too much to watch" in inside.errors.read_text()


@pytest.mark.parametrize(
    "name", ["dist/.env", ".terraform/terraform.tfstate", "node_modules/x/.env", ".git/modules/lfs/config"]
)
def test_masked_where_nobody_looks_for_new_ones(box: Box, env: Path, account: Account, name: str) -> None:
    """In a build, a dependency, or a submodule that is called like a directory of git's own."""
    content = f'[remote "o"]\nurl = https://bob:{CANARY}@git.example/x\n' if ".git" in name else ENV
    for other in ("HEAD", "objects/x", "refs/x") if ".git" in name else ():
        account.write(box.project / name.replace("config", other), "ref: refs/heads/main\n")
    account.write(box.project / name, content)
    with running(box, name, options=("--hide", name) if "node_modules" in name else ()) as inside:
        inside.save(name, content + "x = 1\n")
        time.sleep(1)
        assert CANARY not in inside.last(name)
    assert "was saved" in inside.errors.read_text()


@pytest.mark.parametrize("name", ["app/.env", ".env.local"])
def test_made_while_the_user_is_asked(box: Box, env: Path, account: Account, name: str) -> None:
    """That is after the start has looked, and before anything is watched."""
    with claudebox_terminal(box, "--run", "sh", "-c", f"sleep 1; cat {name}", env=PLAIN) as opened:
        opened.read_until(r"^Start\? \[Y/n\] ")
        account.write(box.project / name, ENV)
        opened.type("\n")
        assert "DB_PASSWORD=" in opened.read_until(r"^DB_PASSWORD=\w+").group()
        assert CANARY not in opened.seen.decode(errors="replace")


def test_repository_in_the_project_gets_a_password(box: Box, env: Path, account: Account) -> None:
    account.write(box.project / "lib/x.py")
    git(account, box.project / "lib", "init", "-q")
    for name in ("HEAD", "config", "objects/x", "refs/x"):
        account.write(box.project / "lib/.git/modules/sub" / name, "ref: refs/heads/main\n")
    remote, names = f'[remote "o"]\nurl = https://bob:{CANARY}@git.example/x\n', ("lib/.git", "lib/.git/modules/sub")
    with running(box, *(f"{name}/config" for name in names)) as inside:
        for name in names:
            inside.save(f"{name}/config", remote)
            assert comes_true(lambda name=name: inside.is_masked(f"{name}/config", "url = "), SOON), name  # type: ignore[misc]


def test_repository_of_a_worktree_gets_a_password(box: Box, account: Account) -> None:
    repository, box.project = account.home / "src/main", account.home / "src/tree"
    account.write(repository / "README.md", "x\n")
    git(account, repository, "init", "-q")
    git(account, repository, "add", "-A")
    git(account, repository, "commit", "-qm", "x")
    git(account, repository, "worktree", "add", "-q", str(box.project))
    config = repository / ".git/config"
    with running(box, str(config)) as inside:
        git(account, repository, "remote", "add", "origin", f"https://joe:{CANARY}@git.example/x.git")
        assert comes_true(lambda: inside.is_masked(str(config), "url = "), SOON)


def test_symlink_takes_the_name_of_what_is_hidden(box: Box, env: Path) -> None:
    """It leads to the project itself. What is hidden was settled when the box started."""
    with running(box, ".env.production", options=("--hide", "private")) as inside:
        (box.project / "private").symlink_to(".")
        inside.save(".env.production", ENV)
        assert comes_true(lambda: inside.is_masked(".env.production"), SOON)
    assert ".env.production was made" in inside.errors.read_text()


@pytest.mark.parametrize("away", ["away", "node_modules/away"])
@pytest.mark.parametrize("is_back", [True, False])
def test_directory_is_moved_while_its_file_is_judged(box: Box, env: Path, away: str, is_back: bool) -> None:
    """At its path there is nothing to judge then, nor to cover."""
    place = "app" if is_back else away
    with running(box, f"{place}/.env.local") as inside:
        (box.project / "node_modules").mkdir()
        judge, _ = keepers_of(inside.process.pid)
        os.kill(judge, signal.SIGSTOP)
        try:
            inside.save("app/.env.local", ENV)
            time.sleep(0.05)
            (box.project / "app").rename(box.project / away)
            time.sleep(0.5)
        finally:
            os.kill(judge, signal.SIGCONT)
        time.sleep(0.5)
        if is_back:
            (box.project / away).rename(box.project / "app")
        assert comes_true(lambda: inside.is_masked(f"{place}/.env.local"), SOON)
    assert " was made: readable" in inside.errors.read_text()


@pytest.mark.parametrize("is_linked", [False, True])
def test_saved_by_way_of_another_masked_name(box: Box, env: Path, account: Account, *, is_linked: bool) -> None:
    """What was judged is at a masked path afterwards: nothing was moved away, unless it is elsewhere, too."""
    with running(box, ".env", ".env.new") as inside:
        for number in range(2):
            account.write(box.project / ".env.new", f"{ENV}N={number}\n")
            assert comes_true(lambda: inside.is_masked(".env.new"))
            if is_linked:
                os.link(box.project / ".env.new", box.project / f"app/had{number}")
            (box.project / ".env.new").rename(box.project / ".env")
            assert comes_true(lambda: inside.is_masked(".env"))
    assert (".env.new was moved away" in " ".join(inside.errors.read_text().split())) == is_linked


@pytest.mark.parametrize("stopped", [0, 1])
@pytest.mark.parametrize("target", ["app/notes", "node_modules/notes", ""])
def test_new_file_is_taken_away_in_the_gap(box: Box, env: Path, account: Account, stopped: int, target: str) -> None:
    """The agent moves or removes it before anybody has looked at it, or while it is judged."""
    name, place = "credentials.json", box.project / "credentials.json"
    account.write(box.project / "node_modules/x")
    with running(box, target or name) as inside:
        keeper = keepers_of(inside.process.pid)[stopped]
        os.kill(keeper, signal.SIGSTOP)
        try:
            inside.save(name, ENV)
            time.sleep(0.1)
            if target:
                (box.project / "link").symlink_to(target)
                place.rename(box.project / target)
                (box.project / "link").rename(place)
            else:
                place.unlink()
        finally:
            os.kill(keeper, signal.SIGCONT)
        if target and not stopped:
            assert comes_true(lambda: inside.is_masked(target), SOON), "it was found in time"
        time.sleep(0.5)
    gone, found = f"{name} was made, and is gone again: the box may have it", f"{target} was made"
    said = inside.errors.read_text()
    assert (target and found in said) or ((stopped or not target) and gone in said)


def test_file_that_waits_is_removed(box: Box, env: Path) -> None:
    """A masked one was readable, too, if it was saved by renaming."""
    with running(box, ".env") as inside:
        judge, _ = keepers_of(inside.process.pid)
        os.kill(judge, signal.SIGSTOP)
        try:
            inside.save(".env", ENV)
            time.sleep(0.3)
            env.unlink()
        finally:
            os.kill(judge, signal.SIGCONT)
        time.sleep(0.5)
    assert ".env was saved, and is gone again" in inside.errors.read_text()


def test_directory_at_a_path_that_is_too_long(box: Box, env: Path) -> None:
    """The kernel does not say it then."""
    (box.project / "deep").mkdir()
    end = os.open(box.project / "deep", os.O_RDONLY)
    for _ in range(17):
        os.mkdir("d" * 250, dir_fd=end)
        former, end = end, os.open("d" * 250, os.O_RDONLY, dir_fd=end)
        os.close(former)
    with running(box, ".env") as inside:
        os.rename(box.project / "app", "app", dst_dir_fd=end)
        os.close(os.open("app/.env", os.O_CREAT | os.O_WRONLY, dir_fd=end))
        os.close(end)
        assert is_kept(inside, ".env")
        (box.project / ".env.local").mkdir()
        (box.project / ".env").unlink()
        (box.project / ".env").mkdir()


def test_what_tools_do_is_not_told(box: Box, env: Path, account: Account) -> None:
    """A file gets its name when it is whole, and a symlink replaces another one."""
    script = "for n in 1 2 3; do echo A=$n >.env.x.tmp; mv .env.x.tmp .env.x; done; ln -s .env .env.l"
    with running(box, ".env") as inside:
        account.run("sh", "-c", f"{script}; for n in 1 2; do sleep 1.1; ln -sf $n .env.l; done", cwd=box.project)
        time.sleep(0.5)
    assert " was " not in inside.errors.read_text()
