"""Whatever is counted is called as one thing is called, if it is one."""

import pytest

from claudebox.commands.prove import HELD, UNTESTED, Result, report_text
from claudebox.commands.prove.canaries import KERNEL, Trial
from claudebox.features.broker.credential import limits_text
from claudebox.model import Trace
from claudebox.overlay.changes import ADDED, DELETED, DIRECTORY, MODE, Change
from claudebox.overlay.comparison import Leftover
from claudebox.overlay.screen import MOST_LINES, Row, View, counts, summary
from claudebox.servers.broker.policy import Refusal
from claudebox.servers.broker.usage import Allowance, Meter
from claudebox.text import Style, counted

PLAIN = Style(colour=False)
VIEW = View("/p", "/h", PLAIN)


@pytest.mark.parametrize(("number", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (21, "21 files")])
def test_things_are_counted(number: int, text: str) -> None:
    assert counted(number, "file") == text


def test_thing_may_have_a_plural_of_its_own() -> None:
    assert [counted(number, "directory", "directories") for number in (1, 2)] == ["1 directory", "2 directories"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([Change("a", MODE, DIRECTORY)], "1 mode of a directory"),
        ([Change("a", MODE, DIRECTORY), Change("b", MODE, DIRECTORY)], "2 modes of directories"),
        ([Change("a", ADDED, DIRECTORY)], "1 directory"),
        ([Change("a", ADDED, DIRECTORY), Change("b", ADDED, DIRECTORY)], "2 directories"),
    ],
)
def test_directories_of_a_review(changes: list[Change], text: str) -> None:
    assert counts(changes) == text


@pytest.mark.parametrize(("number", "text"), [(1, "old/ (1 file)"), (2, "old/ (2 files)")])
def test_deleted_files_of_a_review(number: int, text: str) -> None:
    assert text in summary("1", [Change("old", DELETED, DIRECTORY, gone=number)], (), PLAIN)


@pytest.mark.parametrize(("number", "text"), [(1, "… 1 more line\n"), (2, "… 2 more lines\n")])
def test_lines_that_are_left_out(number: int, text: str) -> None:
    assert VIEW.contents([left(b"x\n" * (MOST_LINES + number))]).endswith(text)


def left(content: bytes) -> Row:
    return Row((Leftover("new", "/p/.envrc", "direnv runs it", new=Trace((1,), content, 0o644)),))


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Allowance(requests=1), "used up its 1 request ("),
        (Allowance(requests=2), "used up its 2 requests ("),
        (Allowance(streams=1), "1 request is under way"),
        (Allowance(streams=2), "2 requests are under way"),
    ],
)
def test_limits_of_the_broker(limits: Allowance, text: str) -> None:
    meter = Meter(limits, "")
    for _ in range(limits.requests or limits.streams):
        meter.admit()
    with pytest.raises(Refusal) as refusal:
        meter.admit()
    assert text in str(refusal.value.message)


def test_limits_of_the_broker_in_the_audit() -> None:
    assert [limits_text((("requests", number),)) for number in (1, 2)] == ["1 request", "2 requests"]


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1 attack failed outside of the box as well: "), (2, "2 attacks failed outside of the box as well: ")],
)
def test_attacks_that_prove_nothing(number: int, text: str) -> None:
    trial = Trial("id", KERNEL, "an attack", "probe", {})
    results = [Result(trial, HELD, ""), *[Result(trial, UNTESTED, "")] * number]
    assert text in report_text("a box", results, "/h", PLAIN)
