"""The strict box, as `--setup` tries it, is the one of the profile."""

from __future__ import annotations

import tomllib

from claudebox.commands.setup import PARTS, lines_for, problem_in
from claudebox.settings.files import shipped_profiles


def test_profile_and_trial_mean_the_same_box() -> None:
    profile = tomllib.loads(shipped_profiles()["strict"].decode())
    del profile["description"]
    assert profile == {part.key: part.value for part in PARTS}


def test_parts_that_work_are_written_one_by_one() -> None:
    assert lines_for(list(PARTS)) == ['profiles = ["strict"]']
    assert lines_for([PARTS[2]]) == ['review = "on"']


def test_refusal_is_the_message_and_its_hint() -> None:
    said = "claudebox 0.1.0\nerror: there is\n       none\n\nhint: look\n      or not\n"
    found = [problem_in(text) for text in (said, "error: none\n", "bwrap: no\n", "")]
    assert [(one.message, one.hint.partition("\n")[0]) for one in found] == [
        ("there is none", "look"),
        ("none", ""),
        ("bwrap: no", ""),
        ("it failed without a word", ""),
    ]
