"""Every Problem that claudebox can have is provoked here: the files beside this one have the tables, by topic."""

import ast
import importlib
import os
import sys
from pathlib import Path

import pytest

import claudebox
from claudebox.errors import CANNOT_EXECUTE, FAILED, NOT_FOUND, Problem
from claudebox.output import terminal
from errors.scene import Problems, Scene, Stage, provoke
from golden import Golden
from syntax import nodes

SOURCE = Path(claudebox.__file__).parent
HERE = Path(__file__)
TOPICS: dict[str, Problems] = {
    path.stem.removeprefix("test_"): importlib.import_module(f"errors.{path.stem}").PROBLEMS
    for path in sorted(HERE.parent.glob("test_*.py"))
    if path.name != HERE.name
}

STATUSES = {  # of those that are not FAILED
    NOT_FOUND: "claude-missing claude-missing-beside-the-npm-of-the-system claude-beside-the-path claude-named-missing "
    "agent-missing",
    CANNOT_EXECUTE: "claude-not-executable claude-on-path-not-executable claude-without-interpreter bwrap-gone "
    "agent-without-its-interpreter",
}


@pytest.mark.req("FAIL-01", "NAME-01")
@pytest.mark.parametrize(("topic", "name"), [(topic, name) for topic, problems in TOPICS.items() for name in problems])
def test_problem_says_exactly_this(topic: str, name: str, stage: Stage) -> None:
    status = next((status for status, names in STATUSES.items() if name in names.split()), FAILED)
    stage.check(topic, name, TOPICS[topic][name], status)


def test_every_golden_text_is_used(golden: Golden) -> None:
    assert golden.names() == {f"{topic}.txt" for topic in TOPICS}
    for topic, problems in TOPICS.items():
        assert golden.scenes(f"{topic}.txt") == set(problems)


def test_no_two_problems_have_one_name() -> None:
    names = [name for problems in TOPICS.values() for name in problems]
    assert len(names) == len(set(names))


def test_hint_cannot_forge_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show_problem(Problem("a\nerror: forged\x1b[2J", "b\n\x1b[2J"))
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.slow("it provokes all of them once more")
def test_every_problem_of_the_source_is_provoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new `Problem(…)` in the source needs a row here. The doctor tries the real machine and has its own tests."""
    made: set[tuple[str, int]] = set()
    init = Problem.__init__

    def remember(self: Problem, *values: object, **named: object) -> None:
        frame = sys._getframe(1)
        made.add((os.path.normpath(frame.f_code.co_filename), frame.f_lineno))
        init(self, *values, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Problem, "__init__", remember)
    for problems in TOPICS.values():
        for name, how in problems.items():
            root = tmp_path / name
            root.mkdir()
            provoke(Scene(root, monkeypatch), how)
    never = [
        f"{path.relative_to(SOURCE)}:{first}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name not in ("trial.py", "check.py")
        for first, last in constructions(path)
        if not any((str(path), line) in made for line in range(first, last + 1))
    ]
    assert never == [], never


def constructions(path: Path) -> list[tuple[int, int]]:
    """First and last line of every `Problem(…)` in a file."""
    calls = (node for node in nodes(path) if isinstance(node, ast.Call))
    return [
        (call.lineno, call.end_lineno or call.lineno)
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "Problem"
    ]
