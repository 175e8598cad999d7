"""Everything that can be wrong with a file, and what is then said."""

import pytest

from claudebox.errors import FAILED, Problem
from claudebox.output import terminal
from claudebox.settings.documents import LARGEST_FILE_BYTES
from claudebox.settings.files import describe, said_in
from claudebox.text import WIDTH, width
from golden import Golden
from saying import parse_file

TOML = "~/.claudebox/profiles/aws.toml"
JSON = "~/.claudebox/profiles/aws.json"
PROJECT = ".claudebox.toml"
FAKE_KEY = "sk-ant-" + "0123456789" * 3

IN_TOML: dict[str, str | bytes] = {
    "syntax": 'network = "inet"\nauth = none\n',
    "syntax-open-at-the-end": 'hide = ["~/a",\n\n',
    "syntax-far-right": "hide = [" + '"~/a", ' * 40 + "oops]",
    "syntax-with-a-secret": f'[env]\nOPENAI_API_KEY = "hunter2, {FAKE_KEY}\n',
    "syntax-control-character": "network = 'in\x00et'",
    "syntax-long-name": '"' + "a" * 500 + '" = { x = 1 }\n["' + "a" * 500 + '".y]',
    "repeated": 'network = "inet"\n\nnetwork = "none"\n',
    "repeated-in-one-line": 'env = { A = "1", A = "2" }',
    "repeated-table": '[env]\nA = "1"\n[env]\nB = "2"\n',
    "repeated-part": 'env.A = "1"\nenv = 3\n',
    "too-deep": "hide = " + "[" * 50_000,
    "too-deep-name": "a." * 25_000 + "b = 1",
    "too-long-number": "publish = [" + "9" * 5000 + "]",
    "too-large": b"# a line\n" * (LARGEST_FILE_BYTES // 9 + 1),
    "not-utf-8": 'network = "inet"\ndescription = "für alle"\n'.encode("latin-1"),
    "not-utf-8-but-16": 'network = "inet"\n'.encode("utf-16"),
    "unknown": 'netwrok = "inet"\n',
    "unknown-and-like-nothing": "[frobnicate]\nx = 1\n",
    "unknown-and-long": "x" * 300 + " = 1\n",
    "unknown-and-hostile": '"\\u001b[2J\\u202e" = 1\n',
    "unknown-in-mount": '[[mounts]]\nhost = "~/notes"\nsandboxx = "/n"\n',
    "type-text": "network = 3\n",
    "type-texts": 'hide = "~/.cache"\n',
    "type-text-in-texts": 'drop_env = [\n  "A",\n  1.5,\n]\n',
    "type-table": 'env = ["A=1"]\n',
    "type-text-in-table": "[env]\nPORT = 8080\n",
    "type-port": "host_ports = [\n  80,\n  true,\n]\n",
    "type-mounts": '[mounts]\nhost = "~/notes"\n',
    "type-mount": 'mounts = ["~/notes"]\n',
    "type-optional": '[[mounts]]\nhost = "~/notes"\noptional = "yes"\n',
    "type-description": "description = {}\n",
    "value-network": 'network = "wifi"\n',
    "value-secret": f'auth = "{FAKE_KEY}"\n',
    "value-port": "publish = [0]\n",
    "value-drop-env": 'drop_env = ["A B"]\n',
    "value-pass-env": 'extra_env_passthrough = ["A=1"]\n',
    "value-mode": '[[mounts]]\nhost = "~/notes"\nmode = "w"\n',
    "env-name": '[env]\n"A-B" = "1"\n',
    "env-secret": '[env]\nGITHUB_TOKEN = "hunter2"\n',
    "env-secret-in-one-line": f'env = {{ A = "1", B = "{FAKE_KEY}" }}\n',
    "setting-below-env": '[env]\nAWS_REGION = "eu-central-1"\nnetwork = "inet"\n',
    "setting-below-mount": '[[mounts]]\nhost = "~/notes"\nextra_env_passthrough = ["PGUSER"]\n',
    "host-missing": '[[mounts]]\nsandbox = "/n"\n',
    "empty": 'hide = [""]\n',
    "character": 'hide = ["a\\u0007b"]\n',
    "description-of-two-lines": 'description = """\none\ntwo"""\n',
}
IN_JSON: dict[str, str | bytes] = {
    "syntax": '{\n  "network": inet\n}\n',
    "empty-file": "",
    "open-at-the-end": '{\n  "network": "inet"\n',
    "no-object": '\n\n["network", "inet"]\n',
    "repeated": '{\n  "network": "inet",\n  "network": "none"\n}\n',
    "too-deep": "[" * 50_000,
    "too-long-number": '{"publish": [' + "9" * 5000 + "]}",
    "not-a-number": '{"publish": [NaN]}',
    "half-a-pair": '{"claude_args": ["\\ud800"]}',
    "nul": '{"env": {"A": "\\u0000"}}',
    "null": '{"network": null}',
    "type-mounts": '{"mounts": {"host": "~/notes"}}',
    "setting-inside-env": '{"env": {"network": "inet"}}',
    "env-secret": '{"env": {"DB_PASSWORD": "hunter2"}}',
}
IN_PROJECT: dict[str, str | bytes] = {
    "program": 'bwrap = "./bwrap"\n',
}
CASES = {
    **{f"toml-{name}": (content, TOML) for name, content in IN_TOML.items()},
    **{f"json-{name}": (content, JSON) for name, content in IN_JSON.items()},
    **{f"project-{name}": (content, PROJECT) for name, content in IN_PROJECT.items()},
}


def provoke(name: str) -> Problem:
    content, file = CASES[name]
    content = content if isinstance(content, bytes) else content.encode()
    with pytest.raises(Problem) as caught:
        said_in(parse_file(content, file, is_json=file == JSON, is_project=file == PROJECT))
    return caught.value


def shown_by(problem: Problem, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    terminal.show_problem(problem)
    return capsys.readouterr().err


@pytest.mark.req("EXT-03")
@pytest.mark.parametrize("name", CASES)
def test_message_says_exactly_this(name: str, golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    problem = provoke(name)
    golden.check_scene(golden_file(name), name, shown_by(problem, capsys))
    assert problem.status == FAILED


def test_message_fits_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    for name in CASES:
        text = shown_by(provoke(name), capsys)
        assert text.replace("\n", "").isprintable()
        assert [line for line in text.splitlines() if width(line) > WIDTH] == []


@pytest.mark.req("UX-01")
@pytest.mark.parametrize("name", [name for name in CASES if "secret" in name])
def test_message_tells_no_secret(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown_by(provoke(name), capsys)
    assert "hunter2" not in text
    assert FAKE_KEY[:20] not in text


def golden_file(name: str) -> str:
    return "in-json.txt" if CASES[name][1] == JSON else "in-toml.txt"


def test_every_golden_text_is_used(golden: Golden) -> None:
    files = {golden_file(name) for name in CASES}
    assert golden.names() == files
    assert set().union(*(golden.scenes(file) for file in files)) == set(CASES)


@pytest.mark.parametrize("text", ["description = 3", 'description = "a\\u001bb"'])
def test_description_is_checked_wherever_it_is_asked_for(text: str) -> None:
    with pytest.raises(Problem):
        describe(parse_file(text.encode(), TOML, is_json=False))
