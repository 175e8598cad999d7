"""A project holds programs with the names of those that claudebox runs, and is on PATH: by `.`, or by direnv."""

import shutil
from pathlib import Path

import pytest

from conftest import Account, Box

NAMES = ("bwrap", "pasta", "nft", "git", "nix", "npm", "node", "claude", "env", "true", "python3", "readlink", "busctl")
WAYS = (".", "", "bin", "{project}/bin", "{other}")


@pytest.fixture
def sprung(account: Account, box: Box) -> Path:
    """The file that a planted program leaves, wherever it runs without a box around it."""
    return account.home / "sprung"


def plant(account: Account, directory: Path, sprung: Path) -> None:
    trap = f'#!/bin/sh\necho "$0" "$@" >>"{sprung}"\nexit 1\n'
    for name in NAMES:
        account.write(directory / name, trap, mode=0o755)


def own_programs(account: Account) -> str:
    """A PATH with what a demo needs, and nothing else."""
    place = account.home / "programs"
    for name in ("bwrap", "git", "sh", "env", "python3", "true"):
        account.write(place / name).unlink()
        (place / name).symlink_to(shutil.which(name) or name)
    return str(place)


@pytest.mark.req("SAND-09")
@pytest.mark.parametrize("way", WAYS)
def test_program_of_a_project_does_not_run_on_the_host(box: Box, account: Account, sprung: Path, way: str) -> None:
    other = account.write(account.home / "src/other/bin/x").parent
    account.write(account.home / ".claudebox/config.toml")
    assert box.inside("true", cwd=other).returncode == 0  # an agent works there, too
    for directory in (box.project, box.project / "bin", other):
        plant(account, directory, sprung)
    path = f"{way.format(project=box.project, other=other)}:{own_programs(account)}"
    demo = ("--demo",) if way in (".", "{other}") else ()  # which takes a while
    for mode in (*demo, "--check", "--version", "--audit"):
        box.claudebox(mode, env={"PATH": path})
        assert not sprung.exists(), sprung.read_text()
    # The trap works: a shell walks into it.
    account.run("/bin/sh", "-c", "git status", cwd=box.project, env={"PATH": path})
    assert sprung.exists()


@pytest.mark.req("SAND-09")
def test_demo_follows_no_link_into_a_project(box: Box, account: Account, sprung: Path) -> None:
    """The user's own directory is on PATH, and has a link to a program that an agent builds."""
    plant(account, box.project, sprung)
    links = account.home / "links"
    links.mkdir()
    for name in ("git", "bwrap", "claude"):
        (links / name).symlink_to(box.project / name)
    box.claudebox("--demo", env={"PATH": f"{links}:{own_programs(account)}"})
    assert not sprung.exists(), sprung.read_text()
    account.run(str(links / "git"), "status")
    assert sprung.exists()


@pytest.mark.req("SAND-09")
@pytest.mark.root_repeats("the demo is played in boxes like any other")
def test_demo_is_played_with_the_programs_of_the_host(box: Box, account: Account, sprung: Path) -> None:
    """It works all the same, and is no reason to refuse anything."""
    plant(account, box.project, sprung)
    shown = box.claudebox("--demo", env={"PATH": f".:{own_programs(account)}"})
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert not sprung.exists()


# A program that claudebox asks something on the host obeys what lies in its working directory.


# Like many programs, it reads settings from the directory that it is started in.
CLAUDE = "#!/bin/sh\n[ -e ./.settings ] && . ./.settings\necho '2.1.197 (Claude Code)'\n"


@pytest.mark.req("INST-02")
def test_nothing_of_the_project_is_obeyed(box: Box, account: Account) -> None:
    claude = account.write(account.home / "bin/claude", CLAUDE, 0o755)
    account.write(box.project / ".settings", f"echo ran > {account.home}/ran\n")
    account.environ["PATH"] = f"{account.home}/bin:{account.environ['PATH']}"
    said = box.claudebox("--check").stdout
    assert "2.1.197" in said
    assert not (account.home / "ran").exists()
    account.run(str(claude), "--version", cwd=box.project)
    assert (account.home / "ran").exists(), "the attack is real"
