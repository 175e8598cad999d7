"""What an agent can plant as the project's file, or beside it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from claudebox.model import FROM_HOST
from claudebox.settings import PROJECT_FILE
from claudebox.settings.table import HIDES
from hosts.machine import Machine
from layers.files import DECISIONS, STATE, WISHES, answer, layers, refusal, says


def symlink_to_a_file(path: Path) -> None:
    (path.parent / "other.toml").write_text(WISHES)
    path.symlink_to("other.toml")


def symlink_to_a_trusted_file(path: Path) -> None:
    path.symlink_to("/home/alice/other/.claudebox.toml")


def symlink_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.req("EXT-01", "SEC-01", "FAIL-01")
@pytest.mark.parametrize(
    "plant", [symlink_to_a_file, symlink_to_a_trusted_file, symlink_to_a_device, dangling, fifo, directory]
)
def test_only_a_plain_file_is_read(machine: Machine, plant: Callable[[Path], None]) -> None:
    says(machine, WISHES, "other")
    plant(machine.root / "home/alice/shop" / PROJECT_FILE)
    assert refusal(machine).message == f"/home/alice/shop/{PROJECT_FILE} is not a plain file that can be read"


@pytest.mark.slow("megabytes are read")
@pytest.mark.req("EXT-01", "FAIL-01")
@pytest.mark.parametrize(
    "content",
    [
        b"x" * (1 << 21),
        b'hide = ["a"]\n' * 4_000,
        b"\0" * 1000,
        b"[" * 60_000,
        b"hide = [" + b'"a",' * 15_000 + b"]",
        b"mounts = [" + b'{host="a"},' * 5_000 + b"]",
        b"a." * 30_000,
        b'hide = ["' + b"$A" * 30_000 + b'"]',
    ],
    ids=["long", "repeated", "nul", "nested", "hides", "mounts", "dotted", "variables"],
)
def test_huge_file_is_refused(machine: Machine, content: bytes) -> None:
    says(machine, content)
    assert PROJECT_FILE in refusal(machine).message


@pytest.mark.req("EXT-01", "FAIL-01")
def test_many_lines_are_no_trouble(machine: Machine) -> None:
    says(machine, "\n" * 50_000 + 'hide = [".env"]')
    assert layers(machine).settings[HIDES][0].origin.shown == f"{PROJECT_FILE}:50001"


@pytest.mark.req("EXT-01", "SEC-01")
def test_file_of_the_directory_above_does_not_count(machine: Machine) -> None:
    says(machine, WISHES, ".")
    says(machine, "broken [", "shop/sub")
    assert layers(machine).project is None


@pytest.mark.req("EXT-01", "SEC-01")
@pytest.mark.parametrize("host", ["data", "./data", "data/", "~/shop/data", "$HOME/shop/data/x"])
def test_agreed_mount_cannot_be_turned_into_another(machine: Machine, host: str) -> None:
    """The yes is to the words of the file. What they mean must not be the agent's choice."""
    machine.plant("~/private/x: diary")
    says(machine, f'mounts = [{{ host = "{host}", sandbox = "/opt/data" }}]')
    answer(machine, granted=True)
    assert "/opt/data" in {mount.path for mount in machine.plan().mounts}
    (machine.root / "home/alice/shop/data").rename(machine.root / "home/alice/shop/old")
    (machine.root / "home/alice/shop/data").symlink_to("/home/alice/private")
    assert "a symlink that an agent can change" in refusal(machine).message


@pytest.mark.req("EXT-01", "SEC-01")
def test_host_and_sandbox_are_never_one_name(machine: Machine) -> None:
    machine.plant("~/private/x: diary\n~/shop/data:/opt/data -> ~/private")
    says(machine, 'mounts = [{ host = "data", sandbox = "/opt/data" }]')
    answer(machine, granted=True)
    assert [mount.source for mount in machine.plan().mounts if mount.path == "/opt/data"] == ["/home/alice/shop/data"]
    assert "/home/alice/private" not in {mount.source for mount in machine.plan().mounts}


@pytest.mark.req("EXT-01", "SEC-01")
@pytest.mark.parametrize("place", ["~/.claudebox", "~/.claudebox/decisions", "~/.claudebox/profiles"])
@pytest.mark.parametrize("option", ["--mount-ro", "--mount-rw"])
def test_memory_cannot_be_mounted(machine: Machine, place: str, option: str) -> None:
    machine.plant("~/.claudebox/decisions: {}\n~/.claudebox/profiles/a.toml: x")
    assert "secret" in refusal(machine, option, place).message


@pytest.mark.req("EXT-01", "SEC-01")
def test_memory_is_in_no_mount(machine: Machine) -> None:
    machine.plant("~/.claudebox/decisions: {}")
    shown = [mount.source for mount in machine.plan().mounts if mount.kind in FROM_HOST]
    assert not any(f"/{STATE}/{DECISIONS}".startswith(f"{source}/") for source in shown)
