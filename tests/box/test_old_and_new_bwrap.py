"""The main promises once more, with every bwrap that is at hand: versions differ in options and in bugs."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Account, Box
from running.versions import versions

pytestmark = pytest.mark.exhaustive("the default run has tried each of these with this system's bwrap")

CANARY = "canary-e15b40"


@pytest.fixture(params=versions("bwrap"))
def any_box(box: Box, request: pytest.FixtureRequest) -> Box:
    environ = {**box.account.environ, "CLAUDEBOX_BWRAP": request.param}
    return replace(box, account=replace(box.account, environ=environ))


@pytest.mark.req("SAND-02")
def test_environment_of_the_host_stays_outside(any_box: Box) -> None:
    seen = any_box.sh("env; cat /proc/[0-9]*/environ", options=("--env", "LD_LIBRARY_PATH=/x"), env={"FOO": CANARY})
    assert (CANARY in seen, "LD_LIBRARY_PATH=/x\n" in seen) == (False, True)


@pytest.mark.req("SAND-04", "SAND-05", "SAND-11")
def test_project_and_working_places_are_writable_and_nothing_else(any_box: Box) -> None:
    any_box.sh("touch made ~/x /tmp/x /var/tmp/x /dev/shm/x $XDG_RUNTIME_DIR/x && echo > /dev/null && mktemp")
    assert sorted(os.listdir(any_box.project)) == ["README.md", "made"]
    places = "/ /usr /etc /usr/bin /var /run /etc/ssl/certs /proc/sys/kernel"
    assert any_box.sh(f"for place in {places}; do touch $place/x && echo $place; done; true") == ""


@pytest.mark.req("SAND-09", "EXT-02")
def test_secret_place_below_a_mount_is_hidden(any_box: Box, account: Account) -> None:
    account.write(account.home / "work" / "keys" / "id_rsa", CANARY)
    (account.home / ".ssh").symlink_to("work/keys")
    account.write(account.home / ".config" / "git" / "credentials", CANARY)
    account.write(account.home / ".config" / "git" / "plain", "harmless\n")
    for option in ("--mount-ro", "--mount-rw"):
        script = "cat ~/.config/git/plain; umount ~/work/keys; grep -rs canary ~/.config ~/work /mnt; true"
        mounts = (option, "~/.config/git", option, "~/work", option, "~/work:/mnt")
        assert any_box.sh(script, options=mounts) == "harmless\n"


@pytest.mark.req("SEC-02")
def test_processes_names_and_privileges_are_those_of_the_box(any_box: Box) -> None:
    kinds = "pid ipc uts cgroup user mnt"
    script = f"cd /proc/self; for kind in {kinds}; do readlink ns/$kind; done; hostname; grep ^Cap status"
    *namespaces, hostname, capabilities = any_box.sh(script).split("\n", 7)
    outside = {os.readlink(f"/proc/self/ns/{kind}") for kind in ("pid", "ipc", "uts", "cgroup", "user", "mnt")}
    assert outside.isdisjoint(namespaces)
    assert hostname == "claudebox"
    assert {line.split()[1] for line in capabilities.splitlines()} == {"0" * 16}


@pytest.mark.req("EXT-02")
def test_destinations_work(any_box: Box, account: Account, project: Path) -> None:
    account.write(account.home / "lib" / "file", "seen\n")
    account.write(project / "vendor" / "file", "covered\n")
    account.write(project / "notes", "covered\n")
    options = ("--mount-ro", "~/lib:/mnt/a b/c", "--mount-ro", f"~/lib:{project}/vendor", "--mount-ro", "~/lib:/opt")
    files = ("--mount-ro", f"~/lib/file:{project}/notes", "--mount-ro", "~/lib/file:~/deep/er/file")
    script = 'cat "/mnt/a b/c/file" vendor/file /opt/file notes ~/deep/er/file'
    assert any_box.sh(script, options=options + files) == "seen\n" * 5


@pytest.mark.req("EXT-02", "FAIL-01")
def test_destination_through_a_symlink_of_the_project_is_refused(any_box: Box, account: Account, project: Path) -> None:
    account.write(account.home / "lib" / "file", "seen\n")
    (project / "link").symlink_to("/etc")
    result = any_box.inside("true", options=("--mount-rw", f"~/lib:{project}/link/ssl"))
    assert result.returncode == 125


@pytest.mark.req("GIT-03")
def test_worktree_works(any_box: Box, account: Account) -> None:
    main, worktree = account.home / "src" / "main", account.home / "trees" / "linked"
    account.write(main / "file", "x")
    commit = "git -c user.name=x -c user.email=x commit -qm one"
    script = f"git init -q && git add -A && {commit} && git worktree add -q {worktree}"
    assert account.run("sh", "-c", script, cwd=main).returncode == 0
    assert any_box.sh("git commit -q --allow-empty -m two && git log --format=%s", cwd=worktree) == "two\none\n"


@pytest.mark.req("UX-06", "SAND-14")
def test_claude_starts(any_box: Box, account: Account) -> None:
    fake = "#!/usr/bin/python3\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\nsys.exit(7)\n"
    program = account.write(account.home / "opt" / "claude", fake, mode=0o755)
    result = any_box.claudebox("--yes", "-p", "a b", env={"CLAUDEBOX_CLAUDE": str(program)})
    assert result.returncode == 7, result.stderr
    assert json.loads(result.stdout) == ["--dangerously-skip-permissions", "-p", "a b"]


@pytest.mark.req("UX-04")
def test_pasted_command_works(any_box: Box) -> None:
    command = any_box.claudebox("--dry-run", "--run", "pwd").stdout
    result = any_box.account.run("sh", "-c", command)
    assert result.stdout == f"{any_box.project}\n", result.stderr
