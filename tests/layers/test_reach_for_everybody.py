"""Whoever takes a program, a file or a mount from the host asks the same question, and gets the same answer."""

from collections.abc import Callable
from pathlib import Path

import pytest

from claudebox.errors import Problem
from claudebox.features.claude import choose_claude
from claudebox.features.nix.packages import find_nix, nix_environment
from claudebox.features.wishes import wished_mounts
from claudebox.host import Host
from claudebox.host.programs import choose_bwrap, choose_uplink
from claudebox.model import RO, Origin
from claudebox.settings import MountWish, Word
from claudebox.state.reach import host_certificates, reach_of
from hosts.machine import Machine
from saying import gather, parse

HOME = "/home/alice"
CERTIFICATES = "-----BEGIN CERTIFICATE-----\\nx\\n-----END CERTIFICATE-----\\n"
# Where an agent can write, and a place beside it where none can.
REACHED = ["shop", "work", "shared", ".claudebox/auth", ".claudebox/instances/0123456789abcdef/claude"]
SAFE = "private"


@pytest.fixture
def machine(machine: Machine) -> Machine:
    made = machine.plant("~/.claudebox/instances/0123456789abcdef/project: /home/alice/work\\n")
    made.plant("~/.claudebox/instances/0123456789abcdef/writable-x: /home/alice/shared\\n")
    for place in (*REACHED, SAFE):
        programs = "\n".join(f"~/{place}/bin/{name}*: \x7fELF" for name in ("bwrap", "claude", "pasta", "nft", "nix"))
        made.plant(f"{programs}\n~/{place}/ca.pem: {CERTIFICATES}\n~/{place}/aws.toml: hide = []\n~/{place}/flake.nix")
        made.plant(f"~/{place}/turned -> ~/{SAFE}")
    return made


def is_refused(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except Problem as problem:
        return "an agent can" in problem.message
    return False


def bwrap(host: Host, place: str) -> bool:
    return is_refused(lambda: choose_bwrap(with_path(host, place), None, reach_of(host)))


def named_bwrap(host: Host, place: str) -> bool:
    named = Word(f"{place}/bin/bwrap", Origin.of_variable("CLAUDEBOX_BWRAP"))
    return is_refused(lambda: choose_bwrap(host, named, reach_of(host)))


def with_path(host: Host, place: str) -> Host:
    return host.replace(environ={"PATH": f"{place}/bin"})


def claude(host: Host, place: str) -> bool:
    return is_refused(lambda: choose_claude(with_path(host, place), None, reach_of(host)))


def interpreter_of_claude(host: Host, place: str) -> bool:
    script = Path(host.tree.root + HOME) / "script"
    script.write_text("#!/usr/bin/env nix\n")
    script.chmod(0o755)
    named = Word(f"{HOME}/script", Origin.of_file("~/.claudebox/config.toml", 1))
    return is_refused(lambda: choose_claude(with_path(host, place), named, reach_of(host)))


def uplink(host: Host, place: str) -> bool:
    named: dict[str, Word | None] = {"pasta": None, "nft": None}
    return is_refused(lambda: choose_uplink(with_path(host, place), named, reach_of(host)))


def nix(host: Host, place: str) -> bool:
    return find_nix(with_path(host, place)) == ""


def certificates_of_nix(host: Host, place: str) -> bool:
    found = nix_environment(host.replace(environ={"SSL_CERT_FILE": f"{place}/ca.pem"}), "/usr/bin/nix")
    return not found.get("SSL_CERT_FILE", "").startswith(HOME)


def certificates_of_the_broker(host: Host, place: str) -> bool:
    found = host_certificates(reach_of(host), {"SSL_CERT_FILE": f"{place}/ca.pem"})
    return not found.startswith(HOME)


def profile(host: Host, place: str) -> bool:
    profiles = Path(host.tree.root + HOME) / ".claudebox/profiles"
    profiles.mkdir()
    (profiles / "aws.toml").symlink_to(f"{place}/aws.toml")
    return is_refused(lambda: gather(host, parse(["--profile", "aws"])))


ASKERS = [
    *(bwrap, named_bwrap, claude, interpreter_of_claude, uplink, nix),
    *(certificates_of_nix, certificates_of_the_broker, profile),
]


@pytest.mark.req("SEC-01")
@pytest.mark.parametrize("place", [*REACHED, *(f"{place}/turned" for place in REACHED)])
@pytest.mark.parametrize("is_taken_from_an_agent", ASKERS, ids=lambda asker: asker.__name__)
def test_nothing_is_taken_from_where_an_agent_can_write(
    machine: Machine, is_taken_from_an_agent: Callable[[Host, str], bool], place: str
) -> None:
    assert is_taken_from_an_agent(machine.host(), f"{HOME}/{place}")


@pytest.mark.parametrize("place", [SAFE, "elsewhere"])
@pytest.mark.parametrize("is_taken_from_an_agent", ASKERS, ids=lambda asker: asker.__name__)
def test_what_is_the_users_is_taken(
    machine: Machine, is_taken_from_an_agent: Callable[[Host, str], bool], place: str
) -> None:
    machine.plant(f"~/elsewhere -> ~/{SAFE}")
    assert not is_taken_from_an_agent(machine.host(), f"{HOME}/{place}")


@pytest.mark.req("SEC-01")
@pytest.mark.parametrize("place", [*REACHED, ".claudebox/cache"])
def test_mount_of_a_file_follows_no_symlink_of_an_agent(machine: Machine, place: str) -> None:
    machine.plant(f"~/{place}/turned -> ~/{SAFE}")
    host = machine.host()

    def ask(origin: Origin) -> bool:
        wish = MountWish(RO, f"{HOME}/{place}/turned", "/opt/x", origin)
        return is_refused(lambda: wished_mounts(reach_of(host), (wish,), host.cwd, (HOME,), ()))

    assert ask(Origin.of_file("~/.claudebox/config.toml", 1))
    assert ask(Origin.of_file(".claudebox.toml", 1, is_project=True))
    assert not ask(Origin.of_option("--mount-ro"))
