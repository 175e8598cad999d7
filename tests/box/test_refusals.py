"""When a promise cannot be kept nothing starts: exit status 125, a reason, and what to do about it."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import CHECKOUT, CLAUDEBOX, Account, Box

pytestmark = pytest.mark.req("FAIL-01")

BWRAP = shutil.which("bwrap") or "/usr/bin/bwrap"


@pytest.fixture
def alarm(account: Account) -> Path:
    """A stand-in for bwrap. It leaves a file that tells that something was started."""
    rung = account.home / "started"
    return account.write(account.home / "tools" / "bwrap", f"#!/bin/sh\necho started > '{rung}'\n", mode=0o755)


def start(box: Box, alarm: Path, *options: str, cwd: Path | str = "", **env: str) -> subprocess.CompletedProcess[str]:
    named = {"CLAUDEBOX_BWRAP": str(alarm), **env}
    return box.claudebox("--yes", *options, "--run", "true", cwd=cwd or box.project, env=named)


def was_started(box: Box) -> bool:
    return (box.account.home / "started").exists()


def assert_refused(box: Box, result: subprocess.CompletedProcess[str], reason: str) -> None:
    assert result.returncode == 125, result.stderr
    assert not was_started(box)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    message, _, hint = result.stderr.partition("\n\nhint: ")
    assert message.startswith("error: ")
    assert reason in " ".join(message.split())  # long messages are wrapped
    assert hint.strip()


def test_alarm_rings_when_something_starts(box: Box, alarm: Path) -> None:
    assert start(box, alarm).returncode == 0
    assert was_started(box)


# The project


def test_directory_of_the_system_and_the_home_are_no_projects(box: Box, account: Account, alarm: Path) -> None:
    link = account.home / "src" / "link"
    link.symlink_to(account.home)
    for directory, reason in {
        "/": "the whole machine",
        "/etc": "belongs to the system",
        "/usr/share": "belongs to the system",
        "/proc": "belongs to the system",
        "/proc/self": "belongs to the system",
        "/dev/shm": "belongs to the system",
        "/run": "belongs to the system",
        "/tmp": "too broad",
        "/var/tmp": "contains your home",
        "/var": "contains your home",
        "/opt": "too broad",
        str(account.home): "is your home",
        str(link): "is your home",
    }.items():
        assert_refused(box, start(box, alarm, cwd=directory), reason)
    for home in (str(link), f"{account.home}/src/.."):
        assert_refused(box, start(box, alarm, cwd=account.home, HOME=home), "is your home")


@pytest.mark.req("SAND-09")
def test_home_of_an_account_is_no_project_whatever_HOME_says(box: Box, alarm: Path) -> None:
    """`sudo claudebox` in somebody's home: HOME is root's, and the project would hold that person's keys."""
    entry = pwd.getpwuid(box.account.uid)
    if not os.access(entry.pw_dir, os.X_OK) or not os.path.isdir(entry.pw_dir):
        pytest.fail(f"{entry.pw_dir}, the home of {entry.pw_name}, is missing")
    assert_refused(box, start(box, alarm, cwd=entry.pw_dir), entry.pw_dir)


@pytest.mark.req("SAND-09")
def test_project_that_contains_a_secret_place_or_lies_in_one_is_refused(
    box: Box, account: Account, alarm: Path
) -> None:
    holding = dict.fromkeys((".config", ".local/share", ".cargo"), "cannot be a project")
    secret = (".ssh", ".gnupg/private-keys-v1.d", ".config/gcloud/x", ".claude", ".claudebox/instances")
    for place, reason in (holding | dict.fromkeys(secret, "is secret")).items():
        (account.home / place).mkdir(parents=True, exist_ok=True)
        account.own(account.home)
        assert_refused(box, start(box, alarm, cwd=account.home / place), reason)


@pytest.mark.req("SAND-09")
def test_project_to_which_a_secret_place_leads_is_refused(
    box: Box, account: Account, project: Path, alarm: Path
) -> None:
    account.write(project / "ssh" / "id_ed25519", "key")
    (account.home / ".ssh").symlink_to(project / "ssh")
    assert_refused(box, start(box, alarm), "contains")
    assert_refused(box, start(box, alarm, cwd=project / "ssh"), "is secret")


@pytest.mark.root_repeats("what is refused before anything starts is the same for everybody")
def test_project_with_invisible_characters_is_refused(box: Box, account: Account, alarm: Path) -> None:
    invisible = ("\n", "\x1b[2J", "\r", "\x07", "\x7f", "\x9b", "\u202e", "\u200b", "\u2028", os.fsdecode(b"\xff"))
    for name in (f"a{character}b" for character in invisible):
        directory = account.home / "src" / name
        directory.mkdir()
        result = start(box, alarm, cwd=account.own(directory))
        assert_refused(box, result, "control or invisible characters")
        assert result.stderr.replace("\n", "").isprintable()


def test_deleted_project_is_refused(box: Box, account: Account, alarm: Path) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" --yes --run true'
    result = account.run("sh", "-c", script, CLAUDEBOX, cwd=box.project, env={"CLAUDEBOX_BWRAP": str(alarm)})
    assert result.returncode == 125
    assert "error: the current directory no longer exists" in result.stderr
    assert "hint: " in result.stderr
    assert not was_started(box)


# Who asks


@pytest.mark.req("UX-02")
def test_start_without_a_yes_and_without_a_terminal_is_refused(box: Box, project: Path) -> None:
    result = box.claudebox("--run", "touch", "started", input="y\n")
    assert result.returncode == 125
    assert "error: there is no terminal to ask on" in result.stderr
    assert "hint: to go on without the question: --yes" in result.stderr
    assert not (project / "started").exists()


# Programs


@pytest.mark.root_differs("a setuid program of root changes nothing for root")
def test_setuid_bwrap_is_refused(box: Box, account: Account) -> None:
    copy, link = account.home / "tools" / "bwrap", account.home / "bwrap"
    copy.parent.mkdir()
    shutil.copy(BWRAP, copy)
    account.own(copy.parent)
    link.symlink_to(copy)
    for mode in (0o4755, 0o2755, 0o6755):
        copy.chmod(mode)
        for env in (
            {"CLAUDEBOX_BWRAP": str(copy)},
            {"CLAUDEBOX_BWRAP": str(link)},
            {"PATH": f"{copy.parent}:{account.environ['PATH']}"},
        ):
            assert_refused(box, box.inside("touch", "started", env=env), "setuid")
    assert not (box.project / "started").exists()


def test_bwrap_from_where_an_agent_can_write_is_refused(box: Box, account: Account, project: Path) -> None:
    trap = f"#!/bin/sh\necho > {account.home}/started\n"
    other = account.home / "src" / "other"
    kept = account.home / ".claudebox/instances/x/claude/bwrap"
    (account.home / "link").symlink_to(project / "bin")
    account.write(account.home / ".local" / "bin" / "claude", "#!/bin/sh\n", mode=0o755)
    account.write(other / "README.md")
    account.environ["PATH"] += f":{account.home}/.local/bin"
    assert box.claudebox("--yes", "--run", "true", cwd=other).returncode == 0
    for place in (project / "bin/bwrap", other / "bin/bwrap", project / "bwrap", kept):
        account.write(place, trap, mode=0o755)
    found = [f"{project}/bin", "bin", "./bin", "../shop/bin", f"{account.home}/link", f"{other}/bin"]
    for env in (
        *({"PATH": f"{path}:{account.environ['PATH']}"} for path in found),
        *({"CLAUDEBOX_BWRAP": str(named)} for named in (project / "bwrap", "bwrap", kept)),
    ):
        result = box.inside("true", env=env)
        assert_refused(box, result, "bwrap would come from where an agent can write")


@pytest.mark.req("SAND-09")
def test_claude_that_names_a_key_as_its_interpreter_is_refused(box: Box, account: Account, project: Path) -> None:
    key = account.write(account.home / ".ssh" / "id_rsa", "canary\n", mode=0o700)
    claude = account.write(account.home / "opt" / "claude", f"#!{key}\n", mode=0o755)
    result = box.claudebox("--yes", "-p", "x", env={"CLAUDEBOX_CLAUDE": str(claude)})
    assert result.returncode == 125
    assert "is secret (SSH keys)" in " ".join(result.stderr.split())


def test_claude_from_the_project_is_refused(box: Box, account: Account, project: Path, alarm: Path) -> None:
    for place in ("node_modules/.bin/claude", "claude"):
        account.write(project / place, "#!/bin/sh\n", mode=0o755)
    (account.home / "link").symlink_to(project)
    for path in (f"{project}/node_modules/.bin", "", ".", f"{account.home}/link"):
        env = {"PATH": f"{path}:{account.environ['PATH']}", "CLAUDEBOX_BWRAP": str(alarm)}
        assert_refused(box, box.claudebox("--yes", env=env), "claude would come from where an agent can write")


def test_bwrap_that_is_no_program_is_refused(box: Box, account: Account) -> None:
    for path in (account.home / "absent", account.home, account.write(account.home / "text")):
        result = box.inside("touch", "started", env={"CLAUDEBOX_BWRAP": str(path)})
        assert (result.returncode, "is not a program" in result.stderr) == (125, True)
        assert not (box.project / "started").exists()


def test_machine_without_bwrap_is_refused(box: Box, account: Account) -> None:
    python = account.home / "bin"
    python.mkdir()
    for tool in ("python3", "sh", "readlink", "env"):
        (python / tool).symlink_to(f"/usr/bin/{tool}")
    source = Path(CLAUDEBOX).parent / "src"
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from claudebox.cli import main; main()"
    command = ["/usr/bin/python3", "-I", "-S", "-c", code, str(source), "--yes", "--run", "true"]
    result = account.run(*command, cwd=box.project, env={"PATH": str(python)})
    assert_refused(box, result, "bwrap is not installed")


# Mounts


MOUNTS = {
    "~/absent": "does not exist",
    "~/dangling": "does not exist",
    "~/.ssh": "is secret",
    "~/.ssh/config": "is secret",
    "~/link-to-ssh": "is secret",
    "~/link-to-ssh/config:/mnt/config": "is secret",
    "~/src/../.ssh": "is secret",
    "~": "is your home",
    "~/link-to-home": "is your home",
    "/": "the whole machine",
    "/var/tmp": "contains your home",
    "/var/lib/private": "is secret" if os.path.exists("/var/lib/private") else "does not exist",
    "~/lib:/": "cannot be a place in the box",
    "~/lib:/proc": "cannot be a place in the box",
    "~/lib:/proc/self": "cannot be a place in the box",
    "~/lib:/dev/shm": "cannot be a place in the box",
    "~/lib/file:/etc/passwd": "cannot be a place in the box",
    "~/lib/file:/etc/../etc/group": "cannot be a place in the box",
    "~/lib:{project}/absent": "does not exist in the box",
    "~/lib:{project}/a/b/c": "does not exist in the box",
    "~/lib:{project}/link": "a symlink leads there",
    "~/lib:{project}/link/below": "a symlink leads there",
    "~/lib:{project}/to-etc/ssl": "a symlink leads there",
    "~/lib:{project}/README.md": "one is a directory",
    "~/lib/file:{project}/vendor": "one is a directory",
    "~/lib:/usr/absent": "does not exist in the box",
}


@pytest.mark.req("EXT-02")
@pytest.mark.root_repeats("what is refused before anything starts is the same for everybody")
def test_mount_is_refused(box: Box, account: Account, project: Path, alarm: Path) -> None:
    account.write(account.home / ".ssh" / "config", "key")
    account.write(account.home / "lib" / "file", "")
    account.write(project / "vendor" / "below" / "file")
    (account.home / "link-to-ssh").symlink_to(".ssh")
    (account.home / "link-to-home").symlink_to(".")
    (account.home / "dangling").symlink_to("nowhere")
    (project / "link").symlink_to("vendor")
    (project / "to-etc").symlink_to("/etc")
    before = sorted(account.home.rglob("*"))
    for mount, reason in MOUNTS.items():
        options = ["--mount-ro"] if "box" in reason else ["--mount-ro", "--mount-rw"]
        for option in options:
            assert_refused(box, start(box, alarm, option, mount.format(project=project)), reason)
    assert sorted(account.home.rglob("*")) == before


@pytest.mark.req("EXT-02", "SAND-09")
@pytest.mark.root_differs("root may write and read there")
def test_mount_of_the_system_is_refused(box: Box, alarm: Path) -> None:
    for source in filter(os.path.isdir, ("/usr/share", "/etc", "/boot", "/run")):
        assert_refused(box, start(box, alarm, "--mount-rw", f"{source}:/mnt"), "belongs to the system")
    for source in filter(os.path.exists, ("/etc/shadow", "/etc/ssl/private", "/etc/sudoers", "/run/user")):
        assert_refused(box, start(box, alarm, "--mount-ro", f"{source}:/mnt"), "is secret")


@pytest.mark.req("FAIL-01")
def test_failure_of_bwrap_is_no_end_of_a_program(box: Box, account: Account) -> None:
    """bwrap ends with status 1 then, as many programs do."""
    failing = account.write(account.home / "tools" / "bwrap", f'#!/bin/sh\n[ $# -lt 9 ] && exec {BWRAP} "$@"\nexit 1\n')
    failing.chmod(0o755)
    result = box.inside("touch", "started", env={"CLAUDEBOX_BWRAP": str(failing)})
    assert (result.returncode, "bwrap could not make the box" in result.stderr) == (125, True), result.stderr
    assert not (box.project / "started").exists()
    assert box.inside("false").returncode == 1


def test_box_in_a_box_says_where_one_is(shop: Box) -> None:
    source = ("--mount-ro", str(CHECKOUT))
    nested = shop.inside(f"{CHECKOUT}/claudebox", "--yes", "--run", "true", options=source)
    assert nested.returncode == 125
    assert "you are in a box of claudebox already, and none can be made in it" in " ".join(nested.stderr.split())
    check = shop.inside(f"{CHECKOUT}/claudebox", "--check", options=source)
    assert check.returncode == 1
    assert "you are in a box of claudebox already" in " ".join(check.stdout.split())
