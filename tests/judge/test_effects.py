"""Each mutant of mutants.py is real: without a judge it has its effect, and without the mutant there is none.

Once there is a judge, `sources` has to take it out.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import CHECKOUT, Account, make_account
from judge.mutants import MADE, MUTANTS, Mutant, furnish, furnish_machine, variables
from running.machine import mount
from running.needs import needed

START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from claudebox.cli import main; main()"
OPENS = 'exec "$@" 9<"$HOME" <"$HOME/prompt.txt"'
ACCOUNTS = {"": ("user", "root"), "overlay": ("user", "root"), "user": ("user",), "root": ("root",)}
CASES = [
    pytest.param((mutant, account), id=f"{mutant.name} [{account}]")
    for mutant in MUTANTS
    for account in ACCOUNTS[mutant.needs]
]


@pytest.fixture
@needed("box", "root")
def account(case: tuple[Mutant, str]) -> Iterator[Account]:
    """On a machine with sockets: its /run is in memory meanwhile."""
    assert os.path.exists("/etc/claudebox-tests")
    mount("tmpfs", "/run", "tmpfs", data="mode=0755")
    try:
        for account in make_account(case[1]):
            furnish_machine(account.uid)
            yield account
    finally:
        subprocess.run(("umount", "--lazy", "/run"), check=True)
        for path in MADE:
            Path(path).unlink(missing_ok=True)


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
    compile(path.read_text(), mutant.file, "exec")


def is_shown(done: subprocess.CompletedProcess[str]) -> bool:
    return "CANARY" in done.stdout or "SHOWN" in done.stdout


def told(done: subprocess.CompletedProcess[str]) -> str:
    return f"{done.returncode}\n{done.stdout}{done.stderr}"


def test_rows_fit_the_sources(sources: Path) -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        whole = (sources / "claudebox" / mutant.file).read_text()
        mutate(sources, mutant)
        (sources / "claudebox" / mutant.file).write_text(whole)
        assert mutant.named.format(home="/home/me", project="/home/me/src/shop", uid=1000)


@pytest.mark.exhaustive("it is about the mutants, and not about claudebox")
@pytest.mark.parametrize("case", CASES)
def test_mutant_is_real(case: tuple[Mutant, str], account: Account, sources: Path) -> None:
    mutant, project = case[0], account.home / "src/shop"
    furnish(account.home, project)
    account.own(account.home)
    account.environ.update(variables(account.home))
    words = ("--yes", "--quiet", *mutant.options, "--run", "sh", "-c", mutant.shell)
    python = (os.path.realpath(sys.executable), "-I", "-S", "-c", START, str(sources))
    command = ("sh", "-c", OPENS, "sh", *python, *words)
    sound = account.run(*command, cwd=project)
    assert not is_shown(sound), told(sound)
    assert (sound.returncode == 125) == mutant.is_refused, told(sound)
    mutate(sources, mutant)
    changed = account.run(*command, cwd=project)
    assert is_shown(changed) != bool(mutant.stopped_by), told(changed)
    assert not mutant.stopped_by or changed.returncode == 125, told(changed)
