"""How Nix is asked for packages, and what is understood of its answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from claudebox.features.nix.asking import find_reason, read_paths
from claudebox.features.nix.packages import find_nix, nix_environment
from claudebox.host import pinned
from hosts.machine import Machine
from unit.nix_machine import HELLO, HOME, PROJECT, make_machine

pytestmark = pytest.mark.req("EXT-04")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return make_machine(tmp_path)


def environment(machine: Machine) -> dict[str, str]:
    host = machine.host()
    return nix_environment(host, find_nix(host))


def test_nix_is_never_one_that_an_agent_can_write(machine: Machine) -> None:
    machine.plant(
        "~/shop/bin/nix*\n~/other/nix*\n~/.claudebox/instances/x/project: ~/other\\n\n~/links/nix -> ../other/nix"
    )
    machine.environ["PATH"] = f"bin:{PROJECT}/bin:{HOME}/other:{HOME}/links:/usr/bin"
    assert find_nix(machine.host()) == "/usr/bin/nix"
    (machine.root / "usr/bin/nix").unlink()
    assert find_nix(machine.host()) == ""


@pytest.mark.parametrize("place", ["/nix/var/nix/profiles/default/bin", "/run/current-system/sw/bin"])
def test_nix_is_found_where_path_does_not_look(machine: Machine, place: str) -> None:
    (machine.root / "usr/bin/nix").unlink()
    machine.plant(f"{place}/nix*")
    machine.environ["PATH"] = "/usr/bin"
    assert find_nix(machine.host()) == f"{place}/nix"


def test_nix_of_the_flake_comes_first(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pinned.PROGRAMS, "nix", f"{HELLO}/bin/nix")
    assert find_nix(machine.host()) == f"{HELLO}/bin/nix"


def test_no_variable_of_a_project_changes_what_nix_does(machine: Machine) -> None:
    known = environment(machine)
    machine.plant("~/shop/ca.pem: -----BEGIN CERTIFICATE-----\n~/.claudebox/")
    hostile = {
        **dict.fromkeys(("NIX_CONFIG", "NIX_PATH", "NIX_REMOTE", "NIX_CONF_DIR", "NIX_USER_CONF_FILES"), "x"),
        **dict.fromkeys(
            ("NIX_STORE_DIR", "NIX_STATE_DIR", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_CACHE_HOME"), "x"
        ),
        **dict.fromkeys(("GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "GIT_DIR", "LD_PRELOAD", "TMPDIR", "EDITOR"), "x"),
        **dict.fromkeys(("NIX_SSL_CERT_FILE", "SSL_CERT_FILE"), f"{PROJECT}/ca.pem"),
        "PATH": f"{PROJECT}/bin:/usr/bin",
    }
    machine.environ |= hostile
    assert environment(machine) == known
    assert known["HOME"] == HOME


def test_a_proxy_and_the_users_certificates_count(machine: Machine) -> None:
    machine.plant("/srv/ca.pem: -----BEGIN CERTIFICATE-----")
    machine.environ |= {"https_proxy": "http://proxy:3128", "NIX_SSL_CERT_FILE": "/srv/ca.pem"}
    known = environment(machine)
    assert known["https_proxy"] == "http://proxy:3128"
    assert known["NIX_SSL_CERT_FILE"] == "/srv/ca.pem"


@pytest.mark.parametrize(
    ("output", "paths"),
    [
        (b'[{"drvPath":"x","outputs":{"man":"/m","out":"/o"}}]', ["/m", "/o"]),
        (b'[{"path":"/o"}]', ["/o"]),
        (b'["/o"]', ["/o"]),
        *((text, []) for text in (b"", b"{", b"null", b"[1]", b"[" * 100_000, b"\xff")),
    ],
)
def test_paths_are_read_from_json(output: bytes, paths: list[str]) -> None:
    assert read_paths(output) == paths


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["warning: x", "error: flake 'y' does not provide z"], "flake 'y' does not provide z"),
        (
            ["error:", "… while calling", "error: Package 'x' has an unfree license"],
            "Package 'x' has an unfree license",
        ),
        (
            ["error: builder for 'x' failed with exit code 1;", "last 1 log lines:", "> no"],
            "builder for 'x' failed with exit code 1",
        ),
        (
            ["error: Cannot build 'x'.", "Reason: builder failed.", "Output:"],
            "Cannot build 'x'. Reason: builder failed.",
        ),
        (["killed"], "killed"),
        ([], "Nix failed without a word"),
        (
            ["error: cannot connect to socket at '/nix/x': Connection refused"],
            "the Nix daemon does not answer: sudo systemctl start nix-daemon",
        ),
    ],
)
def test_reason_is_the_last_error(lines: list[str], reason: str) -> None:
    assert find_reason(lines) == reason


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("error: cannot connect to socket at '/nix/x': Permission denied", "nix-users"),
        ("error: unrecognised flag '--extra-experimental-features'", "2.4"),
        ("error: experimental Nix feature 'nix-command' is disabled; use '--extra'", "disabled"),
    ],
)
def test_reason_says_what_to_do(line: str, word: str) -> None:
    assert word in find_reason([line])
