"""Packages that the user names: how the host's Nix is asked for them, and that they are in the box."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Box, make_account
from nix.daemon import NIXES, NixHost, on
from nix.machine import Resident
from patience import PATIENCE, comes_true

pytestmark = pytest.mark.req("EXT-04")

FLAKE = Path(__file__).with_name("nixpkgs") / "flake.nix"
HELLO = "Hello, world!\n"


def packages(*names: str) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("--package", name))


@pytest.fixture
def log(account: Resident) -> Path:
    """Has a nix first on PATH that notes how it was called, and does what it is told."""
    real = account.run("sh", "-c", "command -v nix").stdout.strip()
    log = account.home / "asked"
    script = f"""#!/bin/sh
echo "start $PWD $*" >>{log}
case $* in *--out-link*) env >>{log}.env ;; esac
{real} "$@"
status=$?
echo end >>{log}
exit $status
"""
    account.write(account.home / "bin" / "nix", script, 0o755)
    account.environ["PATH"] = f"{account.home}/bin:{account.environ['PATH']}"
    return log


def calls(log: Path) -> list[str]:
    """For packages: what the daemon does with builds is tried, too."""
    return [line for line in log.read_text().splitlines() if "--out-link" in line] if log.exists() else []


@on()
def test_nothing_is_asked_twice(box: Box, log: Path) -> None:
    assert box.sh("greet; hello", packages("loud", "hello")) == "HELLO\nHello, world!\n"
    assert len(calls(log)) == 2
    log.unlink()
    assert box.sh("greet; hello", packages("loud", "hello")) == "HELLO\nHello, world!\n"
    assert not log.exists()
    assert box.sh("greet", packages("loud", "quiet")) == "HELLO\n"
    assert [line.split("#")[-1] for line in calls(log)] == ["quiet"]


@on(NIXES[:1])
@pytest.mark.parametrize("file", ["registry.json", "nix.conf"])
def test_asks_again_when_the_users_configuration_has_changed(box: Box, account: Resident, log: Path, file: str) -> None:
    box.sh("hello", packages("hello"))
    log.unlink()
    content = '{"flakes": [], "version": 2}' if file == "registry.json" else "warn-dirty = false\n"
    account.write(account.home / ".config" / "nix" / file, content)
    box.sh("hello", packages("hello"))
    assert len(calls(log)) == 1


@on(NIXES[:1])
def test_asks_again_when_the_directory_is_gone(box: Box, account: Resident, log: Path) -> None:
    box.sh("hello", packages("hello"))
    account.run("rm", "-r", f"{account.home}/.claudebox/packages")
    box.sh("hello", packages("hello"))
    assert len(calls(log)) == 2


@on(NIXES[:1])
def test_only_a_start_asks(box: Box, log: Path) -> None:
    for mode in (("--audit",), ("--audit", "--json"), ("--dry-run",), ("--explain", "hello")):
        done = box.claudebox(*packages("hello"), *mode, "--run", "hello")
        assert done.returncode == 0, done.stderr
        assert "hello" in done.stdout
        assert "resolved" in done.stdout
    assert not log.exists()


@on(NIXES[:1])
@pytest.mark.req("UX-04")
def test_pasted_command_has_what_was_resolved(box: Box, account: Resident) -> None:
    box.sh("hello", packages("hello"))
    script = box.claudebox(*packages("hello"), "--dry-run", "--run", "hello").stdout
    assert account.run("sh", str(account.write(account.home / "script", script)), cwd=box.project).stdout == HELLO


@on(NIXES[:1])
def test_nix_obeys_no_variable_and_no_place_of_the_project(box: Box, account: Resident, log: Path) -> None:
    """Each of these would make it fail, or do something else."""
    (account.home / ".claudebox").mkdir(mode=0o700, exist_ok=True)  # no variable says where else
    account.own(account.home / ".claudebox")
    account.environ |= {
        "NIX_CONFIG": "no such setting",
        "NIX_REMOTE": "unix:///nowhere",
        "NIX_STORE_DIR": "/nowhere",
        "NIX_USER_CONF_FILES": str(box.project / "nix.conf"),
        "XDG_CONFIG_HOME": str(box.project / "config"),
        "NIX_SHOW_STATS": "1",
        "GIT_DIR": "/nowhere",
        "LD_PRELOAD": "",
    }
    assert box.sh("hello", packages("hello")) == HELLO
    assert all(line.split()[1] == "/" for line in calls(log))
    names = {line.partition("=")[0] for line in (Path(f"{log}.env")).read_text().splitlines()}
    assert names.isdisjoint({*account.environ} - {"HOME", "PATH", "USER"})


@on(NIXES[:1])
def test_flake_of_this_host_is_not_evaluated(box: Box, account: Resident, log: Path) -> None:
    """With one that starts git, the repository's own configuration would run a program."""
    account.write(box.project / "flake.nix", FLAKE.read_text())
    account.run("ln", "-s", str(box.project), str(account.home / "link"))
    for reference in (".#hello", f"{box.project}#hello", f"path:{box.project}#hello", f"{account.home}/link#hello"):
        assert box.inside("hello", options=packages(reference)).returncode == 125
    flakes = [{"from": {"type": "indirect", "id": "mine"}, "to": {"type": "path", "path": str(box.project)}}]
    account.write(account.home / ".config" / "nix" / "registry.json", json.dumps({"flakes": flakes, "version": 2}))
    assert box.inside("hello", options=packages("mine#hello")).returncode == 125
    assert not log.exists()
    direct = account.run("nix", "build", "--no-link", f"{box.project}#hello", env={"PATH": account.environ["PATH"]})
    assert direct.returncode == 0, "what was refused would have done no harm"


@on()
def test_reason_is_the_one_of_nix(box: Box) -> None:
    done = box.inside("true", options=packages("missing", "broken"))
    said = " ".join(done.stderr.split())
    assert "warning: missing is not in the box: flake 'flake:nixpkgs' does not provide attribute" in said
    assert re.search(r"warning: broken is not in the box: .*fail", said), said
    assert "· missing: not in the box:" in said


@on()
def test_package_survives_the_garbage_collector(box: Box, account: Resident, host: NixHost) -> None:
    box.sh("cowsay", packages("cowsay"))
    audit = json.loads(box.claudebox(*packages("cowsay"), "--audit", "--json", "--run", "x").stdout)
    (path,) = audit["packages"][0]["paths"]
    host.run_nix("nix-collect-garbage")
    assert host.run("sh", f"{path}/bin/cowsay") == "Moo.\n"
    account.run("rm", "-r", f"{account.home}/.claudebox/packages")
    host.run_nix("nix-collect-garbage")
    assert not (host.root / path.lstrip("/")).exists()


@on()
def test_explains_a_package(box: Box) -> None:
    box.sh("cowsay", packages("cowsay"))
    said = box.claudebox(*packages("cowsay"), "--explain", "cowsay", "--run", "x").stdout
    assert "cowsay: in the box, on PATH" in said
    assert "leave out --package cowsay" in said
    cow = box.sh("command -v cowsay", packages("cowsay")).strip()
    said = box.claudebox(*packages("cowsay"), "--explain", cow, "--run", "x").stdout
    assert "--package asks for cowsay" in said


@on()
@pytest.mark.parametrize("mode", ["auto", "private"])
def test_root_gets_packages_too(host: NixHost, mode: str) -> None:
    for root in make_account("root"):
        account = host.settle(root)
        project = account.write(account.home / "src" / "shop" / "README.md").parent
        box = Box(account, project)
        assert box.sh("cowsay", (*packages("cowsay"), "--nix", mode)) == "Moo.\n"


@on(NIXES[:1], is_silent=True)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_whatever_ends_claudebox_ends_nix(box: Box, account: Resident, number: int) -> None:
    """The daemon does not answer, so Nix would wait for ever."""
    started = account.start(CLAUDEBOX, "--yes", *packages("hello", "cowsay"), "--run", "hello", cwd=box.project)
    try:
        assert comes_true(lambda: len(running("build")) == 1)
        (pid,) = running("--yes")
        os.kill(pid, number)
        _, said = started.communicate(timeout=PATIENCE)
    finally:
        started.kill()
    assert started.returncode in (128 + number, -number), said
    assert comes_true(lambda: running("build") == running("--yes") == [])


def running(word: str) -> list[int]:
    """Processes of nix or claudebox, without those that only lead to them, that have this word in their arguments."""
    found = []
    for directory in Path("/proc").iterdir():
        try:
            words = (directory / "cmdline").read_bytes().split(b"\0") if directory.name.isdigit() else []
        except OSError:
            continue
        is_one = words and (words[0].endswith(b"/nix") or b"python" in words[0])
        if is_one and word.encode() in words and (b"cowsay" in words or b"nixpkgs#" in b" ".join(words)):
            found.append(int(directory.name))
    return found


# Packages that the user names: looked up on the host, there in the box.


@pytest.mark.parametrize("mode", ["auto", "daemon", "store", "private"])
def test_package_and_what_it_needs_are_there(box: Box, mode: str) -> None:
    done = box.inside("cowsay", options=(*packages("cowsay"), "--nix", mode))
    assert done.stdout == "Moo.\n", done.stderr


@pytest.mark.parametrize("network", ["inet", "none"])
def test_network_of_the_box_does_not_matter(box: Box, network: str) -> None:
    done = box.inside("hello", options=(*packages("hello"), "--network", network))
    assert done.stdout == "Hello, world!\n", done.stderr


@pytest.mark.parametrize(("first", "second", "greeting"), [("loud", "quiet", "HELLO"), ("quiet", "loud", "hello")])
def test_first_package_comes_first(box: Box, first: str, second: str, greeting: str) -> None:
    assert box.sh("greet", packages(first, second)) == f"{greeting}\n"


def test_package_comes_before_what_the_box_has(box: Box, account: Resident) -> None:
    path = box.sh("echo $PATH", packages("hello"))
    assert path.startswith("/nix/store/")


def test_packages_come_from_a_file_too(box: Box, account: Resident) -> None:
    account.write(account.home / ".claudebox" / "config.toml", 'packages = ["loud"]\n')
    assert box.sh("greet") == "HELLO\n"


@pytest.mark.parametrize("name", ["missing", "broken"])
def test_what_cannot_be_had_is_named_and_the_rest_is_there(box: Box, name: str) -> None:
    done = box.inside("hello", options=packages(name, "hello"))
    assert done.stdout == "Hello, world!\n"
    assert name in done.stderr


def test_package_that_was_removed_meanwhile_is_fetched_again(box: Box, account: Resident, host: NixHost) -> None:
    assert box.sh("hello", packages("hello")) == "Hello, world!\n"
    for path in (host.root / "nix/var/nix/gcroots/auto").iterdir():
        path.unlink()
    host.run_nix("nix-collect-garbage")
    assert box.sh("hello", packages("hello")) == "Hello, world!\n"


def test_package_is_kept_while_it_is_wanted(box: Box, account: Resident, host: NixHost) -> None:
    """From inside anybody may collect garbage; what a box was promised is none."""
    script = "nix-collect-garbage >/dev/null 2>&1; hello"
    assert box.sh(script, packages("hello")) == "Hello, world!\n"


def test_name_is_no_option_of_nix(box: Box) -> None:
    done = box.inside("true", options=("--package", "--help"))
    assert "nix" not in done.stdout
    done = box.inside("true", options=("--package", "hello --impure"))
    assert (done.returncode, "is not the name of a package" in done.stderr) == (125, True)


@on(allowed_users="root")
def test_who_may_not_ask_the_daemon_is_told(box: Box) -> None:
    done = box.inside("true", options=packages("hello"))
    assert done.returncode == 0
    assert "hello" in done.stderr
