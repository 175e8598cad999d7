"""The strict box, as `--setup` tries it, is the one of the profile."""

from __future__ import annotations

import tomllib

from claudebox.settings.files.profiles import shipped_profile
from claudebox.setup import PARTS, _reason, lines_for


def test_profile_and_trial_mean_the_same_box() -> None:
    profile = tomllib.loads((shipped_profile("strict") or b"").decode())
    del profile["description"]
    assert profile == {part.key: part.value for part in PARTS}


def test_parts_that_work_are_written_one_by_one() -> None:
    assert lines_for(list(PARTS)) == ['profiles = ["strict"]']
    assert lines_for([PARTS[2]]) == ['review = "on"']


def test_reason_is_the_message_alone() -> None:
    said = "claudebox 0.1.0\nerror: there is\n       none\n\nhint: look\n"
    assert _reason(said) == "there is none"
    assert _reason("bwrap: no\n") == "bwrap: no"
    assert _reason("") == "it failed without a word"
