"""The command that `--dry-run` prints makes the box that the launch makes."""

import subprocess
from pathlib import Path

import pytest

from conftest import Account, Box
from running.versions import each_bwrap

KEY = "sk-ant-api03-canary-0123456789abcdef"
# All that makes a box: environment, mounts, descriptors, identity, privileges, signals, namespaces, files.
# Only a launch has somebody who keeps masks on, and a directory for that.
PROBE = r"""
env | sort
grep -v claudebox-masks /proc/self/mountinfo |
sed -E 's/^[0-9]+ [0-9]+ [0-9]+:[0-9]+ //; s/ (master|shared|propagate_from):[0-9]+//g'
ls /proc/$$/fd
grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|Sig[IC])' /proc/self/status
id; hostname; pwd; umask; cat /etc/passwd /etc/group /etc/hosts ~/.gitconfig
ls -lAd --time-style=+ / /etc /tmp ~ /run/user/* /etc/passwd ~/.gitconfig
ls -A / /etc /dev ~
for kind in pid ipc uts cgroup user mnt net; do [ /proc/self/ns/$kind -ef /proc/1/ns/$kind ] && echo $kind; done
cat
"""
SHELLS = ["dash", "bash", "bash --posix", "busybox sh"]


def printed(box: Box, *arguments: str, **env: str) -> str:
    result = box.claudebox("--dry-run", *arguments, env=env)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def paste(
    account: Account, shell: str, command: str, where: Path, input: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a printed command in a shell with a life of its own: other variables, another directory."""
    return account.run(*shell.split(), "-c", command, cwd=where, input=input, env={"FOO": "of the shell", **env})


def has(shell: str) -> bool:
    return any(Path(place, shell.split()[0]).exists() for place in ("/bin", "/usr/bin"))


@pytest.mark.req("UX-04")
@pytest.mark.parametrize("shell", [shell for shell in SHELLS if has(shell)])
@each_bwrap
def test_pasted_command_makes_the_same_box(box: Box, account: Account, shell: str) -> None:
    account.write(account.home / "a b" / "it's", "file\n")
    account.write(account.home / ".cargo" / "credentials", "token")
    account.write(account.home / ".gitconfig", "[user]\n\tname = O'Hara $HOME\n\temail = o@example.org\nEND\n")
    account.run("mkdir", "-m", "700", str(account.home / ".claudebox"))  # else the launch makes it, and caches are next
    mounts = ("--mount-ro", "~/a b", "--mount-rw", "~/.cargo:/mnt/config")
    options = (*mounts, "--env", "ODD=it's $HOME `x` \\ \"\n'END'\nEND", "--env", "LD_LIBRARY_PATH=/x y")
    launched = box.inside("sh", "-c", PROBE, options=options, input="typed\n")
    pasted = paste(account, shell, printed(box, *options, "--run", "sh", "-c", PROBE), Path("/"), input="typed\n")
    assert launched.returncode == 0, launched.stderr
    assert launched.stdout.endswith("typed\n")
    assert pasted.stdout == launched.stdout, pasted.stderr
    assert pasted.returncode == 0


@pytest.mark.req("UX-04", "UX-01")
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_no_secret_is_printed(box: Box, options: tuple[str, ...]) -> None:
    named = ("--env", "GITHUB_TOKEN", "--env", f"OTHER={KEY}")
    env = {"ANTHROPIC_API_KEY": KEY, "GITHUB_TOKEN": f"ghp_{KEY}"}
    text = printed(box, *options, *named, "--run", "echo", KEY, **env)
    assert KEY not in text


@pytest.mark.req("UX-04", "FAIL-01")
def test_secret_that_would_stand_in_the_command_is_refused(box: Box) -> None:
    """A variable that the loader of bwrap would obey has to be an argument of bwrap."""
    result = box.claudebox("--dry-run", "--env", f"LD_OTHER={KEY}", "--run", "true")
    assert (result.returncode, result.stdout) == (125, "")
    assert KEY not in result.stderr


@pytest.mark.req("UX-04")
@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_secret_is_taken_from_the_shell_it_is_pasted_into(box: Box, account: Account, shell: str) -> None:
    command = printed(box, "--run", "sh", "-c", "printenv ANTHROPIC_API_KEY; exit 7", ANTHROPIC_API_KEY=KEY)
    other = 'sk-ant-api03-another $HOME "key" 0123456789'
    pasted = paste(account, shell, command, box.project, ANTHROPIC_API_KEY=other)
    assert (pasted.stdout, pasted.returncode) == (f"{other}\n", 7)


@pytest.mark.req("UX-04")
def test_nothing_is_started(box: Box, account: Account, project: Path) -> None:
    alarm = account.write(account.home / "bwrap", f"#!/bin/sh\necho > {account.home}/started\n", mode=0o755)
    text = printed(box, "--run", "touch", "started", CLAUDEBOX_BWRAP=str(alarm))
    assert str(alarm) in text
    assert not (account.home / "started").exists()
    assert not (project / "started").exists()


@pytest.mark.req("UX-04", "FAIL-01")
def test_what_would_be_refused_is_not_printed(box: Box, account: Account) -> None:
    result = box.claudebox("--dry-run", "--run", "true", cwd=account.home)
    assert (result.returncode, result.stdout) == (125, "")


@pytest.mark.req("UX-04")
def test_pasted_command_keeps_the_groups_of_root_outside(box: Box, account: Account) -> None:
    if not account.is_root:
        return
    command = printed(box, "--run", "id", "-G")
    assert account.run("setpriv", "--groups", "4,24,27", "sh", "-c", command, cwd=box.project).stdout == "1000\n"
