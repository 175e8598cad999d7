"""Each mutant of mutants.py is real: without a judge it has its effect, and without the mutant there is none."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import CHECKOUT, Account, make_account
from judge.mutants import MUTANTS, Mutant, furnish, furnish_machine, variables
from running.machine import mount
from running.needs import needed

START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from claudebox.cli import main; main()"
CASES = [
    pytest.param((mutant, kind), id=f"{mutant.name} [{kind}]", marks=[pytest.mark.root] if kind == "root" else [])
    for mutant in MUTANTS
    for kind in (("root",) if mutant.needs == "root" else ("user",) if mutant.needs == "user" else ("user", "root"))
]
pytestmark = pytest.mark.exhaustive("it is about the mutants, and not about claudebox")


@pytest.fixture(scope="module", autouse=True)
def machine_with_sockets() -> None:
    """What the host has in /run is made in memory: the machine of these tests has the mounts for itself."""
    if os.geteuid() == 0 and os.path.exists("/etc/claudebox-tests"):
        mount("tmpfs", "/run", "tmpfs", data="mode=0755")


@pytest.fixture
@needed("box", "root")
def account(case: tuple[Mutant, str]) -> Iterator[Account]:
    yield from make_account(case[1])


@pytest.fixture
def sources() -> Iterator[Path]:
    """A copy that the account can read, and no agent can write."""
    place = Path(tempfile.mkdtemp(prefix="claudebox-mutant-", dir="/var/tmp"))
    place.chmod(0o755)
    shutil.copytree(CHECKOUT / "src", place / "src")
    yield place / "src"
    shutil.rmtree(place)


def mutate(sources: Path, mutant: Mutant) -> None:
    path = sources / "claudebox" / mutant.file
    text = path.read_text()
    assert text.count(mutant.old) == 1, f"{mutant.file} has it {text.count(mutant.old)} times: {mutant.old}"
    path.write_text(text.replace(mutant.old, mutant.new))


@pytest.mark.parametrize("case", CASES)
def test_mutant_is_real(case: tuple[Mutant, str], account: Account, sources: Path) -> None:
    mutant, project = case[0], account.home / "src/shop"
    furnish(account.home, project)
    furnish_machine(account.uid)
    account.own(account.home)
    account.environ.update(variables(account.home))
    start = 'exec "$@" 9<"$HOME" <"$HOME/prompt.txt"'
    words = ("--yes", "--quiet", *mutant.options, "--run", "sh", "-c", mutant.shell)
    command = ("sh", "-c", start, "sh", os.path.realpath(sys.executable), "-I", "-S", "-c", START, str(sources), *words)
    sound = account.run(*command, cwd=project)
    assert not is_shown(sound), told(sound)
    assert (sound.returncode == 125) == mutant.is_refused, told(sound)
    mutate(sources, mutant)
    changed = account.run(*command, cwd=project)
    assert is_shown(changed) != bool(mutant.stopped_by), told(changed)
    assert not mutant.stopped_by or changed.returncode == 125, told(changed)


def is_shown(done: subprocess.CompletedProcess[str]) -> bool:
    return "CANARY" in done.stdout or "SHOWN" in done.stdout


def told(done: subprocess.CompletedProcess[str]) -> str:
    return f"{done.returncode}\n{done.stdout}{done.stderr}"
