"""`--prove`: the attacks find what is open, and find nothing in the box; nothing of it stays behind."""

import json
import os
from pathlib import Path

import pytest

from claudebox.text import WIDTH, width
from conftest import Account, Box

# One looks for what the others leave behind.
pytestmark = pytest.mark.xdist_group("prove")

NAKED = "env"
CARELESS = "bwrap --ro-bind / / --dev /dev --proc /proc --bind {project} {project} --unshare-pid"


@pytest.fixture
def repository(box: Box) -> Box:
    done = box.account.run("git", "init", "--quiet", ".", cwd=box.project)
    assert done.returncode == 0, done.stderr
    box.account.write(box.account.home / ".ssh" / "id_ed25519", "a key\n", 0o600)
    return box


def attacks(box: Box, *options: str, status: int) -> dict[str, str]:
    """The state of each attack, by its title."""
    done = box.claudebox("--prove", "--json", *options)
    assert done.returncode == status, done.stdout + done.stderr
    return {attack["title"]: attack["state"] for attack in json.loads(done.stdout)["attacks"]}


def listing(*places: Path) -> set[str]:
    return {f"{place}/{name}" for place in places for name in os.listdir(place) if "claudebox-prove" in name}


@pytest.mark.req("FAIL-01")
def test_nothing_gets_through_the_box(repository: Box) -> None:
    states = attacks(repository, status=0)
    assert "OPEN" not in states.values()
    assert states["read a file in your home"] == "held"
    assert states[f"{repository.account.home}/.ssh (SSH keys)"] == "held"
    assert states["a server on this host's 127.0.0.1"] == "chosen"


@pytest.mark.root_repeats("the options mean the same for root")
def test_options_of_the_box_count(repository: Box) -> None:
    states = attacks(repository, "--network", "none", status=0)
    assert states["a server on this host's 127.0.0.1"] == "held"
    assert "chosen" not in states.values()


def test_without_a_sandbox_everything_that_counts_is_open(repository: Box) -> None:
    states = attacks(repository, "--against", NAKED, status=1)
    tested = {title: state for title, state in states.items() if state != "untested"}
    assert set(tested.values()) == {"OPEN"}
    assert len(tested) >= 25


def test_careless_sandbox_is_told_apart(repository: Box) -> None:
    states = attacks(repository, "--against", CARELESS.format(project=repository.project), status=1)
    assert states["read a file in your home"] == "OPEN"
    assert states["leave a file in your home"] == "held"
    assert states["the arguments of a process of this host"] == "held"


def test_a_hole_is_found(repository: Box) -> None:
    """What a user lets in through an ordinary mount was planted there, too."""
    home = repository.account.home
    directory = repository.account.write(home / "src" / "other" / "x").parent
    assert directory.exists()
    states = attacks(repository, "--mount-ro", str(home / "src"), status=1)
    assert states["read a file in the directory above the project"] == "OPEN"
    assert states["leave a file in the directory above the project"] == "held"


def test_secrets_and_host_run_files_of_the_project(repository: Box) -> None:
    repository.account.write(repository.project / ".env", "DATABASE_PASSWORD=hunter2hunter2\n")
    repository.account.write(repository.project / ".envrc", "export A=b\n")
    env, envrc = f"the values in {repository.project}/.env", f"change {repository.project}/.envrc"
    states = attacks(repository, status=0)
    assert (states[env], states[envrc]) == ("held", "held")
    states = attacks(repository, "--writable", ".envrc", status=0)
    assert states[envrc] == "chosen"
    states = attacks(repository, "--against", NAKED, status=1)
    assert (states[env], states[envrc]) == ("OPEN", "OPEN")


def test_nothing_stays_behind(repository: Box) -> None:
    home = repository.account.home
    places = (home, repository.project, home / "src", Path("/tmp"), Path("/var/tmp"))
    before = listing(*places)
    attacks(repository, status=0)
    attacks(repository, "--against", NAKED, status=1)
    assert listing(*places) <= before


@pytest.mark.req("LAND-01")
def test_layer_over_the_project_is_attacked_too(repository: Box) -> None:
    states = attacks(repository, "--review", status=0)
    assert states[f"change {repository.project}/.git/config"] == "held"
    assert "Nothing is kept" in repository.claudebox("--review", "list").stdout


def test_screen(repository: Box) -> None:
    done = repository.claudebox("--prove")
    assert done.returncode == 0, done.stdout
    assert [line for line in done.stdout.splitlines() if width(line) > WIDTH] == []
    assert "attacks held" in done.stdout
    assert "GOT THROUGH" not in done.stdout


def test_module_of_the_project_is_not_believed(repository: Box) -> None:
    """It would run in the box only, but there it could say that everything held."""
    account: Account = repository.account
    account.write(repository.project / "json.py", "raise SystemExit('forged')\n")
    assert "held" in attacks(repository, status=0).values()


def test_program_that_says_nothing_is_no_proof(repository: Box) -> None:
    done = repository.claudebox("--prove", "--against", "true")
    assert done.returncode == 125
    assert "did not finish" in done.stderr
