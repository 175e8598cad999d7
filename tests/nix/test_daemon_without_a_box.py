"""What a daemon does for whoever may talk to it: why the box gets its socket only under conditions.

Nothing of claudebox is tested here. These are the attacks of the other tests, each where nobody stops it.
"""

from __future__ import annotations

import pytest

from conftest import ORDINARY_USER
from nix.attacks import Fetch, FixedOutput, HostFile, PostBuildHook, build, derivation
from nix.daemon import NixHost, on
from nix.machine import Resident

UNSANDBOXED = on(sandbox="false")
RELAXED = on(sandbox="relaxed")
TRUSTING = on(trusted_users=f"root {ORDINARY_USER}")


def test_daemon_builds_for_an_ordinary_user(account: Resident) -> None:
    done = account.run("nix", "shell", "nixpkgs#cowsay", "-c", "cowsay")
    assert done.stdout == "Moo.\n", done.stderr


def test_builds_are_sandboxed(account: Resident) -> None:
    done = account.run(*build(derivation("echo $NIX_BUILD_TOP >$out; id -un >&2; ls /home /var /root")))
    assert "No such file" in done.stderr, done.stderr
    done = account.run(*build(derivation("echo $NIX_BUILD_TOP >$out")))
    assert done.stdout == "/build\n"


@TRUSTING
def test_hook_of_a_trusted_user_runs_as_root(account: Resident, project) -> None:
    attack = PostBuildHook(account, project)
    done = account.run(*attack.command())
    assert done.stdout == "built\n", done.stderr
    assert attack.ran_as() == "0"


def test_hook_of_anybody_else_does_not_run(account: Resident, project) -> None:
    attack = PostBuildHook(account, project)
    done = account.run(*attack.command())
    assert done.stdout == "built\n", done.stderr
    assert attack.ran_as() is None


@pytest.mark.parametrize("attack", [Fetch, FixedOutput])
def test_sandboxed_build_reaches_the_loopback_of_the_host(account: Resident, host: NixHost, attack) -> None:
    fetch = attack(host)
    done = account.run(*fetch.command())
    assert done.returncode == 0, done.stderr
    assert fetch.arrived()


def test_sandboxed_build_reads_no_file_of_the_host(account: Resident) -> None:
    attack = HostFile(account)
    done = account.run(*attack.command("__noChroot = true;"))
    assert done.returncode != 0
    done = account.run(
        *attack.command(),
    )
    assert done.returncode != 0


@UNSANDBOXED
def test_unsandboxed_build_reads_a_file_of_the_host(account: Resident) -> None:
    attack = HostFile(account)
    done = account.run(*attack.command())
    assert done.stdout == f"{attack.words}\n", done.stderr


@RELAXED
def test_relaxed_sandbox_is_left_by_who_asks(account: Resident) -> None:
    attack = HostFile(account)
    assert account.run(*attack.command()).returncode != 0
    done = account.run(*attack.command("__noChroot = true;"))
    assert done.stdout == f"{attack.words}\n", done.stderr
