"""What a daemon does for whoever may talk to it: why the box gets its socket only under conditions.

Nothing of claudebox is tested here. These are the attacks of the other tests, each where nobody stops it, and what
can be known about a daemon from outside.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import ORDINARY_USER
from nix.attacks import (
    AbstractSocket,
    DaemonsEnvironment,
    Fetch,
    FetchByProgram,
    HostFile,
    PostBuildHook,
    build,
    derivation,
)
from nix.daemon import LANDLOCKED, NEWER, NIXES, NixHost, on
from nix.machine import Resident
from patience import comes_true
from running.versions import SYSTEM

# The daemon does not do what the file says that anybody can read.
UNLIKE_ITS_FILE = on(arguments=("--option", "sandbox", "false", "--option", "trusted-users", ORDINARY_USER))


def test_ordinary_user_gets_things_built(account: Resident) -> None:
    done = account.run("nix", "shell", "nixpkgs#cowsay", "-c", "cowsay")
    assert done.stdout == "Moo.\n", done.stderr


def test_builds_are_sandboxed_and_can_tell(account: Resident) -> None:
    done = account.run(*build(derivation("echo $NIX_BUILD_TOP >$out")))
    assert done.stdout == "/build\n"


@on(sandbox="false")
def test_builds_that_are_not_sandboxed_can_tell(account: Resident) -> None:
    done = account.run(*build(derivation("echo $NIX_BUILD_TOP >$out")))
    assert done.stdout.startswith("/")
    assert done.stdout != "/build\n"


# The three ways out


@on(trusted_users=f"root {ORDINARY_USER}")
def test_hook_of_a_trusted_user_runs_as_root(account: Resident, project: Path) -> None:
    attack = PostBuildHook(account, project)
    done = account.run(*attack.command())
    assert done.stdout == "built\n", done.stderr
    assert attack.ran_as() == "0"


def test_hook_of_anybody_else_does_not_run(account: Resident, project: Path) -> None:
    attack = PostBuildHook(account, project)
    done = account.run(*attack.command())
    assert done.stdout == "built\n", done.stderr
    assert attack.ran_as() is None


@pytest.mark.parametrize("attack", [Fetch, FetchByProgram])
def test_sandboxed_build_reaches_the_network_of_the_host(account: Resident, host: NixHost, attack: type[Fetch]) -> None:
    attempt = attack(host)
    done = account.run(*attempt.command())
    assert done.returncode == 0, done.stderr
    assert attempt.arrived()


@on(NIXES)
def test_sandboxed_build_reaches_sockets_without_a_file(account: Resident, host: NixHost) -> None:
    attempt = AbstractSocket(host)
    done = account.run(*attempt.command())
    # Newer ones keep builds away from them, if the kernel can.
    arrived = comes_true(attempt.arrived) if host.version < LANDLOCKED else attempt.arrived()
    assert arrived == (host.version < LANDLOCKED), done.stderr


@on(sandbox="false")
def test_unsandboxed_build_reads_a_file_of_the_host(account: Resident) -> None:
    attack = HostFile(account)
    done = account.run(*attack.command())
    assert done.stdout == f"{attack.words}\n", done.stderr


@pytest.mark.parametrize("options", [(), ("--option", "sandbox", "false"), ("--option", "sandbox-paths", "/var/tmp")])
def test_sandboxed_build_does_not(account: Resident, options: tuple[str, ...]) -> None:
    attack = HostFile(account)
    done = account.run(*attack.command("__noChroot = true;"), *options)
    assert done.returncode != 0
    assert attack.words not in done.stderr


@on(sandbox="relaxed")
def test_relaxed_sandbox_is_left_by_who_asks(account: Resident) -> None:
    attack = HostFile(account)
    assert account.run(*attack.command()).returncode != 0
    done = account.run(*attack.command("__noChroot = true;"))
    assert done.stdout == f"{attack.words}\n", done.stderr


@on(environ=(("TOKEN", "canary-5f0c11"),))
def test_build_reads_the_environment_of_the_daemon(account: Resident) -> None:
    done = account.run(*DaemonsEnvironment("TOKEN").command())
    assert "canary-5f0c11" in done.stderr


# What can be known beforehand


def trusted(account: Resident) -> object:
    done = account.run("nix", "store", "info", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["trusted"]


@on(NEWER, trusted_users=f"root {ORDINARY_USER}")
def test_newer_daemon_says_that_a_user_is_trusted(account: Resident) -> None:
    assert trusted(account) == 1


@on(NEWER)
def test_newer_daemon_says_that_a_user_is_not_trusted(account: Resident) -> None:
    assert trusted(account) == 0


@on([SYSTEM])
def test_old_one_does_not_say_it(account: Resident, host: NixHost) -> None:
    assert account.run("nix", "store", "ping").returncode == 0
    is_old = host.version < (2, 14)
    assert (account.run("nix", "store", "info", "--json").returncode == 1) == is_old
    assert (account.run("nix", "store", "ping", "--json").returncode == 1) == is_old


@UNLIKE_ITS_FILE
def test_file_does_not_tell_what_the_daemon_does(account: Resident, project: Path) -> None:
    told = account.run("nix", "show-config").stdout.splitlines()
    assert {"sandbox = true", "trusted-users = root"} <= set(told)
    file, hook = HostFile(account), PostBuildHook(account, project)
    assert account.run(*file.command()).stdout == f"{file.words}\n"
    account.run(*hook.command())
    assert hook.ran_as() == "0"


@on(allowed_users="root")
def test_who_is_not_allowed_is_hung_up_on(account: Resident) -> None:
    done = account.run("nix", "store", "ping")
    assert done.returncode == 1
    assert "Connection reset" in done.stderr or "Broken pipe" in done.stderr


@on([SYSTEM], is_silent=True)
def test_socket_where_nobody_answers_is_waited_for_without_end(account: Resident) -> None:
    killed = -9
    assert account.run("nix", "store", "ping", timeout=2).returncode == killed
