"""A mask holds as long as the box lives, whatever the user does to the file on the host meanwhile."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Account, Box, keepers_of
from live import CANARY, ENV, running
from patience import comes_true

pytestmark = [pytest.mark.req("MASK-01"), pytest.mark.attributes]


@pytest.fixture
def env(account: Account, project: Path) -> Path:
    account.write(project / "app/.env", ENV)
    account.write(project / "src/main.py", "x\n")
    return account.write(project / ".env", ENV)


def test_file_that_is_saved_is_masked_again(box: Box, env: Path) -> None:
    with running(box, ".env", "app/.env") as inside:
        inside.save(".env", ENV + f"NEW_TOKEN={CANARY}\n")
        assert comes_true(lambda: inside.is_masked(".env", "NEW_TOKEN="))
        inside.save("app/.env", ENV)
        env.write_text(ENV + f"IN_PLACE_TOKEN={CANARY}\n")
        assert comes_true(lambda: inside.is_masked(".env", "IN_PLACE_TOKEN="))
        env.unlink()
        assert comes_true(lambda: "No such file" in inside.last(".env"))
        box.account.write(env, ENV)
        assert comes_true(lambda: inside.is_masked(".env"))
        assert inside.is_masked("app/.env")
    said = [f"claudebox: {name} was saved: readable for some ms (no gap: --review)" for name in (".env", "app/.env")]
    lines = [line for line in inside.errors.read_text().splitlines() if line in said]
    assert lines == [*said, *said], "at once, and at the end"


@pytest.mark.parametrize("name", [".env.local", "src/.env", "later/inner/.env"])
def test_new_file_is_masked(box: Box, env: Path, name: str) -> None:
    with running(box, name) as inside:
        (box.project / name).parent.mkdir(parents=True, exist_ok=True)
        inside.save(name, ENV)
        assert comes_true(lambda: CANARY not in inside.last(name))
        time.sleep(0.1)
        assert CANARY not in inside.last(name)
        assert "No such file" not in inside.last(name)


def test_whatever_was_masked_at_the_start_stays_so(box: Box, env: Path, account: Account) -> None:
    """By a symlink, a directory's symlink, a hard link, git, the content: also where the name alone says nothing."""
    project, remote = box.project, f'[remote "o"]\nurl = https://bob:{CANARY}@git.example/x\n'
    contents = dict.fromkeys(("profiles/dev.txt", "d/a", ".env.hard"), ENV)
    contents |= {"bare.git/config": remote, "notes.txt": f"DEPLOY_TOKEN={CANARY}\n"}
    for name, content in contents.items():
        account.write(project / name, content)
    for name in ("HEAD", "objects/x", "refs/x"):
        account.write(project / "bare.git" / name, "ref: refs/heads/main\n")
    (project / ".env").unlink()
    (project / ".env").symlink_to("profiles/dev.txt")
    (project / ".envs").symlink_to("d")
    os.link(project / ".env.hard", project / "hard.txt")
    names = (*contents, "hard.txt")
    with running(box, *names, "d/new") as inside:
        assert CANARY not in inside.log.read_text()
        for name, content in (*contents.items(), ("hard.txt", ENV)):
            inside.save(name, content + f"A_TOKEN={CANARY}\n")
        account.write(project / "d/new", ENV)
        account.write(project / "profiles/prod.txt", ENV)
        (project / "link").symlink_to("profiles/prod.txt")
        (project / "link").rename(project / ".env")
        time.sleep(1)
        for name in names:
            assert inside.is_masked(name, "A_TOKEN="), name
        assert inside.is_masked("d/new")


def test_what_the_agent_prepared_is_masked_or_told(box: Box, env: Path) -> None:
    agent = (
        "ln -s other.txt .env.local; mkdir -p node_modules/c sub; ln -s node_modules/c conf; echo K=changeme >.env.x"
    )
    box.account.run("sh", "-c", f"{agent}; ln .env.x had.txt", cwd=box.project)
    with running(box, "other.txt", "conf/.env", ".env.x") as inside:
        for name in ("other.txt", "node_modules/c/.env", ".env.x", "sub/.env"):
            box.account.write(box.project / name, ENV)
        for name in ("other.txt", "conf/.env", ".env.x"):
            assert comes_true(lambda name=name: inside.is_masked(name)), name  # type: ignore[misc]
        (box.project / "sub").rename(box.project / "node_modules/sub")
        (box.project / "sub").symlink_to("node_modules/sub")
    said = " ".join(inside.errors.read_text().split())
    assert ".env.x was made in a file that the agent has: it can read it" in said
    assert "sub/.env was moved away by the box, unless you did it" in said


def test_checkout_in_the_box_is_whole(box: Box, env: Path, account: Account) -> None:
    """What the repository has is no secret from the agent, loose or packed."""
    made = "git init -q; git commit -qm 1 --allow-empty; git checkout -qb b; mkdir config"
    made += "; echo SECRET_KEY=ab1c2 >.env.test"
    made += "; echo 'password: devpass1234' >config/database.yml; git add -f config .env.test; git commit -qm 2"
    who = [f"GIT_{one}_{part}=a" for one in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")]
    account.run("env", *who, "sh", "-c", f"{made}; git checkout -q -", cwd=box.project)
    turn = "git checkout -q b && sleep .4 && git status --short -uno && git checkout -q - && sleep .2 && "
    assert box.sh(f"{turn} git gc -q && {turn} git status --short -uno") == ""
    # Nor are its lines in the next version of the file: an edit would become read-only, with made-up values in it.
    edit = (
        "echo '  pool: 5' >>config/database.yml; sleep .4; sed -i s/5/6/ config/database.yml; cat config/database.yml"
    )
    assert box.sh(f"git checkout -q b; sleep .4; {edit}") == "password: devpass1234\n  pool: 6\n"


def test_many_new_files_are_the_agents_own(box: Box, env: Path) -> None:
    """A build writes hundreds in a second, into a directory that a symlink leads to, some under telling names."""
    make = "mkdir out; ln -s out latest; for n in $(seq 300); do echo x >out/$n.o; echo port=1 >out/$n.conf; done"
    assert box.sh(f"{make}; sleep 1; cat out/* | wc -l; echo y >>out/1.o; rm -r out && echo gone") == "600\ngone\n"


def test_what_the_agent_makes_itself_stays_its_own(box: Box, env: Path) -> None:
    """A copy of what it sees, and a file without secrets, both under names of secrets."""
    done = box.inside(
        *("sh", "-c"),
        *("cp .env .env.test; echo PORT=1 >.env.local; sleep 1; echo A=1 >>.env.test; echo B=2 >>.env.local",),
        options=("--quiet",),
    )
    assert done.returncode == 0, done.stderr
    assert "readable in the box" not in done.stderr
    assert (box.project / ".env.local").read_text() == "PORT=1\nB=2\n"
    assert (box.project / ".env.test").read_text().endswith("A=1\n")


def test_file_that_holds_no_secret_any_more_is_shown(box: Box, env: Path) -> None:
    with running(box, ".env") as inside:
        inside.save(".env", "PORT=4000\n")
        assert comes_true(lambda: "PORT=4000" in inside.last(".env"))


FLOOD = """
import os, threading
def flood(number):
    for round in range(4000):
        name = f".env.{number}.{round % 500}"
        if round % 3 == 0: os.mkfifo(name)
        elif round % 3 == 1: os.symlink("/etc/passwd", name)
        else: open(name, "w").close()
        try: os.unlink(name)
        except OSError: pass
for number in range(5): threading.Thread(target=flood, args=(number,)).start()
"""


def test_flood_of_names_keeps_no_mask_off(box: Box, env: Path, account: Account) -> None:
    account.write(box.project / "flood.py", FLOOD)
    names = (".env", "later/.env", ".env.new")
    with running(box, *names) as inside, account.running("python3", "flood.py", cwd=box.project) as flood:
        for _ in range(20):
            inside.save(".env", ENV)
            assert comes_true(lambda: inside.is_masked(".env"))
        for name in names[1:]:
            (box.project / "later").mkdir(exist_ok=True)
            inside.save(name, ENV)
            assert comes_true(lambda name=name: CANARY not in inside.last(name), 1), name  # type: ignore[misc]
        flood.wait()
        inside.save(".env", ENV + f"AFTER_TOKEN={CANARY}\n")
        assert comes_true(lambda: inside.is_masked(".env", "AFTER_TOKEN="))


@pytest.mark.parametrize("depth", [1, 2])
def test_box_ends_with_its_keeper(box: Box, env: Path, depth: int) -> None:
    """The process that judges, and the one below it that mounts."""
    with running(box, ".env") as inside:
        os.kill(keepers_of(inside.process.pid)[depth - 1], signal.SIGKILL)
        assert inside.process.wait(30) == 125
        assert "the process that keeps masks on was ended" in inside.errors.read_text()


def test_two_boxes_of_a_project(box: Box, env: Path) -> None:
    with running(box, ".env") as one, running(box, ".env") as other:  # and both read what the other does
        one.save(".env", ENV + f"NEW_TOKEN={CANARY}\n")
        assert comes_true(lambda: other.is_masked(".env", "NEW_TOKEN="))


@pytest.mark.parametrize("options", [("--network", "none"), ("--userns", "on"), ("--review", "off")])
def test_every_kind_of_box(box: Box, env: Path, options: tuple[str, ...]) -> None:
    if box.account.is_root and "--userns" in options:
        options = ()  # root cannot have it
    with running(box, ".env", options=options) as inside:
        inside.save(".env", ENV + f"NEW_TOKEN={CANARY}\n")
        assert comes_true(lambda: inside.is_masked(".env", "NEW_TOKEN="))


THIEF = """
import os, sys
open("round", "w").close()
while True:
    try: content = open(sys.argv[1]).read()
    except OSError: continue
    if sys.argv[2] in content: os._exit(0)
"""


@pytest.mark.parametrize(("name", "what"), [(".env", "saved"), (".env.local", "made")])
def test_box_that_reads_and_ends_at_once(box: Box, env: Path, name: str, what: str) -> None:
    for _ in range(5):
        words = (CLAUDEBOX, "--yes", "--quiet", "--run", "python3", "-c", THIEF, name, CANARY)
        with box.account.running(*words, cwd=box.project, stderr=subprocess.PIPE) as process:
            assert comes_true((box.project / "round").exists)
            while process.poll() is None:
                box.account.write(box.project / "new", ENV).rename(box.project / name)
                time.sleep(0.02)
                if process.poll() is None:
                    (box.project / name).unlink()
            assert process.stderr is not None
            assert f"{name} was {what}: readable for some ms" in process.stderr.read()
        for left in ("round", ".env.local"):
            (box.project / left).unlink(missing_ok=True)
