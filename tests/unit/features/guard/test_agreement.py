"""What is guarded follows from the files that there are: it is nothing new to agree to, unless somebody opens it."""

from __future__ import annotations

from pathlib import Path

import pytest

from claudebox.agreement import News, agreement, find_news
from claudebox.model import Plan
from hosts.machine import EVERYONE, TREES, Machine

pytestmark = pytest.mark.req("UX-02", "INST-02")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())


def since(plan: Plan, *agreed: Plan) -> News:
    return find_news(plan, tuple(frozenset(agreement(one)) for one in agreed))


def test_new_guard_asks_nothing(machine: Machine) -> None:
    before = machine.plan()
    machine.plant("~/shop/.git/hooks/pre-commit*\n~/shop/lib/.envrc\n~/shop/.vscode/tasks.json")
    assert since(machine.plan(), before).amount == 0


def test_guarded_file_that_is_gone_asks_nothing(machine: Machine) -> None:
    machine.plant("~/shop/.envrc")
    before = machine.plan()
    (machine.root / "home/alice/shop/.envrc").unlink()
    assert since(machine.plan(), before).amount == 0


def test_guard_that_is_opened_is_new_and_grave(machine: Machine) -> None:
    machine.plant("~/shop/.vscode/tasks.json")
    closed, opened = machine.plan(), machine.plan("--writable", ".vscode")
    assert since(opened, closed).is_grave
    assert since(opened, opened).amount == 0
    assert since(closed, opened).amount == 0
    machine.plant("~/shop/.vscode/more.json")
    assert since(machine.plan("--writable", ".vscode"), opened).amount == 0


def test_opened_part_is_new_and_grave(machine: Machine) -> None:
    machine.plant("~/shop/.vscode/tasks.json")
    opened = machine.plan("--writable", ".vscode/tasks.json")
    assert since(opened, machine.plan()).is_grave


def test_hidden_file_that_is_only_guarded_now_is_noticed(machine: Machine) -> None:
    """The mount that guards it shows it: it must not pass for the one that hid it."""
    machine.plant("~/shop/.envrc\n~/shop/lib/.envrc")
    for path in (".envrc", "lib"):
        news = since(machine.plan(), machine.plan("--hide", path))
        assert news.lost == (("without", f"/home/alice/shop/{path}"),)


def test_read_only_directory_that_is_only_pinned_now_is_noticed(machine: Machine) -> None:
    machine.plant("~/shop/lib/.envrc")
    news = since(machine.plan(), machine.plan("--mount-ro", "/home/alice/shop/lib"))
    assert news.lost == (("read-only", "/home/alice/shop/lib"),)
