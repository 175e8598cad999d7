"""Nix in the box, with the daemon of the host: where that is safe it is there by itself."""

import json

import pytest

from conftest import CLAUDEBOX, ORDINARY_USER, Box
from nix.attacks import build, derivation
from nix.daemon import NIXES, NixHost, has_daemon, kinds, on
from nix.machine import Resident


@on(NIXES)
@pytest.mark.req("SAND-07", "NIXG-01")
def test_daemon_is_there_by_itself(box: Box) -> None:
    assert has_daemon(box)
    assert "risk" not in kinds(box)


@on(NIXES)
@pytest.mark.req("SAND-07", "TOOL-02")
def test_nix_build_works(box: Box, host: NixHost) -> None:
    done = box.inside("nix", "build", "--no-link", "--json", "nixpkgs#cowsay")
    assert done.returncode == 0, done.stderr
    path = json.loads(done.stdout)[0]["outputs"]["out"]
    assert (host.root / path.removeprefix("/") / "bin" / "cowsay").exists()


@pytest.mark.req("SAND-07", "TOOL-02")
@pytest.mark.parametrize("options", [(), ("--nix", "private")], ids=["daemon", "private"])
def test_nix_shell_works(box: Box, options: tuple[str, ...]) -> None:
    done = box.inside("nix", "shell", "nixpkgs#hello", "-c", "hello", options=options)
    assert done.stdout == "Hello, world!\n", done.stderr


@pytest.mark.req("TOOL-03")
def test_what_is_built_inside_can_be_used_there(box: Box) -> None:
    done = box.inside(*build(derivation("echo made by the daemon >$out")))
    assert done.stdout == "made by the daemon\n", done.stderr


@pytest.mark.req("SAND-06", "TOOL-03")
@pytest.mark.parametrize("mode", ["auto", "daemon", "store"])
def test_path_built_after_the_start_is_visible(box: Box, account: Resident, mode: str) -> None:
    script = "echo ready; read -r path; cat $path"
    argv = (CLAUDEBOX, "--yes", "--nix", mode, "--run", "sh", "-c", script)
    with account.start(*argv, cwd=box.project) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        expression = derivation("echo built later >$out")
        built = account.run("nix", "build", "--impure", "--no-link", "--json", "--expr", expression)
        assert built.returncode == 0, built.stderr
        out, _ = process.communicate(json.loads(built.stdout)[0]["outputs"]["out"] + "\n")
    assert out == "built later\n"


@pytest.mark.req("SAND-06")
@pytest.mark.parametrize("mode", ["auto", "daemon", "store"])
def test_nothing_of_the_store_can_be_changed(box: Box, host: NixHost, mode: str) -> None:
    def content() -> list[str]:
        # Before the first start, claudebox tries what the daemon's builds can see.
        return sorted(path.name for path in (host.root / "nix/store").iterdir() if "claudebox-trial" not in path.name)

    before = content()
    tries = """
        for place in /nix /nix/store /nix/store/*-nixpkgs /nix/var /nix/var/nix /nix/var/nix/*; do
            [ ! -d $place ] || ! touch $place/x || echo $place
        done
        chmod u+w /nix/store/*-nixpkgs && echo mode
        mount -o remount,rw,bind /nix/store && echo mount
        rm -rf /nix/store/*-nixpkgs/flake.nix && echo removed
        true
    """
    assert box.sh(tries, ("--nix", mode)) == ""
    assert before == content()


@pytest.mark.req("SAND-07")
def test_there_is_nothing_but_the_socket_beside_the_store(box: Box) -> None:
    seen = box.sh("cd /nix; find . -path ./store -prune -o ! -type d -print").split()
    assert seen == ["./var/nix/daemon-socket/socket"]


@pytest.mark.req("SAND-07")
def test_store_alone_and_nothing(box: Box) -> None:
    assert not has_daemon(box, "--nix", "store")
    assert box.sh("ls /nix/store | grep -c nixpkgs", ("--nix", "store")) == "1\n"
    assert box.sh("ls -d /nix /etc/nix; env | grep ^NIX_REMOTE; true", ("--nix", "off")) == ""


# What `--check` says about Nix, and what it starts for that.


def rows(box: Box) -> dict[str, str]:
    """State and text of each row that is about Nix."""
    lines = box.claudebox("--check").stdout.splitlines()
    return {line[6:24].strip(): f"{line[:6].strip()} {line[24:]}" for line in lines if line[6:9].lower() == "nix"}


@on(NIXES)
@pytest.mark.req("UX-05")
def test_daemon_that_is_no_way_out(box: Box) -> None:
    assert rows(box)["nix"].startswith("ok 2.")
    assert rows(box)["Nix in the box"].startswith("ok the store, read-only, and the host's daemon")


@on(trusted_users=f"root {ORDINARY_USER}")
@pytest.mark.req("UX-05", "NIXG-01")
def test_daemon_that_is_one(box: Box) -> None:
    assert rows(box)["Nix in the box"].startswith("note the store, read-only; nothing can be built")


@pytest.mark.req("UX-05")
def test_nix_of_the_project_is_not_started(box: Box, account: Resident) -> None:
    started = account.home / "started"
    account.write(box.project / "bin" / "nix", f"#!/bin/sh\ntouch {started}\necho nix 9.9\n", 0o755)
    account.environ["PATH"] = f"{box.project}/bin:{account.environ['PATH']}"
    assert rows(box)["nix"].startswith("ok 2.")
    assert not started.exists()
