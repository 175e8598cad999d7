"""When the daemon of Nix is given to the box: never if it could be used to get out, or if that is not known."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from claudebox.features.nix import Nix
from claudebox.features.nix.store import CLOSED, OPEN, UNKNOWN, judge, nix_findings, nix_mounts
from claudebox.host import nix_daemon as host_nix
from claudebox.host.nix_daemon import Daemon, ask_daemon, read_config
from claudebox.host.secrets import secret_value
from claudebox.model import FILE, Origin
from hosts.machine import EVERYONE, TREES, Machine, plant

pytestmark = pytest.mark.req("NIXG-01")

TOKEN = "ghp_" + "a1" * 18


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    return machine.plant((TREES / "debian12-nix.txt").read_text()).plant(EVERYONE.read_text())


def configured(machine: Machine, *lines: str) -> Machine:
    return machine.plant("/etc/nix/nix.conf: " + "\\n".join(lines) + "\\n")


def mode(machine: Machine, *words: str) -> str:
    nix = machine.plan(*words).get(Nix)
    assert nix is not None
    shown = {mount.path for mount in machine.plan(*words).mounts}
    assert ("/nix/var/nix/daemon-socket" in shown) == (nix.mode == "daemon")
    return nix.mode


@pytest.mark.req("SAND-07")
def test_a_daemon_that_is_no_way_out_is_given(machine: Machine) -> None:
    plan = configured(machine, "trusted-users = root", "sandbox = true").plan()
    assert mode(machine) == "daemon"
    assert ("NIX_REMOTE", "daemon") in {(variable.name, variable.value) for variable in plan.environment}
    # That its builds see nothing is known when one was tried, and not before.
    assert ["is tried" in finding.text for finding in plan.findings] == [True]
    nix = plan.get(Nix)
    assert nix is not None
    assert nix_findings(nix.replace(needs_trial=False)) == []


def test_what_the_daemon_says_counts_more_than_a_file(machine: Machine) -> None:
    """The file may have changed since it was started."""
    assert mode(configured(machine, "trusted-users = alice")) == "daemon"


@pytest.mark.parametrize(
    "trusted", ["alice", "root alice", "*", "@alice", "@wheel", "root @nix-admins @wheel", "@of-the-directory"]
)
def test_old_daemon_and_a_file_that_trusts_or_may_trust(machine: Machine, trusted: str) -> None:
    machine.nix_daemon = Daemon(answers=True, trusts=None)
    (machine.root / "etc/group").write_text("root:x:0:\nalice:x:1000:\nwheel:x:10:bob,alice\n")
    assert mode(configured(machine, f"trusted-users = {trusted}")) == "store"


@pytest.mark.parametrize("trusted", ["root", "bob", "@others", "root @others"])
def test_old_daemon_and_a_file_that_does_not_trust(machine: Machine, trusted: str) -> None:
    machine.nix_daemon = Daemon(answers=True, trusts=None)
    (machine.root / "etc/group").write_text("root:x:0:\nalice:x:1000:\nothers:x:10:bob\n")
    assert mode(configured(machine, f"trusted-users = {trusted}")) == "daemon"


def test_an_optional_file_may_be_missing(machine: Machine) -> None:
    machine.nix_daemon = Daemon(answers=True, trusts=None)
    assert mode(configured(machine, "!include missing.conf")) == "daemon"


def test_harmless_places_in_builds(machine: Machine) -> None:
    assert mode(configured(machine, "sandbox-paths = /bin/sh=/nix/store/x/bin/sh /usr/bin/env /dev/kvm")) == "daemon"


def test_a_file_that_cannot_be_read(machine: Machine) -> None:
    assert mode(machine.plant("/etc/nix/nix.conf/")) == "store"


def test_project_may_lower_it_and_not_raise_it(machine: Machine) -> None:
    machine.nix_daemon = Daemon(answers=True, trusts=True)
    assert mode(machine.plant('~/shop/.claudebox.toml: nix = "daemon"\\n')) == "store"
    (machine.root / "home/alice/shop/.claudebox.toml").write_text('nix = "off"\n')
    assert mode(machine) == "off"


@pytest.mark.req("SAND-06")
def test_store_is_there_unless_it_is_off(machine: Machine) -> None:
    def has_store(*words: str) -> bool:
        return "/nix/store" in {mount.path for mount in machine.plan(*words).mounts}

    assert has_store()
    assert has_store("--nix", "store")
    assert not has_store("--nix", "off", "--run", "true")


def test_the_programs_of_a_nix_host_stay(tmp_path: Path) -> None:
    machine = Machine(tmp_path, environ={"PATH": "/run/current-system/sw/bin:/etc/profiles/per-user/alice/bin"})
    machine.plant((TREES / "nixos.txt").read_text()).plant(EVERYONE.read_text())
    plan = machine.plan("--nix", "off")
    assert "/nix/store" in {mount.path for mount in plan.mounts}
    assert "NIX_REMOTE" not in {variable.name for variable in plan.environment}


def test_no_token_of_the_configuration_enters(machine: Machine) -> None:
    configured(
        machine,
        f"access-tokens = github.com={TOKEN}",
        "netrc-file = /etc/nix/netrc",
        f"substituters = https://cache.example.org https://bob:{TOKEN}@cache.example.net",
        "trusted-public-keys = cache.example.org-1:abc=",
    )
    machine.plant(f'/etc/nix/registry.json: {{"url": "https://x:{TOKEN}@git.example.org"}}')
    files = {mount.path: mount.content.decode() for mount in machine.plan().mounts if mount.kind == FILE}
    assert "trusted-public-keys = cache.example.org-1:abc=" in files["/etc/nix/nix.conf"]
    assert "/etc/nix/registry.json" not in files
    assert not [path for path, text in files.items() if TOKEN in text or secret_value(text)]
    assert "netrc" not in files["/etc/nix/nix.conf"]


def test_registries_enter(machine: Machine) -> None:
    configured(machine, "flake-registry = /srv/registry.json")
    machine.plant("/srv/registry.json: GLOBAL\n~/.config/nix/registry.json: MINE\n/etc/nix/registry.json: SYSTEM")
    files = {mount.path: mount.content.decode() for mount in machine.plan().mounts if mount.kind == FILE}
    assert files["/etc/nix/flake-registry.json"] == "GLOBAL\n"
    assert "flake-registry = /etc/nix/flake-registry.json" in files["/etc/nix/nix.conf"]
    assert files["/home/alice/.config/nix/registry.json"] == "MINE\n"
    assert files["/etc/nix/registry.json"] == "SYSTEM\n"


@pytest.mark.parametrize("place", ["/home/alice/shop", "/home/alice/dotfiles"])
def test_no_registry_by_a_symlink_that_an_agent_can_have_made(machine: Machine, place: str) -> None:
    """The project's, or another one's that the user keeps configuration in."""
    machine.plant("~/.claudebox/instances/0123456789abcdef/project: /home/alice/dotfiles\\n\n~/diary: DIARY")
    machine.plant(f"{place}/registry.json -> /home/alice/diary")
    machine.plant(f"~/.config/nix/registry.json -> {place}/registry.json")
    mounts = nix_mounts(machine.host(), Nix("daemon", "", Origin.of_rule("nix")))
    assert not [mount for mount in mounts if b"DIARY" in mount.content]


def test_registry_by_a_symlink_of_the_users(machine: Machine) -> None:
    machine.plant("~/registry.json: MINE\n~/.config/nix/registry.json -> ../../registry.json")
    assert [mount for mount in machine.plan().mounts if mount.content == b"MINE\n"]


def test_config_has_no_end_of_includes(tmp_path: Path) -> None:
    assert read_config(plant(tmp_path, "/etc/nix/nix.conf: include nix.conf\\n")) is None


# The greeting, against a stand-in at the other end of a socket.


def words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


VERSION_TEXT = words(6) + b"2.26.3\0\0"
MAGIC = host_nix.DAEMON_HELLO


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Says these things, one after the other."""
    sayings: list[bytes] = []
    path = tmp_path / "socket"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    monkeypatch.setattr(host_nix, "SOCKET", str(path))
    monkeypatch.setattr(host_nix, "GREETING_SECONDS", 0.3)

    def answer() -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            for saying in sayings:
                connection.sendall(saying)
            connection.recv(64)
            if sayings[-1:] != [b""]:
                connection.recv(64)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    yield sayings
    thread.join(2)
    server.close()


@pytest.mark.parametrize(("flag", "trusts"), [(0, None), (1, True), (2, False), (3, None)])
def test_new_daemon_says_whether_it_trusts(stand_in: list[bytes], flag: int, trusts: bool | None) -> None:
    stand_in += [words(MAGIC, 1 << 8 | 38), VERSION_TEXT, words(flag)]
    assert ask_daemon() == Daemon(answers=True, trusts=trusts)


def test_old_daemon_does_not(stand_in: list[bytes]) -> None:
    stand_in += [words(MAGIC, 1 << 8 | 33), VERSION_TEXT]
    assert ask_daemon() == Daemon(answers=True, trusts=None)


@pytest.mark.parametrize(
    "said",
    [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", words(MAGIC), words(MAGIC, 1 << 8 | 38, 1 << 40), words(MAGIC)[:5]],
)
def test_nonsense_is_no_answer_and_does_not_hang(stand_in: list[bytes], said: bytes) -> None:
    stand_in += [said]
    assert ask_daemon() == Daemon(answers=False)


def test_nobody_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_nix, "SOCKET", str(tmp_path / "nothing"))
    assert ask_daemon() == Daemon(answers=False)


@pytest.mark.parametrize(
    ("copied", "copied_its_own", "outcome"),
    [
        ([False, False], True, CLOSED),
        ([True, False], True, OPEN),
        ([False, True], True, OPEN),
        ([None, True], None, OPEN),
        ([None, False], True, UNKNOWN),
        ([False, False], False, UNKNOWN),
        ([False, False], None, UNKNOWN),
        ([None, None], None, UNKNOWN),
    ],
)
def test_judgement(copied: list[bool | None], copied_its_own: bool | None, outcome: str) -> None:
    """Builds are closed only if nothing else can be the reason."""
    assert judge(copied, copied_its_own) == outcome
