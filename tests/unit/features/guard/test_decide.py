"""What is guarded, and by which mounts: decided from files alone."""

from pathlib import Path

import pytest

from claudebox.features.guard import guard_findings, guard_mounts, plan_guard
from claudebox.host.secrets import openings
from claudebox.host.tree import Tree
from claudebox.host.walk import walk_project
from claudebox.model import RO, RW, Finding, Guard, Mount, Origin, Ways
from claudebox.overlay.git import Account
from claudebox.overlay.places import find_places
from claudebox.overlay.table import WANTED
from claudebox.paths import within
from claudebox.sandbox.mounts import arrange, pin_directories
from claudebox.settings import Word
from hosts.machine import EVERYONE, TREES, Machine, plant

P = "/home/alice/shop"
PROJECT = Mount(RW, P, Origin.of_rule("project"), source=P)
MODULE = "~/shop/.git/modules/libs/a/HEAD\n~/shop/.git/modules/libs/a/objects/\n~/shop/.git/modules/libs/a/config\n"
REPOSITORY = "~/shop/.git/HEAD\n~/shop/.git/objects/\n~/shop/.git/refs/\n"


def guard_of(tree: Tree, *writable: str, mounts: tuple[Mount, ...] = (PROJECT,)) -> tuple[Guard, tuple[Mount, ...]]:
    """The guard, and all mounts with it."""
    entries = walk_project(tree, P, WANTED)
    opened = openings(tuple(Word(path, Origin.of_option("--writable")) for path in writable), P, "/home/alice")
    candidates = find_places(tree, (P,), entries, Account("/home/alice", ("/home/alice/.gitconfig",)), Ways()).guarded
    guard = plan_guard(tree, candidates, list(mounts), opened)
    guards = guard_mounts(tree, guard, list(mounts), opened)
    return guard, pin_directories(arrange([*mounts, *guards]), [each.path for each in guards])


def held(tree: Tree, *writable: str) -> list[str]:
    return [within(guarded.path, P) for guarded in guard_of(tree, *writable)[0].held]


BARE = "".join(f"~/shop/x/{name}\n" for name in ("HEAD", "objects/", "refs/", "config"))
SOUND = "~/shop/x/.git/HEAD: ref: refs/heads/x\n~/shop/x/.git/objects/\n~/shop/x/.git/refs/\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("~/shop/.git/config: [core]\\n\\thooksPath = ./ci/hooks\n~/shop/ci/hooks/pre-commit*", "ci/hooks"),
        ("~/shop/.git/config: [include]\\n\\tpath = ../team.cfg\n~/shop/team.cfg", "team.cfg"),
        ("~/shop/.git/config: [include]\\n\\tpath = //home/alice/shop/team.cfg\n~/shop/team.cfg", "team.cfg"),
        ("~/shop/.git/config: [core]\\n\\thooksPath = //home/alice/shop/ci\n~/shop/ci/pre-commit*", "ci"),
        ('~/shop/.git/config: [includeIf "onbranch:x"]\\n\\tpath = ../team.cfg\n~/shop/team.cfg', "team.cfg"),
        ('~/shop/.git/config: [filter "x"]\\n\\tclean = sh tools/clean.sh %f\n~/shop/tools/clean.sh', "tools/clean.sh"),
        ("~/shop/.git/config: [alias]\\n\\tx = !./run.sh\n~/shop/run.sh", "run.sh"),
        ("~/.gitconfig: [core]\\n\\thooksPath = .githooks\n~/shop/.githooks/x", ".githooks"),
        ("~/shop/.git/hooks/pre-commit -> ../../tools/check\n~/shop/tools/check*", "tools/check"),
        ("~/shop/.git/worktrees/side/commondir: ../..", ".git/worktrees/side/commondir"),
        ("~/shop/.git/modules/a/b/HEAD\n~/shop/.git/modules/a/b/config", ".git/modules/a/b/config"),
        # A planted HEAD makes no repository of a directory, and not even a planted repository ends the search.
        (f"{MODULE}~/shop/.git/modules/libs/HEAD", ".git/modules/libs/a/config"),
        (f"{MODULE}~/shop/.git/modules/libs/HEAD\n~/shop/.git/modules/libs/objects/", ".git/modules/libs/a/config"),
        ("~/shop/.git/modules/" + "x/" * 9 + "config", ".git/modules/" + "x/" * 9 + "config"),
        ("~/shop/.git/modules/" + "x/" * 20 + "config", ".git/modules/" + "x/" * 11 + "x"),
        ("~/shop/sub/.git: gitdir: ../stored\n~/shop/stored/config", "stored/config"),
        (BARE, "x/config"),
        # Nor does what is no repository to git hide the one around it.
        (f"{BARE}~/shop/x/.git/HEAD: x\n~/shop/x/.git/objects/\n~/shop/x/.git/refs/", "x/config"),
        (f"{BARE}~/shop/x/.git/HEAD: ref: refs/heads/x\n~/shop/x/.git/objects/", "x/config"),
        (f"{BARE}{SOUND}~/shop/x/.git/commondir: nowhere", "x/config"),
    ],
)
def test_git_names_more_than_its_own_files(tmp_path: Path, files: str, expected: str) -> None:
    assert expected in held(plant(tmp_path, REPOSITORY + files))


def test_directory_around_a_sound_repository_is_none(tmp_path: Path) -> None:
    assert "x/config" not in held(plant(tmp_path, REPOSITORY + BARE + SOUND))


def test_included_files_may_include_more_and_themselves(tmp_path: Path) -> None:
    files = (
        "~/shop/.git/config: [include]\\n\\tpath = ../a\n~/shop/a: [include]\\n\\tpath = a\\n\\tpath = b\n~/shop/b: x"
    )
    assert {"a", "b"} <= set(held(plant(tmp_path, REPOSITORY + files)))


def test_hooks_count_in_the_root_of_a_repository(tmp_path: Path) -> None:
    tree = plant(
        tmp_path,
        f"{REPOSITORY}~/shop/lefthook.yml\n~/shop/docs/lefthook.yml\n~/shop/lib/.git/HEAD\n~/shop/lib/.husky/x",
    )
    assert held(tree) == ["lefthook.yml", "lib/.husky"]


@pytest.mark.parametrize(
    ("writable", "expected"),
    [
        (".github", [".vscode"]),
        (".github/workflows", [".github/actions", ".vscode"]),
        (".", []),
        ("~/shop/.vscode", [".github/actions", ".github/workflows"]),
        ("..", []),
        ("elsewhere", [".github/actions", ".github/workflows", ".vscode"]),
    ],
)
def test_writable_opens_what_is_there_and_below(tmp_path: Path, writable: str, expected: list[str]) -> None:
    tree = plant(tmp_path, "~/shop/.github/workflows/x\n~/shop/.github/actions/x\n~/shop/.vscode/x")
    assert sorted(held(tree, writable)) == expected


def test_something_else_that_is_mounted_there_stays(tmp_path: Path) -> None:
    other = Mount(RO, f"{P}/.github", Origin.of_option("--mount-ro"), source="/srv/x")
    _, mounts = guard_of(plant(tmp_path, "~/shop/.github/workflows/x\n/srv/x/"), mounts=(PROJECT, other))
    assert mounts == (PROJECT, other)


def findings(tree: Tree, *writable: str) -> list[tuple[str, str]]:
    guard, _ = guard_of(tree, *writable)
    opened = openings(tuple(Word(path, Origin.of_option("--writable")) for path in writable), P, "/home/alice")
    return [(finding.kind, finding.subject) for finding in guard_findings(tree, guard, opened, P)]


def test_what_is_opened_is_flagged_and_what_opens_nothing_noted(tmp_path: Path) -> None:
    tree = plant(tmp_path, "~/shop/.vscode/x\n~/shop/src/x")
    found = findings(tree, ".vscode", "src", "missing")
    assert found == [(Finding.RISK, ".vscode"), (Finding.NOTE, "src"), (Finding.NOTE, "missing")]


def test_what_is_too_deep_to_be_seen_is_said(tmp_path: Path) -> None:
    machine = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    machine.plant(f"~/shop/{'d/' * 45}.vscode/tasks.json\n~/shop/.git/modules/{'d/' * 20}config")
    said = [finding.subject for finding in machine.plan("--run", "true").flagged]
    assert {"/".join("d" * 40), ".git/modules/" + "/".join("d" * 12)} <= set(said)
