"""Whatever is in a file, the answer is settings or a Problem with file and line: no traceback, no long wait."""

import random
import re
import time

import pytest

from claudebox.errors import Problem
from claudebox.output import terminal
from claudebox.settings import Statement
from claudebox.settings.documents import LARGEST_FILE_BYTES
from claudebox.settings.files import describe, said_in
from claudebox.text import WIDTH, width
from saying import parse_file

FILE = {False: "~/.claudebox/profiles/p.toml", True: "~/.claudebox/profiles/p.json"}
ROUNDS = 500
LONGEST_WAIT = 20  # seconds of processor for many bytes; a parser that goes astray needs minutes

GOOD_TOML = b"""\
# A profile with a bit of everything
name = "p"
description = 'a "good" one'
profiles = ["base", 'more']
network = "inet"
auth = "none"
publish = [8080, "9090:90"]
host_ports = [
    5432, # the database
]
hide = ["~/.cache/x", "$HOME/y", "${HOME}/z"]
drop_env = ["EDITOR"]
extra_env_passthrough = ["AWS_PROFILE"]
claude_args = ["--model", "opus", ""]
packages = ["jq"]
bwrap = "/opt/bwrap"

[env]
GREETING = \"\"\"gr\xc3\xbc\xc3\x9fe
und \\u00fc\"\"\"
EMPTY = ''

[[mounts]]
host = "~/notes"

[[mounts]]
host = "~/data"
sandbox = "/data"
mode = "rw"
optional = true
"""
GOOD_JSON = b"""\
{
  "name": "p", "description": "a \\"good\\" one",
  "profiles": ["base"],
  "network": "inet",
  "publish": [8080, "9090:90"],
  "host_ports": [5432],
  "hide": ["~/.cache/x", "$HOME/y"],
  "env": {"GREETING": "gr\xc3\xbc\xc3\x9fe \\u00fc", "EMPTY": ""},
  "mounts": [
    {"host": "~/notes"},
    {"host": "~/data", "sandbox": "/data", "mode": "rw", "optional": true}
  ]
}
"""
NASTY = (
    *(b"\0", b"\x1b[2J", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\n", b"\x85", "\u2028".encode()),
    *(b'"', b"'", b'"""', b"\\", b"\\ud800", b"[", b"]", b"[[", b"{", b"}", b"=", b":", b",", b".", b"#", b"${", b"~"),
    *(b"nan", b"1e999", b"null", b"true", b"9" * 5000, b"1979-05-27T07:32:00Z", b"25:61:61", b"[" * 2000, b"a." * 400),
    *("\U0001f600\u202e".encode(), b"[env]\n", b"[[mounts]]\n", b"network = 1\n"),
)


def answer(content: bytes, *, is_json: bool, is_project: bool = False) -> tuple[Statement, ...] | Problem:
    """What is said, or the Problem, which has to be a good one."""
    try:
        document = parse_file(content, FILE[is_json], is_json=is_json)
        assert describe(document).isprintable()
        return said_in(document.replace(is_project=is_project))
    except Problem as problem:
        check_problem(problem, content, FILE[is_json])
        return problem


def check_problem(problem: Problem, content: bytes, file: str) -> None:
    found = re.match(re.escape(file) + r":(\d+): .", problem.message, re.DOTALL)
    assert found, problem.message
    assert 1 <= int(found[1]) <= content.count(b"\n") + 1
    assert problem.hint
    assert len(problem.message) < 300


def mutated(content: bytes, chance: random.Random) -> bytes:
    first, second = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    ways = (
        content[:first] + content[second:],
        content[:second] + content[first:],
        content[:first] + chance.choice(NASTY) + content[first:],
        content[:first] + chance.randbytes(chance.randrange(1, 6)) + content[first:],
        content[first:second] + content[:first] + content[second:],
    )
    return chance.choice(ways)


@pytest.mark.parametrize(("content", "is_json"), [(GOOD_TOML, False), (GOOD_JSON, True)], ids=["toml", "json"])
def test_good_file_is_good(content: bytes, is_json: bool) -> None:
    for variant in (content, content.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + content, content.rstrip(b"\n")):
        assert isinstance(answer(variant, is_json=is_json), tuple)


@pytest.mark.req("EXT-03")
@pytest.mark.parametrize("seed", [0, *(pytest.param(more, marks=pytest.mark.slow("once more")) for more in (1, 2, 3))])
@pytest.mark.parametrize(("content", "is_json"), [(GOOD_TOML, False), (GOOD_JSON, True)], ids=["toml", "json"])
def test_mutated_file_gives_settings_or_a_problem(
    content: bytes, is_json: bool, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(seed)
    refused = 0
    for _ in range(ROUNDS):
        mutant = content
        for _ in range(chance.randrange(1, 5)):
            mutant = mutated(mutant, chance)
        result = answer(mutant, is_json=is_json, is_project=chance.random() < 0.2)
        if isinstance(result, Problem):
            refused += 1
            terminal.show_problem(result)
    assert refused > ROUNDS / 4
    shown = capsys.readouterr().err
    assert shown.replace("\n", "").isprintable()
    assert [line for line in shown.split("\n") if width(line) > WIDTH] == []


ENDLESS = (
    *(b"[", b"{", b'"', b"\\", b"#", b".", b",", b"\n", b"9", b"a.", b"a\n", b"[[a]]\n", b'"""', b"{a=", b'{"a":'),
    *(b"[1,", b'"a",', b"a=1\n", b"a.b.c.d.e.f=1\n", b"[a." + b"b." * 190 + b"c]\na=1\n"),
)


@pytest.mark.slow("long files are read")
@pytest.mark.parametrize("piece", ENDLESS, ids=repr)
def test_endless_file_takes_no_long_time(piece: bytes) -> None:
    for start in (b"", b"hide = [", b'hide = "', b'{"hide": [', b'{"hide": "'):
        content = (start + piece * LARGEST_FILE_BYTES)[:LARGEST_FILE_BYTES]
        for is_json in (False, True):
            began = time.process_time()
            answer(content, is_json=is_json)
            assert time.process_time() - began < LONGEST_WAIT


@pytest.mark.parametrize("is_json", [False, True], ids=["toml", "json"])
def test_line_of_a_megabyte_is_refused_at_once(is_json: bool) -> None:
    assert isinstance(answer(b'x = "' + b"a" * (1 << 20) + b'"', is_json=is_json), Problem)


@pytest.mark.parametrize("half", ["\\ud800", "\\udc80", "\\udfff", "\\ud800\\ud800", "\\ude00\\ud83d"])
@pytest.mark.parametrize(
    "text", ['{"hide": ["%s"]}', '{"env": {"A": "%s"}}', '{"env": {"%s": "a"}}', '{"claude_args": ["%s"]}', '{"%s": 1}']
)
def test_half_a_character_never_gets_through(text: str, half: str) -> None:
    """It would become a byte of its own, or fail when the box is started."""
    assert isinstance(answer((text % half).encode(), is_json=True), Problem)
