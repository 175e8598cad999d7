"""The conversations that Claude had in a project outside of boxes are copied into its state, and no others."""

import json
import os
from pathlib import Path

import pytest

from claudebox.features.claude import OUTSIDE
from claudebox.state import instance_name
from conftest import CLAUDEBOX, Account
from hosts.machine import debian

FIRST, SECOND, THIRD = (f"{number}f3c1d2e-0a1b-4c2d-8e3f-0123456789ab" for number in "123")
NOON = 1_700_000_000


def talk(cwd: object, word: str = "hello") -> str:
    """A conversation as Claude keeps it. Not every line names a directory."""
    lines = ({"type": "summary", "summary": '"cwd":"/elsewhere"'}, {"type": "user", "cwd": str(cwd), "message": word})
    return "".join(json.dumps(line) + "\n" for line in lines)


def dashes(path: Path) -> str:
    return "".join(one if one.isalnum() else "-" for one in str(path))


def outside(account: Account, project: Path) -> Path:
    return account.home / ".claude/projects" / dashes(project)


def kept(account: Account, project: Path) -> Path:
    return account.home / ".claudebox/instances" / instance_name(str(project)) / "claude/projects" / dashes(project)


def copy(account: Account, project: Path, status: int = 0) -> str:
    done = account.run(CLAUDEBOX, "--import-history", cwd=project)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_history_is_copied_before_the_first_start_and_once(account: Account, project: Path) -> None:
    for name in (FIRST, SECOND):
        account.write(outside(account, project) / f"{name}.jsonl", talk(project), mode=0o644)
    os.utime(outside(account, project) / f"{FIRST}.jsonl", (NOON, NOON))
    assert copy(account, project).startswith("2 conversations copied")
    copies = sorted(kept(account, project).iterdir())
    assert [path.stem for path in copies] == [FIRST, SECOND]
    assert [path.read_text() for path in copies] == [talk(project)] * 2
    assert [oct(path.stat().st_mode) for path in copies] == ["0o100600"] * 2
    assert copies[0].stat().st_mtime == NOON  # by which Claude sorts them
    assert not any(path.is_symlink() or path.stat().st_nlink > 1 for path in copies)
    copies[0].write_text("gone on in a box")
    account.write(outside(account, project) / f"{THIRD}.jsonl", talk(project))
    assert copy(account, project).startswith("1 conversation copied: boxes of this project have them now, beside 2")
    assert "nothing was copied" in copy(account, project)
    assert copies[0].read_text() == "gone on in a box"


def test_history_of_others_and_what_has_another_name_stay_outside(account: Account, project: Path) -> None:
    """`a-b` and `a/b` have one directory: Claude writes `-` for both."""
    here = outside(account, project)
    secret = account.write(account.home / ".ssh/id_ed25519", "a key\n", mode=0o600)
    account.write(here / f"{FIRST}.jsonl", talk(f"{account.home}/src-shop"))
    account.write(here / f"{SECOND}.jsonl", '{"type": "summary"}\n')
    account.write(here / f"{THIRD}.json", talk(project))
    account.write(here / "notes.jsonl", talk(project))
    account.write(here / f"{FIRST}/subagents/x.jsonl", talk(project))
    (here / f"{THIRD}.jsonl").symlink_to(secret)
    account.write(account.home / ".claude/projects/-other" / f"{FIRST}.jsonl", talk(project))
    assert copy(account, project).startswith("There is no conversation of this project in ~/.claude/projects")
    assert not kept(account, project).exists()


def test_directory_that_is_a_symlink_is_not_searched(account: Account, project: Path) -> None:
    account.write(account.home / "elsewhere" / f"{FIRST}.jsonl", talk(project))
    outside(account, project).parent.mkdir(parents=True)
    outside(account, project).symlink_to(account.home / "elsewhere")
    account.own(account.home / ".claude")
    assert copy(account, project).startswith("There is no conversation")


def test_symlink_that_an_agent_has_left_is_not_followed(account: Account, project: Path) -> None:
    account.write(outside(account, project) / f"{FIRST}.jsonl", talk(project))
    (account.home / "target").mkdir()
    account.own(account.home / "target")
    kept(account, project).parent.mkdir(parents=True, mode=0o700)
    kept(account, project).symlink_to(account.home / "target")
    account.own(account.home / ".claudebox")
    assert "error: cannot copy" in copy(account, project, 125)
    assert list((account.home / "target").iterdir()) == []


def test_what_an_agent_can_have_written_is_refused(account: Account, project: Path) -> None:
    """Somebody keeps Claude's directory in a repository, and lets an agent work on that."""
    account.write(project / "claude/projects" / dashes(project) / f"{FIRST}.jsonl", talk(project))
    (account.home / ".claude").mkdir()
    (account.home / ".claude/projects").symlink_to(project / "claude/projects")
    account.own(account.home / ".claude")
    assert "an agent can have written" in copy(account, project, 125)


@pytest.mark.parametrize(("words", "is_offered"), [((), True), (("-p", "hello"), False), (("--run", "env"), False)])
def test_first_start_offers_it(tmp_path: Path, words: tuple[str, ...], is_offered: bool) -> None:
    shop = "/home/alice/shop"
    line = talk(shop).replace("\\", "\\\\").replace("\n", "\\n")
    machine = debian(tmp_path, f"~/.claude/projects/-home-alice-shop/{FIRST}.jsonl: {line}")
    assert (OUTSIDE in machine.plan(*words).findings) is is_offered


@pytest.mark.parametrize(
    "made",
    [
        f"~/.claudebox/instances/{instance_name('/home/alice/shop')}/claude/projects/",
        f"~/.claude/projects/-home-alice-shop/{SECOND}.jsonl: nothing",
    ],
    ids=["had-one-in-a-box", "none"],
)
def test_nothing_is_offered_where_nothing_is_missed(tmp_path: Path, made: str) -> None:
    line = talk("/home/alice/other" if made.startswith("~/.claude/") else "/home/alice/shop").replace("\n", "\\n")
    machine = debian(tmp_path, f"{made}\n~/.claude/projects/-home-alice-shop/{FIRST}.jsonl: {line}")
    assert OUTSIDE not in machine.plan().findings
