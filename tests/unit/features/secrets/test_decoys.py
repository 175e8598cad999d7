"""Which names may hold secrets, and decoys that show none of them."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.features.secrets.decoys import make_decoy
from claudebox.features.secrets.table import GIT, KEY, LOOKS, SHAPE, SHELL, VALUES, WHOLE

pytestmark = pytest.mark.req("SEC-01")


def decoy(content: str, style: str, name: str) -> str | None:
    made = make_decoy(content.encode(), style, name)
    return None if made is None else made.decode()


def test_dotenv_keeps_keys_and_what_is_harmless() -> None:
    content = (
        "# old: sk-ant-old\nPORT=3000\nexport DEBUG=true\nNODE_ENV=production\nDB_CONNECTION=pgsql\nEMPTY=\n"
        'URL=postgres://shop:hunter2@db.corp:5432/shop?ssl=1\nAPI_KEY="sk-ant-aaaaaaaaaaaaaaaaaaaaaa" # prod\n'
        "PASSWORD=true-story\nPIN=1234\nTOKEN=${OTHER_TOKEN}\nMAIL=joe@corp.com\nDATA_DIR=/srv/data\n"
    )
    assert decoy(content, VALUES, ".env") == (
        "PORT=3000\nexport DEBUG=true\nNODE_ENV=production\nDB_CONNECTION=pgsql\nEMPTY=\n"
        'URL=postgres://shop:masked-by-claudebox@db.corp:5432/shop?ssl=1\nAPI_KEY="sk-ant-masked-by-claudebox"\n'
        "PASSWORD=masked-by-claudebox\nPIN=masked-by-claudebox\nTOKEN=${OTHER_TOKEN}\nMAIL=masked@masked.invalid\nDATA_DIR=/srv/data\n"
    )


@pytest.mark.parametrize(
    ("content", "style", "name"),
    [
        ("PORT=3000\nDEBUG=true\n# nothing else\n", VALUES, ".env"),
        ("", VALUES, ".env"),
        ("registry=https://npm.example/\n//npm.example/:_authToken=${NPM_TOKEN}\nalways-auth=true\n", LOOKS, ".npmrc"),
        ("-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n", KEY, "ca.pem"),
        ("PK\x03\x04 slides", KEY, "talk.key"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGx joe@example\n", KEY, "keys.txt"),
        ("settings.profile.title\nsettingsOfTheProfile2\n", KEY, "keys.txt"),
        ('{"password": "Passwort", "account": "Konto"}', SHAPE, "account.json"),
        ('[core]\n\tbare = false\n[remote "o"]\n\turl = https://git.example/x\n', GIT, "config"),
        ("use flake\nsource_url https://x.example/ sha256-XQzUAvL6pysIJnRJyR7uVpmUSZfc7LSgWQwq=\n", SHELL, ".envrc"),
        ("db:\n  password: ENC[AES256_GCM,data:x]\nsops:\n  version: 3\n", VALUES, "secrets.yaml"),
        ("$ANSIBLE_VAULT;1.1;AES256\n6162\n", VALUES, "secrets.yml"),
        (
            '{"mcpServers": {"x": {"command": "npx", "args": ["-y", "server"], "env": {"T": "${T}"}}}}',
            LOOKS,
            ".mcp.json",
        ),
    ],
)
def test_nothing_secret_is_no_reason_to_mask(content: str, style: str, name: str) -> None:
    assert decoy(content, style, name) is None


def test_of_what_is_too_long_nothing_is_shown() -> None:
    """The rest was not looked at. A long list of words is no bundle of certificates and keys."""
    assert make_decoy(b"PORT=1\n", VALUES, ".env", is_cut=True) == b"# masked-by-claudebox\n"
    assert make_decoy(b"port=1\n", LOOKS, "x.env", is_cut=True) == b"# masked-by-claudebox\n"
    assert make_decoy(b'{"a": 1', VALUES, "x.tfstate", is_cut=True) == b"{}\n"
    assert make_decoy(b"-----BEGIN CERTIFICATE-----\n", KEY, "x.pem", is_cut=True) == b"# masked-by-claudebox\n"
    assert make_decoy(b"some words\n", KEY, "allkeys.txt", is_cut=True) is None


def test_certificate_and_public_key_in_der_are_kept() -> None:
    certificate = b"0\x82\x02\xff0\x82\x01\xe7\xa0\x03\x02\x01\x02\x02\x14"
    public = b"0\x820\r\x06\x09*\x86H\x86\xf7\r\x01\x01\x01\x05\x00\x03\x82"
    assert make_decoy(certificate, KEY, "x.crt") is None
    assert make_decoy(public, KEY, "x.der") is None


def test_json_and_toml_stay_what_they_are() -> None:
    made = json.loads(decoy('{"a": [1, {"token": "x"}], "n": null, "big": 99999999}', VALUES, "x.tfstate") or "")
    assert made == {"a": [1, {"token": "masked-by-claudebox"}], "n": None, "big": 12345}
    made = tomllib.loads(decoy('[db]\nuser = "joe"\nports = [\n 1,\n]\nn = 5\n', VALUES, "secrets.toml") or "")
    assert made == {"db": {"user": "joe", "ports": [], "n": 5}}


def test_json_that_cannot_be_read_shows_nothing() -> None:
    assert decoy('{"a": "hunter2", // why\n}', VALUES, "credentials.json") == "{}\n"


def test_secret_that_is_a_key_is_not_kept() -> None:
    made = decoy('{"tokens": {"ghp_abcdefghijklmnopqrstuvwxyz": "joe", "dGhpcyBpcyBhIHNlY3JldA": 1}}', VALUES, "x.json")
    assert made is not None
    assert "ghp_a" not in made
    assert "dGhpc" not in made


# Secrets of every kind, in every place of every format: nothing of them may come through.

ALPHABET = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789"
secrets = st.builds(
    lambda core, before, after: f"{before}Zq{core}9{after}",
    st.text(ALPHABET, min_size=8, max_size=40),
    st.sampled_from(
        ["", "/", "$", "&", "*", "-", "sk-ant-", "Bearer ", "https://u:", "p=", "a:", "x #", "'", '"', "[", "{"]
    ),
    st.sampled_from(["", "=", "==", "@host/x", " b", "\\", ":", "'", '"', "}", ",", " # c"]),
)
keys = st.sampled_from(["KEY", "PASSWORD", "name", "db.url", "X-Header", "HOST", "a", "LEVEL", "user"])
LINES = [
    "{key}={value}",
    "export {key}={value}",
    '{key}="{value}"',
    "{key}='{value}'",
    '{key}="first\n{value}\nlast"',
    "# OLD={value}",
    "A=b\n# {value}",
    "PASSWORD=x # {value}",
    "{value}",
    "  {value}",
    "{key}: {value}",
    "- {value}",
    "- {key}: {value}",
    "{key}: |\n    {value}\n    more",
    "  {key}: >-\n      {value}",
    "{key} = ['{value}', '{value}']",
    "{key}: {{a: {value}}}",
    "{key}=-----BEGIN PRIVATE KEY-----\n{value}\n-----END PRIVATE KEY-----",
    "{key} = '''\n{value}\n'''",
    "{key}=a\\\n{value}",
]
NAMES = [".env", "secrets.yml", "secrets.toml", "credentials", "kubeconfig", "secrets.properties"]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(LINES), keys, secrets), min_size=1, max_size=6), st.sampled_from(NAMES))
def test_no_value_comes_through_lines(lines: list[tuple[str, str, str]], name: str) -> None:
    content = "\n".join(line.format(key=key, value=value) for line, key, value in lines) + "\n"
    made = decoy(content, VALUES, name)
    if made is None:
        pytest.fail(f"not masked: {content!r}")
    for _, _, value in lines:
        core = value[value.index("Zq") :][:8]
        assert core not in made, (content, made)


nested = st.recursive(
    secrets, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(keys, nested, min_size=1, max_size=4))
def test_no_value_comes_through_json(value: dict[str, object]) -> None:
    content = json.dumps(value, indent=1)
    made = decoy(content, VALUES, "x.json") or ""
    for place in range(len(content)):
        if content.startswith("Zq", place):
            assert content[place : place + 8] not in made


@pytest.mark.parametrize("style", [WHOLE, "a style of an older claudebox"])
@pytest.mark.parametrize("content", ["machine a.example login joe password hunter2", "\x30\x82 a key store", "text"])
def test_nothing_of_a_file_that_is_secret_as_a_whole_comes_through(content: str, style: str) -> None:
    assert decoy(content, style, "x") == "# masked-by-claudebox\n"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([VALUES, LOOKS, GIT, KEY, WHOLE, SHAPE, SHELL]), st.sampled_from(NAMES))
def test_any_content_makes_text_that_a_shell_can_write(content: bytes, style: str, name: str) -> None:
    made = make_decoy(content, style, name)
    assert made is None or (made.endswith(b"\n") and b"\0" not in made and made.decode())
