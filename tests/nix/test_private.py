"""A store of the project's own: builds stay in the box."""

import json
from dataclasses import replace

import pytest

from conftest import ORDINARY_USER, Box
from nix.attacks import AbstractSocket, Fetch, FetchByProgram, HostFile, PostBuildHook, derivation
from nix.daemon import NixHost, has_daemon, kinds, on
from nix.machine import Resident

PRIVATE = ("--nix", "private")


def built(commands: str) -> tuple[str, ...]:
    """The command that builds something and says where it is."""
    return ("nix", "build", "--impure", "--no-link", "--json", "--expr", derivation(commands))


def added(account: Resident, name: str, content: str, whole: str = "") -> str:
    """The path of a file in the host's store, or of a directory that it is in."""
    account.write(account.home / name, content)
    done = account.run("nix-store", "--add", str(account.home / (whole or name)))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def build(box: Box) -> str:
    """The path of something that was built in the box."""
    done = box.inside(*built("echo private >$out"), options=PRIVATE)
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


@pytest.mark.req("SAND-07", "NIXG-01")
def test_there_is_no_daemon(box: Box) -> None:
    assert not has_daemon(box, *PRIVATE)
    assert "risk" not in kinds(box, *PRIVATE)


@pytest.mark.req("NIXG-01")
def test_store_of_the_host_stays_as_it_is(box: Box, host: NixHost) -> None:
    before = sorted(path.name for path in (host.root / "nix/store").iterdir())
    box.inside("sh", "-c", "rm -rf /nix/store/*; touch /nix/store/x; nix-collect-garbage", options=PRIVATE)
    assert before == sorted(path.name for path in (host.root / "nix/store").iterdir())


@pytest.mark.req("NIXG-01", "SAND-04")
def test_planted_symlink_is_not_followed(box: Box, account: Resident) -> None:
    """While bwrap makes the mounts, /oldroot is the host's root: it would make a file there, or mount elsewhere."""
    file = added(account, "editor", "host's\n")
    directory = added(account, "tools/editor", "host's\n", whole="tools")
    # In a file: what the command names is mounted, and cannot be replaced any more.
    script = f"ln -s /oldroot{account.home}/planted {file}\nln -s /newroot/etc {directory}\n"
    account.write(box.project / "plant", script)
    box.sh("sh plant", PRIVATE)
    account.environ["EDITOR"] = f"{directory}/editor {file}"
    assert box.sh("cat $EDITOR; ls -d /etc/passwd", PRIVATE) == "host's\nhost's\n/etc/passwd\n"
    assert not (account.home / "planted").exists()


@pytest.mark.req("NIXG-01")
def test_store_itself_cannot_be_replaced(box: Box) -> None:
    """Not even from a box beside the one that starts."""
    tries = "for place in store var; do mv /nix/$place /nix/x && echo moved; rm -r /nix/$place && echo removed; done"
    assert box.sh(f"({tries}) 2>/dev/null; true", PRIVATE) == ""


@pytest.mark.req("NIXG-01", "SAND-04")
def test_symlink_in_the_store_shows_nothing_of_the_host(box: Box, account: Resident) -> None:
    """From a box with the daemon, an agent can put what it likes into the host's store."""
    account.write(account.home / "documents" / "letter", "secret\n")
    done = box.inside(*built(f"ln -s {account.home}/documents $out"))
    account.environ["EDITOR"] = path = json.loads(done.stdout)[0]["outputs"]["out"]
    seen = box.sh(f"readlink {path}; cat {path}/letter 2>/dev/null; true", PRIVATE)
    assert seen == f"{account.home}/documents\n"


@pytest.mark.req("SAND-06")
def test_what_is_hidden_stays_hidden(box: Box, account: Resident) -> None:
    account.environ["EDITOR"] = file = added(account, "editor", "host's\n")
    assert box.sh(f"cat {file} 2>/dev/null; true", (*PRIVATE, "--hide", file)) == ""


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
