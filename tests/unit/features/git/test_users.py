"""Which settings of the user's own git come along, and which lists of ignored files."""

import pytest

from claudebox.features.git import KEYS, NAMED, carry
from claudebox.host.git import parse_config

# What a hostile or a careless configuration may say: a program, a path, an address, a token, a line of its own.
STRANGE = (
    "!sh",
    "/usr/bin/evil",
    "~/evil",
    "../evil",
    "https://u:p@example.org",
    "a b",
    "x\n[core]\n\tpager = evil",
    "",
)


@pytest.mark.req("WORK-01", "SEC-03")
def test_key_takes_only_what_its_form_allows() -> None:
    for key in (*KEYS, *NAMED):
        assert carry([(key, value) for value in STRANGE]) == []
        for value in STRANGE:
            assert carry([(key, value)]) == []


def test_last_value_counts() -> None:
    pairs = parse_config(
        "[pull]\n\trebase = true\n[pull]\n\trebase = merges\n[core]\n\teol = lf\n[core]\n\teol = /evil\n"
    )
    assert carry(pairs) == [("pull.rebase", "merges")]


@pytest.mark.parametrize(
    ("value", "comes"),
    [
        ("checkout", True),
        ("log --graph --pretty=format:'%h %s' --all", True),
        ("commit --amend --no-edit", True),
        ("!git status", False),
        ("-c core.sshCommand=evil fetch", False),
        ("clone -c http.extraHeader=x", False),
        ("clone --config=http.extraHeader=x", False),
        ("fetch --upload-pack=/evil", False),
        ("push https://u:p@example.org/x", False),
        ("push ghp_0123456789abcdefghijABCDEFGHIJ012345", False),
        ("log\n[core]", False),
        ("", False),
    ],
)
def test_alias_is_a_command_of_git_without_a_shell(value: str, comes: bool) -> None:
    assert bool(carry([("alias.x", value)])) is comes
