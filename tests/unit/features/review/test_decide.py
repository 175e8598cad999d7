"""Which directories become layers, and which stay read-only: decided on made-up machines."""

import os
from pathlib import Path

import pytest

from claudebox.errors import Problem
from claudebox.features.guard import RULE, Report
from claudebox.features.review import OF_ANOTHER_GROUP, ReviewFeature
from claudebox.model import LAYER, MOST_LAYERED, RO, RW, Launch, Plan, Step
from claudebox.overlay import store
from claudebox.overlay.changes import ADDED, CHANGED, DELETED, DIRECTORY, FILE, MODE, Change
from claudebox.overlay.review import BEHIND, kept_text, question
from claudebox.overlay.screen import landed_text
from claudebox.paths import within
from claudebox.sandbox.mounts import PIN
from claudebox.text import Style
from hosts.machine import EVERYONE, TREES, Machine
from saying import parse
from shown import audit, shell_command

pytestmark = pytest.mark.req("LAND-01")

P = "/home/alice/shop"
GIT = "~/shop/.git/HEAD\n~/shop/.git/objects/\n~/shop/.git/refs/\n~/shop/.git/hooks/x\n"
SOME = f"{GIT}~/shop/.github/workflows/ci.yml\n~/shop/.claude/notes.md\n~/shop/.vscode/tasks.json\n~/shop/.envrc\n"
ALWAYS = {".git/config": RO, ".git/hooks": RO, ".envrc": RO}
WORKTREES = {".claude/worktrees": RW}
LAYERS = ALWAYS | WORKTREES | {".vscode": LAYER, ".github": LAYER, ".claude": LAYER}
WALLS = ALWAYS | {".vscode": RO, ".github/workflows": RO}
WITHOUT_CLAUDE = ("--run", "true")
ROOT_ON = "/proc/self/mountinfo: 30 1 0:30 / / rw,relatime - {kind} root rw"
OLD = "/proc/sys/kernel/osrelease: 5.10.0-33-amd64"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())


def guards(plan: Plan) -> dict[str, str]:
    return {within(one.path, P): one.kind for one in plan.mounts if one.origin.is_rule(RULE) and one.origin != PIN}


def test_directories_are_layers_and_git_and_files_are_not(machine: Machine) -> None:
    plan = machine.plant(SOME).plan(*WITHOUT_CLAUDE)
    assert guards(plan) == LAYERS
    assert [type(one) for one in Launch(plan).acts(Step.AFTER)] == [ReviewFeature, Report]


# Each makes a machine on which nobody knows whether layers work, or that they do not.
DOUBTS = {
    "apparmor": ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns: 1", "AppArmor forbids it here"),
    "on-an-overlay": (ROOT_ON.format(kind="overlay"), "on an overlay itself"),
    "on-nfs": (ROOT_ON.format(kind="nfs4"), "is on nfs4, which may not hold a layer"),
    "no-overlay": ("/proc/filesystems: nodev proc\n/proc/sys/kernel/osrelease: 6.12.1", "no overlay file system"),
    "old-kernel": (OLD, "Linux 5.10.0-33-amd64 has no layers"),
    "old-tmpfs": (
        f"{ROOT_ON.format(kind='tmpfs')}\n/proc/sys/kernel/osrelease: 6.1.0-20-amd64",
        "tmpfs, which can hold a layer since Linux 6.6",
    ),
}


@pytest.mark.parametrize("name", DOUBTS)
def test_machine_that_may_not_have_layers_has_walls(machine: Machine, name: str) -> None:
    description, why = DOUBTS[name]
    plan = machine.plant(f"{description}\n{SOME}").plan(*WITHOUT_CLAUDE)
    assert guards(plan) == WALLS
    assert plan.review is None
    assert why in plan.guard.walls
    assert f"(no layers here: {plan.guard.walls}" in " ".join(audit(plan, Style(colour=False)).split())


@pytest.mark.parametrize("name", ["apparmor", "on-an-overlay"])
def test_who_asks_for_layers_gets_them_or_no_box(machine: Machine, name: str) -> None:
    machine.plant(f"{DOUBTS[name][0]}\n{SOME}")
    with pytest.raises(Problem, match="--review"):
        machine.plan("--review", "guarded", *WITHOUT_CLAUDE)


def test_who_asks_is_not_stopped_by_a_doubt(machine: Machine) -> None:
    assert guards(machine.plant(f"{OLD}\n{SOME}").plan("--review", "guarded", *WITHOUT_CLAUDE)) == LAYERS


def test_repository_in_a_directory_keeps_it_from_being_a_layer(machine: Machine) -> None:
    """What git notes there would never land, and the files would."""
    skill = "~/shop/.claude/skills/x/.git/HEAD\n~/shop/.vscode/x/.git/HEAD\n~/shop/.claude/hooks/x\n"
    found = guards(machine.plant(f"{skill}{SOME}").plan(*WITHOUT_CLAUDE))
    assert (found[".vscode"], found[".claude/hooks"], found[".github"]) == (RO, LAYER, LAYER)
    assert ".claude" not in found


def test_directory_of_another_group_is_no_layer(machine: Machine) -> None:
    """The kernel could not copy what is in it, and the box would be told a riddle."""
    machine.plant(SOME).owners[f"{P}/.vscode"] = machine.uid
    machine.groups[f"{P}/.vscode"] = 4711
    assert guards(machine.plan(*WITHOUT_CLAUDE)) == LAYERS | {".vscode": RO}
    findings = machine.plan("--review", *WITHOUT_CLAUDE).findings
    assert [one.subject for one in findings if one.text == OF_ANOTHER_GROUP] == [f"{P}/.vscode"]
    machine.groups[f"{P}/.vscode"] = machine.uid
    assert guards(machine.plan(*WITHOUT_CLAUDE)) == LAYERS


def test_what_is_writable_is_in_no_layer(machine: Machine) -> None:
    machine.plant(f"~/shop/.github/actions/x\n{SOME}")
    plan = machine.plan("--writable", ".github/workflows", "--writable", ".vscode/tasks.json", *WITHOUT_CLAUDE)
    layers = {".vscode": LAYER, ".claude": LAYER, ".github/actions": LAYER}
    assert guards(plan) == ALWAYS | WORKTREES | layers
    assert plan.review is not None
    assert [within(one.path, P) for one in plan.review.direct] == [".vscode/tasks.json", ".claude/worktrees"]
    assert plan.review.over(f"{P}/.vscode/tasks.json") == -1
    assert plan.review.over(f"{P}/.vscode/other") >= 0


def test_worktrees_of_claude_are_direct_and_guarded_themselves(machine: Machine) -> None:
    side = "~/shop/.claude/worktrees/side"
    machine.plant(f"{side}/.git: gitdir: ~/shop/.git/worktrees/side\n{side}/.github/workflows/ci.yml\n{SOME}")
    plan = machine.plan(*WITHOUT_CLAUDE)
    inner = {".claude/worktrees/side/.git": RO, ".claude/worktrees/side/.github": LAYER}
    assert guards(plan) == LAYERS | inner
    assert plan.review is not None
    assert plan.review.over(f"{P}/.claude/worktrees/side/x") == -1
    assert plan.review.over(f"{P}/.claude/worktrees/side/.github/x") >= 0


def test_directory_for_worktrees_is_made_only_for_git(machine: Machine) -> None:
    assert guards(machine.plant(SOME).plan(*WITHOUT_CLAUDE))[".claude/worktrees"] == RW
    os.rename(machine.root / "home/alice/shop/.git", machine.root / "home/alice/git")
    assert ".claude/worktrees" not in guards(machine.plan(*WITHOUT_CLAUDE))


def test_too_many_directories_take_no_layer_from_those_of_tools(machine: Machine) -> None:
    """An agent can make any number of them, empty ones, of which nobody would be told."""
    machine.plant("".join(f"~/shop/{number}/.vscode/x\n" for number in range(MOST_LAYERED)) + SOME)
    machine.plant("".join(f"~/shop/deep/{number}/.claude/x\n" for number in range(MOST_LAYERED - 3)))
    plan = machine.plan(*WITHOUT_CLAUDE)
    assert plan.review is not None
    assert len(plan.review.covered) == MOST_LAYERED
    found = guards(plan)
    assert (found[".github"], found[".claude"], found[".vscode"]) == (LAYER, LAYER, LAYER)
    assert sorted({found[f"{number}/.vscode"] for number in range(MOST_LAYERED)}) == [RO]


def test_symlink_into_a_directory_takes_no_layer_from_it(machine: Machine) -> None:
    """An agent could make one, and in the next box what does not exist yet would be held by nothing."""
    machine.plant(f"~/shop/.claude/commands/x.md\n~/shop/x/.vscode -> ../.claude/commands\n{SOME}")
    found = guards(machine.plan(*WITHOUT_CLAUDE))
    assert (found[".claude"], found[".claude/commands"]) == (LAYER, RO)


def test_agreement_to_walls_covers_layers(machine: Machine) -> None:
    from claudebox.consent import agreement, find_news

    machine.plant(f"/proc/sys/kernel/osrelease: 6.12.1\n{SOME}")
    agreed = frozenset(agreement(machine.plan("--review", "off", *WITHOUT_CLAUDE)))
    assert find_news(machine.plan(*WITHOUT_CLAUDE), (agreed,)).amount == 0
    # And back, on a machine that has none.
    agreed = frozenset(agreement(machine.plan(*WITHOUT_CLAUDE)))
    (machine.root / "proc/sys/kernel/osrelease").write_text("5.10.0\n")
    assert find_news(machine.plan(*WITHOUT_CLAUDE), (agreed,)).amount == 0


def test_command_to_paste_has_walls_and_says_so(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    from claudebox.commands import show

    shown: list[str] = []
    machine.plant(SOME)
    monkeypatch.setattr(show, "read_host", machine.host)
    monkeypatch.setattr(show, "show", shown.append)
    show.show_dry_run(parse(["--dry-run", *WITHOUT_CLAUDE]))
    assert shown[0].startswith("# Only claudebox itself can keep changes until you land them.")
    assert "the rest is written at once: .claude .github .vscode\n" in shown[0]
    walls = machine.plan("--review", "off", *WITHOUT_CLAUDE)
    assert shown[0].endswith(shell_command(walls))


# What is said when a layer ends: words that are true.


FINE, RUN = Change("a", ADDED, FILE), Change(".envrc", ADDED, FILE, reason="direnv runs it")
CONFLICT = Change("c", CHANGED, FILE, is_conflict=True)


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([FINE], "Land, choose, "),
        ([FINE, CONFLICT], "Land, choose, "),
        ([FINE, RUN], "Land (without what this host runs), all, choose, "),
        ([RUN], "Land although this host runs it, choose, "),
        ([RUN, CONFLICT], "Land although this host runs it, choose, "),
        ([CONFLICT], "Choose, "),
        ([], "Land the commits, "),
    ],
)
def test_question_says_what_would_land(items: list[Change], words: str) -> None:
    assert question(items, has_commits=True) == f"{words}show, keep or discard? [k] "


def test_question_offers_no_commits_where_there_are_none() -> None:
    """There is a stash, for example, or a repository that the box has cloned."""
    assert question([], has_commits=False) == "Show, keep or discard? [k] "


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([], "Nothing landed."),
        (
            [Change("d", ADDED, DIRECTORY), Change("d/e", ADDED, DIRECTORY), Change("d/e/f", ADDED, FILE)],
            "Landed: 1 added.",
        ),
        ([Change("d", DELETED, DIRECTORY, gone=7), Change("f", DELETED, FILE)], "Landed: 8 deleted."),
        ([Change("d", ADDED, DIRECTORY)], "Landed: 1 directory."),
        ([Change("d", ADDED, DIRECTORY), Change("e", MODE, DIRECTORY)], "Landed: 1 mode of a directory."),
    ],
)
def test_files_are_counted_and_not_their_directories(changes: list[Change], text: str) -> None:
    assert landed_text(changes) == f"{text}\n"


def test_git_is_mentioned_where_commits_are_here_and_files_wait(tmp_path: Path) -> None:
    (tmp_path / "project/.github").mkdir(parents=True)
    layer = store.make_layer(str(tmp_path / "layers"), str(tmp_path / "project"), "", (".github",))
    assert BEHIND not in kept_text(layer)
    (tmp_path / "project/.git").mkdir()
    assert BEHIND in kept_text(layer)
    assert BEHIND not in kept_text(layer.replace(places=("",)))
