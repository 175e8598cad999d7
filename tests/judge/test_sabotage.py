"""The judge alone refuses what a mutant of mutants.py makes of a box; and without the judge, each mutant is real."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from conftest import CHECKOUT, Account, make_account
from judge.mutants import MADE, MUTANTS, Mutant, furnish, furnish_machine, variables
from running.machine import mount
from running.needs import needed

START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from claudebox.cli import main; main()"
GATE, JUDGE = "if wrong := self._find_wrong(judge):", "judge.require_lawful()"
# Mutants that the judge cannot notice, and how docs/trust.md says so.
UNNOTICED = {
    "copy: another name of a key": "hard link",
    "hide: a credential in a mount": "credentials in what you mount",
    "identity: name of the host": "name of the host",
    "seccomp: a shorter table": "the table of system calls",
    "symlink: left in the project": "symlinks",
    "variable: one more in the table": "the table of variables",
}
OPENS = 'exec "$@" 9<"$HOME" <"$HOME/prompt.txt"'
ACCOUNTS = {"": ("user", "root"), "overlay": ("user", "root"), "user": ("user",), "root": ("root",)}
# In the default run: the first of each kind.
FIRST = {mutant.name.partition(":")[0]: mutant.name for mutant in reversed(MUTANTS)}.values()
REST = pytest.mark.exhaustive("the default run has one of each kind")


def cases(mutants: Iterable[Mutant]) -> list[ParameterSet]:
    return [*_cases(mutants)]


def _cases(mutants: Iterable[Mutant]) -> Iterator[ParameterSet]:
    for mutant in mutants:
        for number, account in enumerate(ACCOUNTS[mutant.needs]):
            marks = () if mutant.name in FIRST and number == 0 else REST
            yield pytest.param((mutant, account), marks=marks, id=f"{mutant.name} [{account}]")


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
    shutil.copytree(CHECKOUT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__"))
    yield place / "src"
    shutil.rmtree(place)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{path} has it {text.count(old)} times: {old}"
    path.write_text(text.replace(old, new))
    compile(path.read_text(), path, "exec")


def mutate(sources: Path, mutant: Mutant) -> None:
    replace(sources / "claudebox" / mutant.file, mutant.old, mutant.new)


def start(account: Account, sources: Path, mutant: Mutant) -> subprocess.CompletedProcess[str]:
    words = ("--yes", "--quiet", *mutant.options, "--run", "sh", "-c", mutant.shell)
    python = (os.path.realpath(sys.executable), "-I", "-S", "-c", START, str(sources))
    return account.run("sh", "-c", OPENS, "sh", *python, *words, cwd=account.home / "src/shop")


def at_home(account: Account) -> None:
    furnish(account.home, account.home / "src/shop")
    account.own(account.home)
    account.environ.update(variables(account.home))


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


def test_what_the_judge_does_not_notice_is_said() -> None:
    page = " ".join((CHECKOUT / "docs/trust.md").read_text().split())
    assert [name for name, said in UNNOTICED.items() if said not in page] == []
    assert UNNOTICED.keys() <= {mutant.name for mutant in MUTANTS}


@pytest.mark.req("JUDGE-01")
@pytest.mark.parametrize("case", cases(mutant for mutant in MUTANTS if mutant.name not in UNNOTICED))
def test_judge_alone_refuses_it(case: tuple[Mutant, str], account: Account, sources: Path) -> None:
    mutant = case[0]
    at_home(account)
    replace(sources / "claudebox/sandbox/gate.py", GATE, 'if wrong := "":')
    if not mutant.is_refused:
        sound = start(account, sources, mutant)
        assert sound.returncode != 125, told(sound)
    mutate(sources, mutant)
    changed = start(account, sources, mutant)
    named = mutant.named.format(home=account.home, project=account.home / "src/shop", uid=account.uid)
    assert (changed.returncode, is_shown(changed)) == (125, False), told(changed)
    if mutant.stopped_by == "bwrap":
        return
    assert "what the law does not allow" in (said := " ".join(changed.stderr.split())), told(changed)
    assert named in said or named in said.replace(" ", ""), told(changed)


@pytest.mark.exhaustive("it is about the mutants, and not about claudebox")
@pytest.mark.parametrize("case", cases(MUTANTS))
def test_mutant_is_real(case: tuple[Mutant, str], account: Account, sources: Path) -> None:
    mutant = case[0]
    at_home(account)
    replace(sources / "claudebox/sandbox/gate.py", JUDGE, "pass")
    sound = start(account, sources, mutant)
    assert not is_shown(sound), told(sound)
    assert (sound.returncode == 125) == mutant.is_refused, told(sound)
    mutate(sources, mutant)
    changed = start(account, sources, mutant)
    assert is_shown(changed) != bool(mutant.stopped_by), told(changed)
    assert not mutant.stopped_by or changed.returncode == 125, told(changed)
