"""`--check`: what it finds on machines of every kind, and what it says to type."""

import json
import os
import shutil
from pathlib import Path

import pytest

from claudebox.commands.check import report_json, report_text, show_check
from claudebox.host.system import install_command
from claudebox.host.tree import Tree
from claudebox.process.trial import FAIL, NOTE, OK, CheckRow, explain
from claudebox.text import WIDTH, Style, width
from conftest import CHECKOUT, Account, Box
from golden import Golden
from saying import parse
from shapes import HEAD, either, faults

pytestmark = pytest.mark.req("UX-05")

FIXED_ROWS = [
    CheckRow(OK, "bwrap", "0.12.0, /usr/bin/bwrap, not setuid"),
    CheckRow(
        FAIL,
        "namespaces",
        "bwrap: setting up uid map: Permission denied",
        "AppArmor lets only known programs use user namespaces (Ubuntu 23.10 and later)",
        ("sudo apt install apparmor-profiles", "sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict"),
    ),
    CheckRow(NOTE, "pasta", "not installed", "needed for a network of the box's own", ("sudo apt install passt",)),
]
CLAUDE = "#!/bin/sh\necho '2.1.197 (Claude Code)'\n"


@pytest.fixture
def tools(account: Account) -> Path:
    """A directory for programs that come first on PATH, with a claude."""
    account.write(account.home / "bin" / "claude", CLAUDE, 0o755)
    account.environ["PATH"] = f"{account.home}/bin:{account.environ['PATH']}"
    return account.home / "bin"


def rows(box: Box, *options: str) -> dict[str, dict[str, object]]:
    found = json.loads(box.claudebox("--check", "--json", *options).stdout)["check"]
    return {row["name"]: row for row in found}


def fake_bwrap(box: Box, tools: Path, version: str, message: str) -> None:
    script = f"#!/bin/sh\n[ \"$1\" = --version ] && echo 'bubblewrap {version}' && exit\necho '{message}' >&2\nexit 1\n"
    box.account.write(tools / "bwrap", script, 0o755)


@pytest.mark.parametrize("how", ["mode", "file-size"])
def test_state_is_really_written(shop: Box, how: str) -> None:
    """A mode does not tell that a disk is full: here, that no file may have a byte."""
    state = shop.account.home / ".claudebox"
    state.mkdir(mode=0o500 if how == "mode" else 0o700)
    shop.account.own(state)
    limit = "ulimit -f 0; " if how == "file-size" else ""
    done = shop.account.run("sh", "-c", f"{limit}exec {CHECKOUT}/claudebox --check --json", cwd=shop.project)
    (row,) = (row for row in json.loads(done.stdout)["check"] if row["name"] == "state directory")
    said = {"mode": "Permission denied", "file-size": "File too large"}[how]
    assert (row["state"], row["measured"]) == ("fail", f"{state} cannot be written: {said}")
    assert done.returncode == 1
    assert list(state.iterdir()) == []


@pytest.mark.git
@pytest.mark.network
def test_machine_that_can_make_a_box(box: Box, tools: Path) -> None:
    result = box.claudebox("--check")
    assert result.returncode == 0, result.stdout
    assert result.stdout.endswith("A box can be started here.\n")
    assert [line for line in result.stdout.splitlines() if width(line) > WIDTH] == []


def test_missing_bwrap_is_installed_like_this(box: Box, account: Account, tools: Path) -> None:
    # Not through ./claudebox, which would offer to install it.
    python = os.path.realpath("/usr/bin/python3")
    start = "import sys; sys.path.insert(0, sys.argv.pop(1)); from claudebox.cli import main; main()"
    words = (python, "-I", "-S", "-c", start, str(CHECKOUT / "src"))
    command = install_command(Tree(), "bwrap")
    typed = command if account.uid else command.removeprefix("sudo ")
    result = account.run(*words, "--check", cwd=box.project, env={"PATH": str(tools)})
    assert result.returncode == 1
    assert "bwrap is not installed" in result.stdout
    assert f"fix: {typed}\n" in result.stdout
    refused = account.run(*words, "--yes", "--run", "true", cwd=box.project, env={"PATH": str(tools)})
    assert f"hint: {typed}\n" in refused.stderr


@pytest.mark.req("FAIL-01")
def test_setuid_bwrap_fails(box: Box, account: Account, tools: Path) -> None:
    shutil.copy("/usr/bin/bwrap", tools / "bwrap")
    account.own(tools)
    (tools / "bwrap").chmod(0o4755)
    assert rows(box)["bwrap"]["state"] == "fail"


def test_namespaces_are_really_tried(box: Box, tools: Path) -> None:
    fake_bwrap(box, tools, "0.12.0", "bwrap: No permissions to create a new namespace")
    result = box.claudebox("--check")
    assert result.returncode == 1
    assert "No permissions to create a new namespace" in result.stdout


def test_missing_claude_and_open_state_directory(box: Box, account: Account) -> None:
    (account.home / ".claudebox").mkdir()
    account.own(account.home / ".claudebox").chmod(0o755)
    found = rows(box)
    assert found["claude"]["state"] == "fail"
    assert "@anthropic-ai/claude-code" in str(found["claude"]["fix"])
    assert found["state directory"]["fix"] == [f"chmod 700 {account.home}/.claudebox"]


def test_incomplete_npm_install_is_recognised(box: Box, account: Account, tools: Path) -> None:
    account.write(tools / "claude", "#!/bin/sh\necho 'Error: claude native binary not installed.' >&2\nexit 1\n", 0o755)
    assert "is not complete" in str(rows(box)["claude"]["measured"])


def test_screen_is_exactly_this(golden: Golden) -> None:
    text = report_text(FIXED_ROWS, "claudebox 0.1.0 on Ubuntu 24.04.1 LTS, Linux 6.8.0", Style(False))
    golden.check("check.txt", text)


def test_json_has_this_shape(box: Box) -> None:
    row = {"state": either("ok", "note", "fail"), "name": str, "measured": str, "why": str, "fix": [str]}
    shape = {**HEAD, "check": [row]}
    assert faults(shape, json.loads(report_json(FIXED_ROWS))) == []
    assert faults(shape, json.loads(box.claudebox("--check", "--json").stdout)) == []


APPARMOR = "proc/sys/kernel/apparmor_restrict_unprivileged_userns"
REASONS = {
    "ubuntu": ({APPARMOR: "1\n"}, "bwrap: setting up uid map: Permission denied", "AppArmor", "apparmor-profiles"),
    "switched off": ({"proc/sys/kernel/unprivileged_userns_clone": "0\n"}, "x", "switched off", "userns_clone=1"),
    "limited": ({"proc/sys/user/max_user_namespaces": "0\n"}, "x", "limited to none", "max_user_namespaces=15000"),
    "container": (
        {".dockerenv": "", "proc/self/status": "Seccomp:\t2\n"},
        "bwrap: No permissions to create new namespace",
        "container",
        "seccomp=unconfined",
    ),
}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", REASONS)
def test_refusal_of_the_kernel_is_explained(name: str, tmp_path: Path) -> None:
    files, message, reason, fix = REASONS[name]
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    why, commands = explain(Tree(str(tmp_path)), "/usr/bin/bwrap", message)
    assert reason in why
    assert fix in " ".join(commands)


@pytest.mark.parametrize(
    ("release", "programs", "command"),
    [
        ("ID=debian\n", "pasta", "sudo apt install passt"),
        ("ID=linuxmint\nID_LIKE='ubuntu debian'\n", "pasta", "sudo apt install passt"),
        ("ID=fedora\n", "pasta", "sudo dnf install passt"),
        ("ID=manjaro\nID_LIKE=arch\n", "pasta", "sudo pacman -S passt"),
        ('ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n', "pasta", "sudo zypper install passt"),
        ("ID=alpine\n", "pasta", "sudo apk add passt"),
        ("ID=nixos\n", "pasta", "nix profile install nixpkgs#passt"),
        ("ID=unheard-of\n", "pasta", "install the package passt"),
        ("ID=debian\n", "pasta nft", "sudo apt install passt nftables"),
        ("ID=nixos\n", "pasta nft", "nix profile install nixpkgs#passt nixpkgs#nftables"),
        ("ID=unheard-of\n", "pasta nft", "install the packages passt and nftables"),
    ],
)
def test_command_of_each_distribution(release: str, programs: str, command: str, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_text(release)
    assert install_command(Tree(str(tmp_path)), *programs.split()) == command


@pytest.mark.req("FAIL-01")
def test_check_works_beside_a_broken_project_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".claudebox.toml").write_text("network = lan\n")
    monkeypatch.chdir(tmp_path)
    assert show_check(parse(["--check"])) == 1
    text = capfd.readouterr().out
    assert "FAIL  settings" in text
    assert ".claudebox.toml:1" in text
