"""Packages: what is kept of what Nix said, and what it means for the box and for the user."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudebox.consent import agreement, find_news
from claudebox.features.nix import PACKAGES, Package, packages_of
from claudebox.features.nix.packages import (
    PACKAGE,
    find_meaning,
    give_up,
    grant,
    is_store_path,
    plan_packages,
    read_record,
    record_lines,
    store_name,
    to_resolve,
)
from claudebox.model import Finding
from claudebox.output.audit import news_text
from claudebox.plan import make_plan
from claudebox.settings import Settings, Word
from claudebox.state import State, memory
from claudebox.text import Style
from hosts.machine import EVERYONE, TREES, Machine
from saying import gather, parse
from unit.nix_machine import GLIBC, HASH, HELLO, HOME, SAID, make_machine, planned

pytestmark = pytest.mark.req("EXT-04")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return make_machine(tmp_path)


def keep(machine: Machine, reference: str = "nixpkgs#hello", *, meaning: str = "") -> Path:
    """As if Nix had been asked before."""
    host = machine.plant(f"{HELLO}/bin/hello*").host()
    file = machine.root / State(host.person.home).package(reference).lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = record_lines(reference, meaning or find_meaning(host), [HELLO], [GLIBC, HELLO])
    file.write_bytes(memory.write(PACKAGE, lines))
    return file


def resolved(machine: Machine, *names: str) -> tuple[Package, ...]:
    host, request = machine.host(), parse([word for name in names for word in ("--package", name)])
    return plan_packages(host, gather(host, request).settings, None)


def test_answer_is_recalled(machine: Machine) -> None:
    keep(machine)
    packages = resolved(machine, "hello", "nixpkgs#hello")
    assert packages == (Package("nixpkgs#hello", (HELLO,), (GLIBC, HELLO), SAID),)
    assert to_resolve(packages) == ()


@given(st.data())
def test_damaged_answer_is_none(data: st.DataObject) -> None:
    whole = memory.write(PACKAGE, record_lines("nixpkgs#hello", "meaning", [HELLO], [GLIBC, HELLO]))
    assert read_record(memory.read(whole, PACKAGE), "nixpkgs#hello", "meaning", SAID) is not None
    start = data.draw(st.integers(0, len(whole) - 1))
    cut = data.draw(st.integers(1, len(whole) - start))
    damaged = whole[:start] + data.draw(st.binary(max_size=3)) + whole[start + cut :]
    found = read_record(memory.read(damaged, PACKAGE), "nixpkgs#hello", "meaning", SAID)
    assert found is None or all(map(is_store_path, (*found.paths, *found.closure)))
    assert read_record(memory.read(whole[:-cut], PACKAGE), "nixpkgs#hello", "meaning", SAID) is None


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/nix/store", "/nix/store/", f"{HELLO}/bin", f"/nix/store/{HASH}-", f"/nix/store/{HASH}", HASH),
        *(f"/home/alice/{HASH}-hello", f"/nix/store/{'e' * 32}-hello", f"/nix/store/{HASH}-a:b", f"{HELLO}\n"),
        *(f"/nix/store/../home/{HASH}-x", f"/nix/store/{HASH}-a b", f"/nix/store/{HASH[1:]}-hello"),
    ],
)
def test_nothing_else_passes_for_a_store_path(path: str) -> None:
    assert is_store_path(HELLO)
    assert not is_store_path(path)
    assert store_name(path) == path


def test_programs_come_after_the_users_path_and_before_the_system(machine: Machine) -> None:
    keep(machine)
    machine.plant("~/.claudebox/config.toml: path = ['~/bin']")
    (path,) = (one.value for one in planned(machine, "hello").environment if one.name == "PATH")
    first, second, third, *_ = [place for place in path.split(":") if place != f"{HOME}/.local/bin"]
    assert (first, second) == (f"{HOME}/bin", f"{HELLO}/bin")
    assert third.startswith("/usr/")


def test_unresolved_package_is_noted_and_not_on_the_path(machine: Machine) -> None:
    plan = planned(machine, "hello")
    assert "store" not in next(one.value for one in plan.environment if one.name == "PATH")
    assert [finding.subject for finding in plan.findings if "at the start" in finding.text] == ["hello"]


def test_failed_package_is_left_out_with_its_reason(machine: Machine) -> None:
    keep(machine)
    host, request = machine.host(), parse(["--run", "x"])
    settings = Settings().having(PACKAGES, (Word("hello", SAID), Word("nosuch", SAID)))
    left = give_up(settings, {"nixpkgs#nosuch": "it is not there"})
    plan = make_plan(host, request, left)
    assert [package.reference for package in packages_of(plan)] == ["nixpkgs#hello"]
    assert Finding(Finding.NOTE, "nosuch", "not in the box: it is not there") in plan.findings


def test_host_without_nix_works_without_packages(tmp_path: Path) -> None:
    machine = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    assert packages_of(machine.plan()) == ()


@pytest.mark.req("UX-02")
def test_new_package_is_shown_as_new_and_another_version_is_not(machine: Machine) -> None:
    keep(machine)
    without, with_hello = planned(machine), planned(machine, "hello")
    news = find_news(with_hello, (frozenset(agreement(without)),))
    assert [grant.lines[0] for grant in news.grants] == [("package", "nixpkgs#hello")]
    assert not news.is_grave
    new = news_text(with_hello, news, Style(False)).removeprefix("New since you agreed")
    assert new.split() == ["--package", "hello", "(hello-2.12)"]
    newer = packages_of(with_hello)[0].replace(paths=(GLIBC,))
    assert grant(newer).lines == grant(packages_of(with_hello)[0]).lines
