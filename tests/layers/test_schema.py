"""What a file says, as the settings that it stands for."""

import json

import pytest

from claudebox.errors import Problem
from claudebox.features.nix import PACKAGES
from claudebox.features.table import SETTINGS
from claudebox.model import RO, RW, Origin, Port
from claudebox.settings import EnvWish, MountWish, Statement, Word
from claudebox.settings.files import describe, said_in
from claudebox.settings.table import (
    AUTH,
    BWRAP_PATH,
    CLAUDE_ARGS,
    DROP_ENV,
    ENV,
    HIDES,
    HOST_PORTS,
    MOUNTS,
    NETWORK,
    PASS_ENV,
    PROFILE,
    PUBLISH,
)
from saying import parse_file

FILE = "~/.claudebox/profiles/aws.toml"

EVERYTHING = """\
name = "aws"
description = "Look at AWS, change nothing"
network = "inet"
publish = [8080,
  "9090:90"]

[[mounts]]
host = "~/notes"

[env]
AWS_REGION = "eu-central-1"
EMPTY = ""
LINES = "a\\nb"

[[mounts]]
mode = "rw"
sandbox = "/data/$USER"
optional = true
host = "${HOME}/data"
"""


def at(line: int) -> Origin:
    return Origin.of_file(FILE, line)


def said(text: str, *, is_project: bool = False) -> tuple[Statement, ...]:
    return said_in(parse_file(text.encode(), FILE, is_json=False, is_project=is_project))


@pytest.mark.req("EXT-03")
def test_everything_is_said_with_its_line() -> None:
    assert said(EVERYTHING) == (
        Statement(NETWORK, Word("inet", at(3))),
        Statement(PUBLISH, Port(8080, 8080, at(4))),
        Statement(PUBLISH, Port(9090, 90, at(5))),
        Statement(MOUNTS, MountWish(RO, "~/notes", "", at(7))),
        Statement(MOUNTS, MountWish(RW, "${HOME}/data", "/data/$USER", at(15), is_optional=True)),
        Statement(ENV, EnvWish("AWS_REGION", "eu-central-1", at(11))),
        Statement(ENV, EnvWish("EMPTY", "", at(12))),
        Statement(ENV, EnvWish("LINES", "a\nb", at(13))),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('profiles = ["a", "b"]', [Statement(PROFILE, Word("a", at(1))), Statement(PROFILE, Word("b", at(1)))]),
        ('hide = ["~/x"]', [Statement(HIDES, Word("~/x", at(1)))]),
        ('drop_env = ["A"]', [Statement(DROP_ENV, Word("A", at(1)))]),
        ('extra_env_passthrough = ["A"]', [Statement(PASS_ENV, EnvWish("A", None, at(1)))]),
        ('auth = "none"', [Statement(AUTH, Word("none", at(1)))]),
        ("host_ports = [5432]", [Statement(HOST_PORTS, Port(5432, 5432, at(1)))]),
        (
            'claude_args = ["-p", ""]',
            [Statement(CLAUDE_ARGS, Word("-p", at(1))), Statement(CLAUDE_ARGS, Word("", at(1)))],
        ),
        ('packages = ["jq"]', [Statement(PACKAGES, Word("jq", at(1)))]),
        ('bwrap = "/opt/bwrap"', [Statement(BWRAP_PATH, Word("/opt/bwrap", at(1)))]),
        ("hide = []\nmounts = []\n[env]", []),
        ("", []),
    ],
)
def test_each_key_says_its_setting(text: str, expected: list[Statement]) -> None:
    assert said(text) == tuple(expected)


@pytest.mark.req("EXT-03")
def test_json_says_the_same_as_toml() -> None:
    value = parse_file(EVERYTHING.encode(), FILE, is_json=False).value
    document = parse_file(json.dumps(value).encode(), FILE, is_json=True)
    assert {without_line(one) for one in said_in(document)} == {without_line(one) for one in said(EVERYTHING)}
    assert describe(document) == "Look at AWS, change nothing"


def without_line(one: Statement) -> Statement:
    return one.replace(value=one.value.replace(origin=Origin.of_file(FILE, 0)))


def test_every_key_of_the_table_is_understood() -> None:
    """Its type is what is complained about, not its name."""
    for key in SETTINGS.by_key:
        with pytest.raises(Problem, match="has to be"):
            said(f"{key} = 1979-05-27")


@pytest.mark.req("ENV-01", "SEC-01")
@pytest.mark.parametrize(
    "text",
    [
        'env.GITHUB_TOKEN = "x"',
        '[env]\nA = "ghp_0123456789012345678901234567890123456789"',
        'env = { A = "postgres://me:hunter2@db/x" }',
        'env.A = """\n-----BEGIN PRIVATE KEY-----"""',
    ],
)
def test_secret_does_not_belong_into_a_file(text: str) -> None:
    with pytest.raises(Problem, match="looks like a secret") as caught:
        said(text)
    assert "extra_env_passthrough" in caught.value.hint


def test_passed_variable_cannot_bring_a_value_along() -> None:
    with pytest.raises(Problem):
        said('extra_env_passthrough = ["GITHUB_TOKEN=x"]')


def test_dollar_in_what_is_no_path_is_just_that() -> None:
    assert said('claude_args = ["costs $5"]\nenv.A = "$"')
