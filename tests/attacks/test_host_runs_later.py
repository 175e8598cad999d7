"""The agent changes a file that something on the host runs later: an editor's task, a hook, a workflow."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from claudebox.features.secrets.table import kind_of
from conftest import Account, Box
from running.versions import versions
from unit.overlay.test_table import HELD

pytestmark = pytest.mark.req("INST-02")

TAMPERING = Path(__file__).with_name("tampering.py")
CONTENT = "{}\n"

# One of each kind, at the root of the project and below; a name that ends in / is a directory.
PLACES = (
    ".git/config",
    ".git/hooks/",
    ".git/modules/deps/lib/config",
    ".git/modules/deps/lib/hooks/",
    ".git/worktrees/side/commondir",
    ".git/config.worktree",
    "sub/.git",
    "nested/repository/.git/config",
    "nested/repository/.git/hooks/",
    "data/bare.git/config",
    ".envrc",
    ".envrc.local",
    "service/api/.envrc",
    ".direnv/",
    "mise.toml",
    ".tool-versions",
    ".vscode/",
    "packages/one/.vscode/",
    ".idea/",
    "shop.code-workspace",
    ".devcontainer/",
    ".mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks/",
    ".husky/",
    "lefthook.yml",
    ".pre-commit-config.yaml",
    ".github/workflows/",
    ".github/actions/",
    ".gitlab-ci.yml",
    ".hg/hgrc",
)
# Directories that are layers, or in one.
LAYERED = frozenset(
    ".direnv/ .vscode/ packages/one/.vscode/ .idea/ .devcontainer/ .claude/settings.json .claude/settings.local.json "
    ".claude/hooks/ .husky/ .github/workflows/ .github/actions/".split()
)
ALWAYS_POSSIBLE = {"write", "write_through_proc", "truncate", "change_mode", "link", "rename", "replace_by_symlink"}


@pytest.fixture
def full_project(account: Account, project: Path) -> Path:
    """Everything that is guarded, as files of which it matters that they are there, not what they say."""
    for place in PLACES:
        account.write(project / place / "file" if place.endswith("/") else project / place, CONTENT)
    for repository in (".git", ".git/modules/deps/lib", "nested/repository/.git", "data/bare.git"):
        account.write(project / repository / "HEAD", "ref: refs/heads/main\n")
        for name in ("objects", "refs"):
            (project / repository / name).mkdir()
    account.write(project / ".git/worktrees/side/commondir", "../..\n")
    account.write(project / "sub/.git", "gitdir: ../.git/modules/deps/lib\n")
    account.own(project)
    return project


def state_of(place: Path) -> dict[str, tuple[int, int, str]]:
    """Which file is there, with which content."""
    files = [place, *sorted(place.rglob("*"))] if place.is_dir() else [place]
    return {
        str(file): (
            file.lstat().st_ino,
            file.lstat().st_mode,
            "" if file.is_dir() else hashlib.sha256(file.read_bytes()).hexdigest(),
        )
        for file in files
    }


def tamper(box: Box, project: Path, places: Sequence[str], *options: str) -> dict[str, set[str]]:
    """What an agent manages to do to each. The program is mounted from outside, where it cannot be changed."""
    names = [place.rstrip("/") for place in places]
    mount = ("--mount-ro", f"{TAMPERING}:/tampering.py")
    done = box.inside("python3", "/tampering.py", str(project), *names, options=(*mount, *options))
    assert done.returncode == 0, done.stderr
    worked = {name: set(attempts) for name, attempts in json.loads(done.stdout).items()}
    assert list(worked) == names
    return worked


def states(project: Path, places: Sequence[str]) -> dict[str, dict[str, tuple[int, int, str]]]:
    return {place: state_of(project / place.rstrip("/")) for place in places}


def test_no_place_can_be_changed(box: Box, full_project: Path) -> None:
    before = states(full_project, PLACES)
    walls = tamper(box, full_project, PLACES, "--review", "off")
    assert {place: worked for place, worked in walls.items() if worked} == {}
    assert states(full_project, PLACES) == before
    # In a layer the attempts succeed, and nothing of it is on the host.
    worked = {place for place, worked in tamper(box, full_project, PLACES).items() if worked}
    assert worked == {place.rstrip("/") for place in LAYERED}
    assert states(full_project, PLACES) == before


@pytest.mark.root_repeats("shows that the attack is real, which one account does")
def test_each_place_can_be_changed_without_the_guard(box: Box, full_project: Path) -> None:
    """The attempts are real: where the user opens it all, they succeed, up to the mount that is not there."""
    worked = tamper(box, full_project, PLACES, "--writable", ".")
    assert {place: ALWAYS_POSSIBLE - attempts for place, attempts in worked.items() if ALWAYS_POSSIBLE - attempts} == {}
    assert [place for place, attempts in worked.items() if "mount_over" in attempts] == []


@pytest.mark.parametrize("bwrap", versions("bwrap"))
@pytest.mark.exhaustive("the default run tries every place with this system's bwrap")
def test_no_place_can_be_changed_with_any_bwrap(box: Box, full_project: Path, bwrap: str) -> None:
    places = (".git/hooks/", "service/api/.envrc")
    before = states(full_project, places)
    box.account.environ["CLAUDEBOX_BWRAP"] = bwrap
    assert not any(tamper(box, full_project, places).values())
    assert states(full_project, places) == before


def test_directory_above_is_pinned_for_what_is_in_it(box: Box, full_project: Path) -> None:
    """Renaming a directory would take the mounts in it away, and make room for another."""
    above = ".git .github .claude nested nested/repository service service/api packages packages/one data".split()
    before = [(full_project / name).stat().st_ino for name in above]
    box.inside("sh", "-c", f"for d in {' '.join(above)}; do mv $d x; mkdir -p $d; done")
    assert [(full_project / name).stat().st_ino for name in above] == before


def test_no_trace_is_left_behind(box: Box, full_project: Path, account: Account) -> None:
    """A mount point that bwrap makes would stay in the project."""
    empty = account.home / "empty"
    account.write(empty / "README", "")
    account.write(empty / ".git/HEAD", "ref: refs/heads/main\n")
    for project in (full_project, empty):
        before = sorted(str(path) for path in project.rglob("*"))
        box.sh("true", cwd=project)
        assert sorted(str(path) for path in project.rglob("*")) == before


def test_guard_holds_wherever_the_project_appears(box: Box, full_project: Path) -> None:
    mount = ("--mount-rw", f"{full_project}:/again")
    done = box.inside("sh", "-c", "echo x >> /again/.envrc; mv /again/.git /again/x; true", options=mount)
    assert "Read-only" in done.stderr
    assert "busy" in done.stderr
    assert (full_project / ".envrc").read_text() == CONTENT


def test_mount_of_a_part_does_not_open_it(box: Box, full_project: Path) -> None:
    workflows = full_project / ".github/workflows"
    for mount in (str(workflows), str(workflows / "file"), f"{workflows}:/elsewhere"):
        script = f"echo x >> {workflows}/file; echo x >> /elsewhere/file; true"
        box.inside("sh", "-c", script, options=("--mount-rw", mount))
        assert (workflows / "file").read_text() == CONTENT


def test_repository_that_is_mounted_besides_is_guarded(box: Box, account: Account, full_project: Path) -> None:
    other = account.home / "other"
    account.write(other / ".git/config", CONTENT)
    account.write(other / ".envrc", CONTENT)
    box.inside(
        "sh", "-c", f"echo x >> {other}/.git/config; echo x >> {other}/.envrc", options=("--mount-rw", str(other))
    )
    assert (other / ".git/config").read_text() == (other / ".envrc").read_text() == CONTENT


def test_writable_opens_what_is_below_and_no_more(box: Box, full_project: Path) -> None:
    script = "echo x >> .github/workflows/file; echo x >> .vscode/file; echo x >> .idea/file"
    box.inside("sh", "-c", script, options=("--writable", ".github", "--writable", ".idea/file"))
    assert (full_project / ".github/workflows/file").read_text() != CONTENT
    assert (full_project / ".idea/file").read_text() != CONTENT
    assert (full_project / ".vscode/file").read_text() == CONTENT


def test_symlink_is_not_held_but_what_it_leads_to_is(box: Box, account: Account, project: Path) -> None:
    account.write(project / "tools/hooks/pre-commit", CONTENT, mode=0o755)
    account.write(project / ".git/HEAD", "ref: refs/heads/main\n")
    account.write(project / ".git/config", CONTENT)
    (project / ".git/hooks").symlink_to("../tools/hooks")
    done = box.inside("sh", "-c", "echo x >> tools/hooks/pre-commit; mv tools x")
    assert "leads through a symlink" in " ".join(done.stderr.split())
    assert (project / "tools/hooks/pre-commit").read_text() == CONTENT


def test_other_name_of_a_guarded_file_is_flagged(box: Box, account: Account, project: Path) -> None:
    account.write(project / ".vscode/tasks.json", CONTENT)
    os.link(project / ".vscode/tasks.json", project / "notes.txt")
    assert ".vscode/tasks.json: has another name" in " ".join(box.inside("true").stderr.split())


# The tables of what the host runs later, row by row. One box tries them all.

POSSIBLE_FOR_A_FILE = {"write", "truncate", "change_mode", "link", "rename", "replace_by_file", "replace_by_symlink"}


@pytest.fixture
def whole_table(account: Account, project: Path) -> Path:
    for place in HELD:
        account.write(project / place, "x\n")
    account.own(project)
    return project


def test_no_row_can_be_changed(box: Box, whole_table: Path) -> None:
    before = {place: state_of(whole_table / place) for place in HELD}
    worked = tamper(box, whole_table, HELD, "--review", "off")
    assert {place: attempts for place, attempts in worked.items() if attempts} == {}
    assert {place: state_of(whole_table / place) for place in HELD} == before


@pytest.mark.req("LAND-01")
def test_no_change_of_a_row_reaches_the_host(box: Box, whole_table: Path) -> None:
    before = {place: state_of(whole_table / place) for place in HELD}
    worked = tamper(box, whole_table, HELD)
    changed = {place for place, attempts in worked.items() if attempts}
    assert changed, "there are layers"
    assert {
        place.partition("/")[0] for place in changed if not (whole_table / place.partition("/")[0]).is_dir()
    } == set()
    assert {place: state_of(whole_table / place) for place in HELD} == before


@pytest.mark.root_repeats("shows that the attack is real, which one account does")
def test_every_row_can_be_changed_without_the_guard(box: Box, whole_table: Path) -> None:
    worked = tamper(box, whole_table, HELD, "--writable", ".")
    failed = [place for place, attempts in worked.items() if POSSIBLE_FOR_A_FILE - attempts]
    # Some may hold secrets, and are masked.
    assert [place for place in failed if not kind_of(f"{whole_table}/{place}", str(whole_table))] == []
