"""An allowlist that grew is asked about; one that shrank, or that a wider tier covered, is not."""

from pathlib import Path

import pytest

from claudebox.consent import agreement, find_news
from claudebox.model import Plan
from consent.boxes import granted_anew, is_agreed
from hosts.machine import EVERYONE, TREES, Machine

pytestmark = pytest.mark.req("UX-02", "NAME-01")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path, environ={"TERM": "xterm"}).plant("/usr/bin/pasta*\n/usr/sbin/nft*")
    return machine.plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())


def listed(machine: Machine, *hosts: str) -> Plan:
    return machine.plan("--network", "allowlist", *(word for host in hosts for word in ("--allow", host)), "-p", "x")


def test_new_host_is_asked_about(machine: Machine) -> None:
    before, after = listed(machine, "a.example", "@npm"), listed(machine, "a.example", "b.example", "@npm")
    assert granted_anew(after, before) == ["allow b.example port 80,443"]
    assert is_agreed(before, after)


def test_new_port_is_asked_about(machine: Machine) -> None:
    assert not is_agreed(listed(machine, "a.example", "a.example:22"), listed(machine, "a.example"))
    assert not is_agreed(listed(machine, "a.example:*"), listed(machine, "a.example:22"))


def test_name_does_not_cover_all_below_the_same(machine: Machine) -> None:
    assert not is_agreed(listed(machine, "*.example.org"), listed(machine, "a.example.org"))


def test_wider_tier_covers_every_list(machine: Machine) -> None:
    inet, few = machine.plan("--network", "inet", "-p", "x"), listed(machine, "a.example", "@claude")
    assert granted_anew(few, inet) == []
    assert granted_anew(inet, few) == ["network inet"]


def test_yes_to_the_tier_by_its_old_name_is_not_remembered(machine: Machine) -> None:
    before = listed(machine, "a.example")
    old = frozenset("network names" if line == "network allowlist" else line for line in agreement(before))
    assert [grant.lines[0] for grant in find_news(before, (old,)).grants] == [("network", "allowlist")]
    assert not find_news(before, (frozenset(agreement(before)),)).amount
