"""Asking on the desktop: once for each host, not about what is kept out, and a yes counts from then on."""

from __future__ import annotations

from pathlib import Path

import pytest

from claudebox.allowed import Allowed
from claudebox.features.names.rules import NameList
from claudebox.features.names.server.asking import MOST_QUESTIONS, Asker
from claudebox.features.names.server.notes import Notes
from claudebox.features.names.server.refusal import Refusal
from claudebox.model import Origin
from patience import comes_true

pytestmark = pytest.mark.req("NAME-01")

TYPED = Origin.of_option("--allow")


def test_yes_counts_for_the_next_try() -> None:
    names, asked = NameList([]), list[str]()

    def says_yes(host: str, _: str) -> bool:
        asked.append(host)
        return not host.startswith("bad")

    notes = Notes("", None, Asker("", names, says_yes))
    for _ in range(2):
        for name in ("good.example", "bad.example"):
            notes.refused_lookup(name, 1)
        notes.not_made("git.example", 2222, Refusal("not in the list", is_lists=True))
        notes.not_made("private.example", 80, Refusal("leads to a private address"))
    assert comes_true(lambda: names.permits("git.example", 2222))
    assert asked == ["good.example", "bad.example", "git.example:2222"]
    assert names.permits("good.example", 443)
    assert not names.permits("good.example", 22)
    assert not names.knows("bad.example")
    assert not names.knows("no.example")


def test_agent_cannot_nag() -> None:
    asked: list[str] = []

    def says_no(host: str, _: str) -> bool:
        asked.append(host)
        return False

    asker = Asker("", NameList([Allowed("a.example", (80,), TYPED)]), says_no)
    for number in range(100):
        asker.about(f"x{number}.example", 0)
    assert comes_true(lambda: len(asked) == MOST_QUESTIONS)
    assert len(asker.asked) == MOST_QUESTIONS


@pytest.mark.parametrize(
    ("script", "is_allowed"), [("echo allow", True), ("echo no", False), ("echo allow; exit 1", False), ("", False)]
)
def test_program_is_believed_only_if_it_says_so(tmp_path: Path, script: str, is_allowed: bool) -> None:
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\necho "$DBUS_SESSION_BUS_ADDRESS $@" >{tmp_path}/said\n{script}\n')
    program.chmod(0o755)
    names = NameList([])
    Asker(str(program), names).answer("a.example", 0)
    assert names.permits("a.example", 443) == is_allowed
    said = (tmp_path / "said").read_text()
    assert said.startswith("unix:path=/run/user/")
    assert "A box wants to reach a.example" in said


def test_program_that_is_missing_says_no() -> None:
    names = NameList([])
    Asker("/nowhere/notify-send", names).answer("a.example", 443)
    assert not names.knows("a.example")
