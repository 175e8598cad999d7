"""A store of the project's own: builds stay in the box."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conftest import ORDINARY_USER, Box
from nix.asking import has_daemon, kinds
from nix.attacks import AbstractSocket, Fetch, FetchByProgram, HostFile, PostBuildHook, derivation
from nix.daemon import NixHost, on
from nix.machine import Resident

PRIVATE = ("--nix", "private")


def build(box: Box) -> str:
    """The path of something that was built in the box."""
    expression = derivation("echo private >$out")
    done = box.inside("nix", "build", "--impure", "--no-link", "--json", "--expr", expression, options=PRIVATE)
    assert done.returncode == 0, done.stderr
    path: str = json.loads(done.stdout)[0]["outputs"]["out"]
    return path


@pytest.mark.req("SAND-07", "NIXG-01")
def test_build_stays_in_the_box_and_is_there_the_next_time(box: Box, account: Resident, host: NixHost) -> None:
    path = build(box)
    assert not (host.root / path.removeprefix("/")).exists()
    assert box.sh(f"cat {path}", PRIVATE) == "private\n"
    other = replace(box, project=account.write(account.home / "src" / "other" / "README.md").parent)
    assert other.sh(f"ls {path} 2>/dev/null; true", PRIVATE) == ""
    assert box.sh(f"ls {path} 2>/dev/null; true", ("--nix", "store")) == ""


@pytest.mark.req("SAND-07", "TOOL-02")
def test_nix_shell_works(box: Box) -> None:
    done = box.inside("nix", "shell", "nixpkgs#cowsay", "-c", "cowsay", options=PRIVATE)
    assert done.stdout == "Moo.\n", done.stderr


@pytest.mark.req("SAND-07", "NIXG-01")
def test_there_is_no_daemon(box: Box) -> None:
    assert not has_daemon(box, *PRIVATE)
    assert "risk" not in kinds(box, *PRIVATE)


@pytest.mark.req("NIXG-01")
def test_store_of_the_host_stays_as_it_is(box: Box, host: NixHost) -> None:
    before = sorted(path.name for path in (host.root / "nix/store").iterdir())
    box.inside("sh", "-c", "rm -rf /nix/store/*; touch /nix/store/x; nix-collect-garbage", options=PRIVATE)
    assert before == sorted(path.name for path in (host.root / "nix/store").iterdir())


@on(trusted_users=f"root {ORDINARY_USER}", sandbox="false")
@pytest.mark.req("NIXG-01")
def test_no_attack_works(box: Box, account: Resident, host: NixHost) -> None:
    options = (*PRIVATE, "--network", "none")
    hook, file = PostBuildHook(account, box.project), HostFile(account)
    box.inside(*hook.command(), options=options)
    assert hook.ran_as() in (None, str(account.uid))
    assert file.words not in box.inside(*file.command(), options=options).stdout
    for attack in (Fetch(host), FetchByProgram(host), AbstractSocket(host)):
        box.inside(*attack.command(), options=options)
        assert not attack.arrived()
