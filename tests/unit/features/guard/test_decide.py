"""What is guarded, and by which mounts: decided from files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from claudebox.features.guard.decide import find_guarded, guard_findings, guard_mounts, plan_guard, within
from claudebox.features.guard.git import Account, runs_program
from claudebox.features.guard.ordinary import ROWS as ORDINARY
from claudebox.features.guard.table import ANYWHERE, IN_ROOTS, WANTED, spelled_out
from claudebox.host.tree import Tree
from claudebox.host.walk import walk_project
from claudebox.model import RO, RW, Finding, Guard, Mount, Origin
from claudebox.mounts import arrange, pin_directories
from claudebox.settings.values import Word
from claudebox.trust.secret_places import openings
from hosts.machine import plant

P = "/home/alice/shop"
PROJECT = Mount(RW, P, Origin.of_rule("project"), source=P)
REPOSITORY = "~/shop/.git/HEAD\n~/shop/.git/objects/\n~/shop/.git/refs/\n"


def guard_of(tree: Tree, *writable: str, mounts: tuple[Mount, ...] = (PROJECT,)) -> tuple[Guard, tuple[Mount, ...]]:
    """The guard, and all mounts with it."""
    entries = walk_project(tree, P, WANTED)
    opened = openings(tuple(Word(path, Origin.of_option("--writable")) for path in writable), P, "/home/alice")
    candidates = find_guarded(tree, (P,), entries, Account("/home/alice", ("/home/alice/.gitconfig",)))
    guard = plan_guard(tree, candidates, list(mounts), opened)
    guards = guard_mounts(tree, guard, list(mounts), opened)
    return guard, pin_directories(arrange([*mounts, *guards]), [each.path for each in guards])


def held(tree: Tree, *writable: str) -> list[str]:
    return [within(guarded.path, P) for guarded in guard_of(tree, *writable)[0].held]


def test_every_row_says_why_in_one_line() -> None:
    for _, reason, names in (*ANYWHERE, *IN_ROOTS, *ORDINARY):
        assert reason
        assert len(reason) < 56, names
    for tables in ((ANYWHERE, IN_ROOTS), (ORDINARY,)):
        every = [name for table in tables for _, _, names in table for name in spelled_out(names)]
        assert sorted(set(every)) == sorted(every)


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
        ("~/shop/sub/.git: gitdir: ../stored\n~/shop/stored/config", "stored/config"),
        ("~/shop/x.git/HEAD\n~/shop/x.git/objects/\n~/shop/x.git/refs/\n~/shop/x.git/config", "x.git/config"),
    ],
)
def test_git_names_more_than_its_own_files(tmp_path: Path, files: str, expected: str) -> None:
    assert expected in held(plant(tmp_path, REPOSITORY + files))


def test_included_files_may_include_more_and_themselves(tmp_path: Path) -> None:
    files = (
        "~/shop/.git/config: [include]\\n\\tpath = ../a\n~/shop/a: [include]\\n\\tpath = a\\n\\tpath = b\n~/shop/b: x"
    )
    assert {"a", "b"} <= set(held(plant(tmp_path, REPOSITORY + files)))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("source scripts/env.sh", ["scripts/env.sh"]),
        ('. "$PWD/scripts/env.sh"', ["scripts/env.sh"]),
        ("test -e x && . ./scripts/env.sh # comment", ["scripts/env.sh"]),
        ("if true; then source scripts/env.sh; fi", ["scripts/env.sh"]),
        ("source_env sub", ["sub/.envrc"]),
        ("PATH_add tools", ["tools"]),
        ("PATH_add node_modules/.bin", []),
        ("watch_file scripts/env.sh", []),
        ("# source scripts/env.sh", []),
    ],
)
def test_what_direnv_runs_besides_is_held(tmp_path: Path, said: str, expected: list[str]) -> None:
    files = "~/shop/scripts/env.sh\n~/shop/tools/x\n~/shop/node_modules/.bin/x\n~/shop/sub/.envrc"
    found = held(plant(tmp_path, f"~/shop/.envrc: {said}\\n\n{files}"))
    assert sorted({*found} - {".envrc", "sub/.envrc"} | {*expected}) == sorted(expected)


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


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("core.fsmonitor", "true", False),
        ("core.fsmonitor", "./x", True),
        ("filter.lfs.clean", "git-lfs clean", True),
        ("filter.lfs.required", "true", False),
        ("diff.a.b.textconv", "x", True),
        ("alias.st", "status", True),
        ("remote.origin.url", "ext::sh -c x", True),
        ("remote.origin.pushurl", "ext::sh -c x", True),
        ("url.ext::sh -c x.insteadof", "https://x/", True),
        ("protocol.ext.allow", "always", True),
        ("protocol.ext.allow", "never", False),
        ("remote.origin.url", "https://x", False),
        ("lfs.customtransfer.x.path", "x", True),
        ("lfs.url", "https://x", False),
        ("sendemail.smtpserver", "/x", True),
        ("sendemail.smtpserver", "mail.example", False),
        ("user.name", "x", False),
        ("submodule.x.update", "!x", True),
        ("merge.tool", "vimdiff", False),
        ("diff.tool", "../../x", True),
    ],
)
def test_keys_that_run_programs(name: str, value: str, expected: bool) -> None:
    assert runs_program(name, value) is expected


# Written out, so that one that is taken out of the tables is missed.
COMMANDS = """
core.alternaterefscommand core.askpass core.editor core.gitproxy core.pager core.sshcommand credential.helper
diff.external gpg.program imap.tunnel instaweb.httpd interactive.difffilter sendemail.cccmd sendemail.headercmd
sendemail.sendmailcmd sendemail.tocmd sequence.editor uploadpack.packobjectshook web.browser pager.log
browser.x.cmd browser.x.path credential.x.helper diff.x.command diff.x.textconv difftool.x.cmd difftool.x.path
filter.x.clean filter.x.process filter.x.smudge gpg.x.defaultkeycommand gpg.x.program guitool.x.cmd hook.x.command
lfs.x.clean lfs.x.path lfs.x.smudge man.x.cmd man.x.path merge.x.driver mergetool.x.cmd mergetool.x.path
remote.x.receivepack remote.x.uploadpack remote.x.vcs sendemail.x.cccmd sendemail.x.headercmd
sendemail.x.sendmailcmd sendemail.x.tocmd submodule.x.update tar.x.command trailer.x.cmd trailer.x.command
protocol.allow protocol.ext.allow svn.authorsprog annex.secure-erase-command
"""


def test_every_key_that_runs_a_program() -> None:
    assert [name for name in COMMANDS.split() if not runs_program(name, "x")] == []


def test_script_that_names_thousands_of_files_does_not_hold_them_all(tmp_path: Path) -> None:
    names = [f"f{number}" for number in range(1500)]
    files = "\n".join(f"~/shop/{name}" for name in names)
    assert 400 < len(held(plant(tmp_path, f"~/shop/.envrc: source {' '.join(names)}\\n\n{files}"))) <= 501


@pytest.mark.parametrize(
    ("said", "expected"),
    [('_.source = "tools/env.sh"', ["tools/env.sh"]), ("_.path = ['tools']", ["tools"]), ('run = "tools/env.sh"', [])],
)
def test_what_mise_runs_besides_is_held(tmp_path: Path, said: str, expected: list[str]) -> None:
    tree = plant(tmp_path, f"~/shop/mise.toml: [env]\\n{said}\\n\n~/shop/tools/env.sh")
    assert sorted(held(tree)) == ["mise.toml", *expected]
