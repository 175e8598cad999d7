"""`--setup` and `--prove`: the strict box is that of the profile, and a silent probe proves nothing."""

import json
import subprocess
import tomllib

import pytest

from claudebox.commands import prove
from claudebox.commands.prove.canaries import Canaries
from claudebox.commands.setup import PARTS, lines_for
from claudebox.errors import Problem
from claudebox.settings.files import shipped_profiles


def test_profile_and_trial_mean_the_same_box() -> None:
    profile = tomllib.loads(shipped_profiles()["strict"].decode())
    del profile["description"]
    assert profile == {part.key: part.value for part in PARTS}


def test_parts_that_work_are_written_one_by_one() -> None:
    assert lines_for(list(PARTS)) == ['profiles = ["strict"]']
    assert lines_for([PARTS[2]]) == ['review = "on"']


# What `--prove` believes of its probe.


def test_probe_that_is_silent_about_an_attack_is_no_proof() -> None:
    canaries = Canaries()
    canaries.add("files", "first", "read")
    canaries.add("files", "second", "read")

    def answering(*ids: str) -> dict[str, str]:
        said = prove.MARK + json.dumps(dict.fromkeys(ids, ""))
        return prove._found(subprocess.CompletedProcess([], 0, said, ""), canaries)

    assert answering("0", "1") == {"0": "", "1": ""}
    with pytest.raises(Problem):
        answering("0")
