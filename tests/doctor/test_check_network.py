"""`--check` connects a box for real, and says what is missing if that fails."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from claudebox.commands.check import report_text
from claudebox.errors import Problem
from claudebox.features.network import diagnosis
from claudebox.features.network.uplink import TUN, TUN_COMMANDS, TUN_REASON
from claudebox.host.tree import Tree
from claudebox.process import trial
from claudebox.process.trial import CheckRow, Outcome, version_number
from claudebox.settings.gather import merge
from claudebox.text import WIDTH, Style, width
from conftest import CLAUDEBOX, Account, Box
from golden import Golden
from hosts.machine import debian
from patience import PATIENCE, comes_true
from running.needs import needed
from running.versions import each, path
from saying import from_options, parse

CABLE = "ip link add eth0 type veth peer name far; ip link set far up; ip link set eth0 up; ip link set lo up;"
DEFAULT_ROUTE = "ip address add 198.51.100.2/24 dev eth0; ip route add default via 198.51.100.1;"


def rows_of(output: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(output)["check"]}


def check(
    box: Box, *options: str, pasta: str = "", nft: str = "", around: tuple[str, ...] = ()
) -> dict[str, dict[str, Any]]:
    environ = {"CLAUDEBOX_PASTA": pasta, "CLAUDEBOX_NFT": nft}
    done = box.account.run(*around, CLAUDEBOX, "--check", "--json", *options, cwd=box.project, env=environ)
    assert done.stderr == ""
    return rows_of(done.stdout)


def changed(script: str, *namespaces: str) -> tuple[str, ...]:
    """Words that start a program on a machine that is a little different, where it passes for root."""
    return ("unshare", "--user", "--map-root-user", *namespaces, "sh", "-ec", f'{script} exec "$@"', "sh")


def program(account: Account, name: str, script: str) -> str:
    return str(account.write(account.home / "bin" / name, f"#!/bin/sh\n{script}\n", 0o755))


# On this machine


@pytest.mark.req("UX-05", "NET-01", "NET-02")
@pytest.mark.network
@pytest.mark.parametrize("version", each(str))
def test_box_is_connected_and_its_filter_holds(box: Box, version: str) -> None:
    found = check(box, pasta=path("pasta", version), nft=path("nft", version))
    assert [found[name]["state"] for name in ("pasta", "nft", "network inet")] == ["ok", "ok", "ok"]
    assert found["network inet"]["measured"] == "pasta and nft connected a box; its filter rejected a private address"
    assert found["nft"]["measured"][0].isdigit()


@pytest.mark.req("UX-05", "NET-02")
@pytest.mark.network
def test_nothing_is_left_behind(box: Box, account: Account) -> None:
    account.write(account.home / "bin" / "pasta")
    shutil.copy(shutil.which("pasta") or "", account.home / "bin" / "pasta")
    pasta = account.home / "bin" / "pasta"
    assert check(box, pasta=str(pasta))["network inet"]["state"] == "ok"
    assert comes_true(lambda: running(pasta) == [])


def running(path: Path) -> list[str]:
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            found += [process] if os.readlink(f"/proc/{process}/exe") == str(path) else []
        except OSError:
            pass  # it ended meanwhile
    return found


@pytest.mark.req("UX-05", "NET-02", "FAIL-01")
@pytest.mark.network
def test_kernel_without_nf_tables(box: Box, account: Account) -> None:
    message = "netlink: Error: cache initialization failed: Protocol not supported"
    nft = program(account, "nft", f"[ $1 = --version ] || {{ echo '{message}' >&2; exit 1; }}")
    row = check(box, nft=nft)["network inet"]
    assert row["state"] == "note"
    assert row["measured"] == f"the network's filter cannot be loaded: {message}"
    assert row["fix"] == [diagnosis.MODULES if account.uid else diagnosis.MODULES.removeprefix("sudo ")]


@pytest.mark.req("UX-05", "NET-01", "FAIL-01")
def test_what_only_may_be_there_must_be_there_if_it_is_wanted(box: Box, account: Account) -> None:
    nft = program(account, "nft", "exit 1")
    assert check(box, nft=nft)["network inet"]["state"] == "note"
    assert check(box, "--network", "inet", nft=nft)["network inet"]["state"] == "fail"
    assert box.claudebox("--check", env={"CLAUDEBOX_NETWORK": "inet", "CLAUDEBOX_NFT": nft}).returncode == 1


@pytest.mark.req("UX-05", "NET-02")
@pytest.mark.network
@pytest.mark.exhaustive("it waits as long as the check does")
def test_pasta_that_says_nothing(box: Box, account: Account) -> None:
    row = check(box, pasta=program(account, "pasta", "exit 1"))["network inet"]
    assert (row["state"], row["measured"]) == ("note", "pasta cannot connect the box: it did not answer")


@pytest.mark.req("UX-05", "NET-01", "FAIL-01")
@pytest.mark.network
@pytest.mark.root_repeats("the trial connects a box of the same kind")
def test_filter_that_does_not_hold_is_a_failure(box: Box, account: Account) -> None:
    """In a network where nobody would answer: a packet that passes comes to nobody."""
    nft = program(account, "nft", "exit 0")
    row = check(box, nft=nft, around=changed(CABLE + DEFAULT_ROUTE, "--net"))["network inet"]
    assert row["state"] == "fail"
    assert row["measured"] == "not rejected: 10.255.255.1"


# On one that lacks something


LACKING: dict[str, tuple[tuple[str, ...], dict[str, object]]] = {
    "default route": (
        changed(CABLE, "--net"),
        {"measured": "this host has no default route, so there is no internet to give to the box"},
    ),
    "device": (
        changed("mount -t tmpfs none /dev/net;", "--mount"),
        {"why": TUN_REASON, "fix": [command.removeprefix("sudo ") for command in TUN_COMMANDS]},
    ),
    "network namespaces": (
        changed("echo 0 >/proc/sys/user/max_net_namespaces;"),
        {"measured": "the kernel does not let claudebox make a network namespace for the box"},
    ),
}


@pytest.mark.req("UX-05", "NET-02", "FAIL-01")
@pytest.mark.network
@pytest.mark.parametrize("lacks", LACKING)
@pytest.mark.root_repeats("what is not there is there for nobody")
def test_what_the_network_lacks_is_said(box: Box, lacks: str) -> None:
    around, expected = LACKING[lacks]
    row = check(box, around=around)["network inet"]
    assert {**row, **expected, "state": "note"} == row


def with_device(account: Account, mode: str) -> tuple[str, ...]:
    """Words for root that start a program as this account, on a machine whose device has this mode."""
    made = f"mount -t tmpfs -o mode=0755 none /dev/net; mknod -m {mode} {TUN} c 10 200;"
    become = f"setpriv --reuid {account.uid} --regid {account.gid} --clear-groups"
    return ("unshare", "--mount", "sh", "-ec", f'{made} exec {become} "$@"', "sh")


def as_root(box: Box, *words: str) -> subprocess.CompletedProcess[str]:
    environ = box.account.environ
    return subprocess.run(
        words, cwd=box.project, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.fixture
@needed("root", "box", "network")
def users_box(user: Account) -> Box:
    """Root makes the device."""
    return Box(user, user.write(user.home / "shop" / "README.md").parent)


@pytest.mark.req("UX-05", "NET-02", "FAIL-01")
def test_closed_device_is_measured_by_the_check(users_box: Box) -> None:
    words = (*with_device(users_box.account, "0600"), CLAUDEBOX, "--check", "--json")
    row = rows_of(as_root(users_box, *words).stdout)["network inet"]
    assert (row["state"], row["why"], row["fix"]) == ("note", TUN_REASON, [*TUN_COMMANDS])


@pytest.mark.req("NET-02", "FAIL-01")
def test_closed_device_is_measured_by_the_launch(users_box: Box) -> None:
    words = (*with_device(users_box.account, "0600"), CLAUDEBOX, "--yes", "--network", "inet", "--run", "true")
    done = as_root(users_box, *words)
    assert done.returncode == 125
    assert "pasta cannot connect the box" in done.stderr
    assert [line.strip() for line in done.stderr.splitlines()][-4:] == [f"hint: {TUN_REASON}", *TUN_COMMANDS]


@pytest.mark.req("UX-05", "NET-02")
def test_device_with_the_mode_that_is_advised_works(users_box: Box) -> None:
    mode = TUN_COMMANDS[1].split()[2]
    words = with_device(users_box.account, mode)
    assert rows_of(as_root(users_box, *words, CLAUDEBOX, "--check", "--json").stdout)["network inet"]["state"] == "ok"
    done = as_root(users_box, *words, CLAUDEBOX, "--yes", "--network", "inet", "--run", "true")
    assert (done.returncode, "error" in done.stderr) == (0, False)


@pytest.mark.req("UX-05", "NET-02", "FAIL-01")
@pytest.mark.network
def test_no_user_namespaces(box: Box) -> None:
    found = check(box, around=changed("echo 0 >/proc/sys/user/max_user_namespaces;"))
    row = found["network inet"]
    assert (row["state"], found["namespaces"]["state"]) == ("note", "fail")
    assert row["why"] == "user namespaces are limited to none"
    assert "sysctl -w user.max_user_namespaces=15000" in row["fix"]


@pytest.mark.req("UX-05")
@pytest.mark.network
def test_missing_pasta_is_found_out_by_the_real_command(box: Box, account: Account) -> None:
    (account.home / "bin").mkdir()
    for name in ("env", "sh", "python3", "bwrap", "git", "true", "dirname", "readlink"):
        (account.home / "bin" / name).symlink_to(os.path.realpath(shutil.which(name) or ""))
    account.environ["PATH"] = str(account.home / "bin")
    found = check(box)
    assert found["pasta"]["state"] == "note"
    assert found["pasta"]["measured"].startswith("pasta is not installed")
    assert found["network inet"]["measured"] == "not tried: it needs pasta"


@pytest.mark.req("UX-05", "FAIL-01")
def test_program_of_the_project_is_not_run(box: Box, account: Account) -> None:
    script = f"touch {account.home}/ran; exit 1"
    path = account.write(box.project / "pasta", f"#!/bin/sh\n{script}\n", 0o755)
    found = rows_of(box.claudebox("--check", "--json", env={"CLAUDEBOX_PASTA": str(path)}).stdout)
    assert "where an agent can write" in found["pasta"]["measured"]
    assert not (account.home / "ran").exists()


# Every screen


REFUSALS = {
    "user namespace": "the user namespace cannot be set up: Operation not permitted",
    "network namespace": "the kernel does not let claudebox make a network namespace for the box",
    "filter": "the network's filter cannot be loaded: Error: Could not process rule: No such file or directory",
    "old tun": "pasta cannot connect the box: Failed to open tun socket in namespace",
    "new tun": "pasta cannot connect the box: Failed to set up tap device in namespace",
    "other": "pasta cannot connect the box: it did not answer",
}
APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns: 1\\n"
SWITCHED_OFF = "/proc/sys/kernel/unprivileged_userns_clone: 0\\n"
CONTAINER = "/.dockerenv\n/proc/self/status: Seccomp:\\t2\\n"
PROGRAMS = "/usr/bin/passt*\n/usr/bin/pasta -> passt\n/usr/sbin/nft*"
# What is on the machine, what the trial says, and what the user wants.
SCREENS: dict[str, tuple[str, list[str] | str, tuple[str, ...]]] = {
    "works": (PROGRAMS, [], ()),
    "not-installed": ("", [], ()),
    "not-installed-but-wanted": ("", [], ("--network", "inet")),
    "pasta-missing": ("/usr/sbin/nft*", [], ()),
    "apparmor": (f"{PROGRAMS}\n{APPARMOR}", REFUSALS["user namespace"], ()),
    "apparmor-later": (f"{PROGRAMS}\n{APPARMOR}", REFUSALS["network namespace"], ()),
    "switched-off": (f"{PROGRAMS}\n{SWITCHED_OFF}", REFUSALS["user namespace"], ()),
    "container": (f"{PROGRAMS}\n{CONTAINER}", REFUSALS["network namespace"], ()),
    "no-nf-tables": (PROGRAMS, REFUSALS["filter"], ()),
    "no-tun": (PROGRAMS, REFUSALS["old tun"], ()),
    "no-tun-with-a-new-pasta": (PROGRAMS, REFUSALS["new tun"], ()),
    "no-default-route": (PROGRAMS, [], ()),
    "silent-pasta": (PROGRAMS, REFUSALS["other"], ("--network", "inet")),
    "filter-does-not-hold": (PROGRAMS, ["10.255.255.1", "fdff:ffff:ffff::1"], ()),
}


def screen_rows(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> list[CheckRow]:
    planted, answer, words = SCREENS[name]
    machine = debian(root, planted)
    if name == "no-default-route":
        machine.neighbourhood = machine.neighbourhood.replace(has_ipv4=False, has_ipv6=False)

    def try_it(*_: object) -> list[str]:
        if isinstance(answer, str):
            raise Problem(answer)
        return answer

    monkeypatch.setattr(trial, "run_in_namespaces", try_it)
    monkeypatch.setattr(trial, "program_version", {"/usr/bin/pasta": trial.NO_VERSION, "/usr/sbin/nft": "1.0.6"}.get)
    return diagnosis.check(machine.host(), merge(from_options(parse(list(words)).said)))


@pytest.mark.req("UX-05", "NET-02", "FAIL-01")
@pytest.mark.parametrize("name", SCREENS)
def test_network_rows_are_exactly_this(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    rows = screen_rows(name, tmp_path, monkeypatch)
    text = report_text(rows, "claudebox 0.1.0 on Debian GNU/Linux 12 (bookworm), Linux 6.1.0", Style(False))
    golden.check_scene("network.txt", name, text)
    # Commands are not broken, so that they can be copied.
    lines = [line for line in text.splitlines() if not line.startswith(("  fix:", "       "))]
    assert [line for line in lines if width(line) > WIDTH] == []


def test_every_golden_text_is_used(golden: Golden) -> None:
    assert golden.scenes("network.txt") == set(SCREENS)
    assert golden.names() == {"check.txt", "network.txt"}


# Small things


def raises(error: Exception) -> list[str]:
    raise error


def wait() -> list[str]:
    time.sleep(5)
    return []


@pytest.mark.req("UX-05")
@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (lambda: raises(OSError("no socket")), "the trial failed: no socket"),
        (lambda: raises(Problem("no filter")), "no filter"),
        (lambda: raises(ValueError()), "the trial failed without a word"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "the trial failed without a word"),
        (wait, "the trial failed without a word"),
    ],
)
def test_trial_that_fails_by_itself_is_no_success(
    work: Callable[[], list[str]], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "fork_into_namespaces", os.fork)
    monkeypatch.setattr(trial, "TRIAL_SECONDS", 1)
    with pytest.raises(Problem, match=f"^{reason}$"):
        trial.run_in_namespaces(work)


@pytest.mark.req("UX-05")
@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("bubblewrap 0.8.0\n", "0.8.0"),
        ("2.1.197 (Claude Code)\n", "2.1.197"),
        ("nftables v1.0.6 (Lester Gooch #5)\n", "1.0.6"),
        ("pasta 0.0~git20250503.587980c-2\nCopyright 2020\n", "0.0~git20250503.587980c-2"),
        ("pasta unknown version\nCopyright 2020\n", "unknown version"),
        ("", "unknown version"),
    ],
)
def test_number_in_what_a_program_says_about_itself(text: str, number: str) -> None:
    assert version_number(Outcome(0, text, "")) == number
    assert version_number(Outcome(1, text, "")) == "unknown version"


def test_explanation_of_nothing_known_is_empty(tmp_path: Path) -> None:
    assert diagnosis.explain_failure(Tree(str(tmp_path)), "something else") == ("", ())
