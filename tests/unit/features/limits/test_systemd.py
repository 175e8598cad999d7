"""Limits on memory, processes and processors: what is asked of systemd, and that nothing starts without them."""

import os
from pathlib import Path

import pytest

from claudebox.errors import Problem
from claudebox.features.limits import MEMORY, Limits
from claudebox.features.limits import systemd as launch
from claudebox.features.table import SETTINGS
from claudebox.model import Origin
from claudebox.settings import Amount, Word
from hosts.machine import SYSTEMD, Machine, debian
from saying import gather, parse
from shown import shell_command

pytestmark = pytest.mark.req("FAIL-01")

G = 1 << 30


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return debian(tmp_path, SYSTEMD)


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("memory", "4G", 4 * G),
        ("memory", "1.5g", 3 * G // 2),
        ("memory", "512M", G // 2),
        ("memory", "1073741824", G),
        ("pids", "500", 500),
        ("cpu", "2", 2_000_000),
        ("cpu", "1.5", 1_500_000),
        ("cpu", "0.25", 250_000),
    ],
)
def test_amounts(name: str, text: str, wanted: int) -> None:
    origin = Origin.of_option("--x")
    assert SETTINGS.by_name[name].type.parse(Word(text, origin), name) == Amount(text, wanted, origin)


@pytest.mark.parametrize("text", ["", "G", "4X", "-1G", "4 G", "٤G", "1e9", "infinity", "1.2.3G", "0", "0.0G", "1K"])
@pytest.mark.parametrize("name", ["memory", "pids", "cpu"])
def test_what_is_no_amount(name: str, text: str) -> None:
    with pytest.raises(Problem):
        SETTINGS.by_name[name].type.parse(Word(text, Origin.of_option("--x")), name)


def test_plan_has_them(machine: Machine) -> None:
    plan = machine.plan("--memory", "4G", "--pids", "500", "--cpu", "1.5")
    assert plan.get(Limits) == Limits("/usr/bin/busctl", 4 * G, 500, 1_500_000)
    assert [finding.text for finding in plan.findings if "limited" in finding.text] == [
        "memory of the box is limited to 4G",
        "pids of the box is limited to 500",
        "cpu of the box is limited to 1.5",
    ]


def test_no_limit_asks_nothing(machine: Machine) -> None:
    assert machine.plan().get(Limits) is None


@pytest.mark.parametrize("network", ["full", "inet"])
def test_command_to_paste_has_them(machine: Machine, network: str) -> None:
    machine.plant("/usr/bin/pasta*\n/usr/sbin/nft*")
    text = shell_command(machine.plan("--memory", "1G", "--pids", "50", "--cpu", "2", "--network", network))
    wanted = (
        "systemd-run --user --scope --quiet --collect -p MemoryMax=1073741824 -p MemorySwapMax=0 -p TasksMax=50 "
        "-p CPUQuota=200% -- \\\n"
    )
    assert text.count(wanted) == 1
    assert text.split(wanted)[1].startswith("env -i" if network == "full" else "/usr/bin/pasta")


def test_words_for_systemd() -> None:
    words = launch.request(Limits("/usr/bin/busctl", G, 50, 2_000_000), "x.scope", 4711, is_root=False)
    assert " ".join(words) == (
        "--user --quiet call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager "
        "StartTransientUnit ssa(sv)a(sa(sv)) x.scope fail 6 PIDs au 1 4711 CollectMode s inactive-or-failed "
        "MemoryMax t 1073741824 MemorySwapMax t 0 TasksMax t 50 CPUQuotaPerSecUSec t 2000000 0"
    )


def stand_in(tmp_path: Path, script: str) -> str:
    path = tmp_path / "busctl"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_refusal_of_systemd_is_shown(tmp_path: Path) -> None:
    busctl = stand_in(tmp_path, "echo 'Call failed: Access denied' >&2; exit 1")
    with pytest.raises(Problem, match="refuses to limit the box: Call failed: Access denied"):
        launch.put_into_force(Limits(busctl, G, 0, 0))


def test_only_what_the_kernel_says_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_group", lambda _: str(tmp_path))
    files = {"memory.max": str(G), "pids.max": "max", "cpu.max": "150000 100000"}
    for name, text in files.items():
        (tmp_path / name).write_text(f"{text}\n")
    limits = Limits(stand_in(tmp_path, "exit 0"), G, 50, 1_500_000)
    with pytest.raises(Problem, match=r"limit the box: pids\.max is"):
        launch.put_into_force(limits)
    (tmp_path / "pids.max").write_text("50\n")
    launch.put_into_force(limits)


@pytest.mark.parametrize(
    ("own", "projects", "wanted", "asks"),
    [
        ("", 'memory = "1G"', G, False),
        ('memory = "4G"', 'memory = "1G"', G, False),
        ('memory = "1G"', 'memory = "4G"', G, True),
    ],
)
def test_project_lowers_a_limit_and_never_raises_it(
    machine: Machine, own: str, projects: str, wanted: int, asks: bool
) -> None:
    machine.uid = os.getuid()
    (machine.root / "home/alice/.claudebox").mkdir()
    (machine.root / "home/alice/.claudebox/config.toml").write_text(own)
    (machine.root / "home/alice/shop/.claudebox.toml").write_text(projects)
    layers = gather(machine.host(), parse([]))
    memory = layers.settings[MEMORY]
    assert memory is not None
    assert memory.number == wanted
    assert layers.project is not None
    assert layers.project.is_undecided == asks
