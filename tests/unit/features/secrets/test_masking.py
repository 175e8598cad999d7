"""Masking by spans: no secret comes through, in whichever syntax; the rest stays; nobody can test a guess."""

import json
import ssl
import subprocess
import time
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.features.secrets import masking
from claudebox.features.secrets.masking import Decoy, Masker, may_hold_secret
from claudebox.features.secrets.private_keys import BLOCKS
from claudebox.features.secrets.table import ALL, CONTENT, TELLING

pytestmark = pytest.mark.req("MASK-01")

SECRET = "hunter2Zq"
STRONG = "q7Rt2Zx9Lm4Vb8Np3Kc6Wd1Hs5Jf0Gy"
HOWS = (ALL, TELLING, CONTENT)


def masker(key: bytes = b"k" * 32) -> Masker:
    return Masker(key)


def masked(text: str, how: str = ALL, path: str = ".env") -> str:
    made = masker().mask(text.encode(), how, path)
    return text if made is None else made.content.decode()


# What a key, a shape or a place says is secret, in files that are masked gently.
TELLING_CASES = [
    ("x.env", "DB_PASS=@"),
    ("x.env", "PASSWORD :@"),
    ("x.env", "password\t@"),
    ("x.env", "PASSWORD=\n@"),
    ("x.env", 'PASSWORD="""\n@\n"""'),
    ("x.env", "A=1;PASSWORD=@"),
    ("x.env", "A=1 PASSWORD=@"),
    ("x.env", "; PASSWORD=@"),
    ("x.env", "URL=https://@@x.example/"),
    ("x.env", "URL=https://x.example/?a=b&sig=@"),
    ("x.env", "URL=redis://:@@x.example/"),
    ("x.env", "URL=postgres://u:a/@@db/x"),
    ("x.env", "DSN=user:@@tcp(db:3306)/x"),
    ("x.env", "DSN=host=db password=@ user=x"),
    ("x.env", "HOOK=https://hooks.slack.com/services/T0/B0/@"),
    ("a.yml", "password:\n  - @"),
    ("a.yml", "password: >-\n  @"),
    ("a.yml", "password: !secret @"),
    ("a.yml", "password: |\n  @=="),
    ("a.yml", "users:\n  - {name: a, password: @}"),
    ("a.yml", 'args: ["--password", "@"]'),
    ("a.yml", "env:\n- name: TOKEN\n  value: @"),
    ("a.json", '{"a": {"password": ["@"]}}'),
    ("a.json", '{"x": "{\\"password\\": \\"@\\"}"}'),
    ("a.json", '{"password": {"value": "@"}}'),
    ("a.json", '// c\n{"a":1,"password":\n"@",}'),
    ("a.json", '{"password": "\\ud800@"}'),
    ("a.toml", '[tokens]\ngithub = "@"'),
    ("a.toml", "password = '''\n@'''"),
    (".npmrc", "//r.example/:_auth=@"),
    ("redis.conf", "requirepass @"),
    ("x.http", "Authorization: Bearer @"),
    ("application.properties", "db.password \\\n  = @"),
    ("application.properties", "a.url=jdbc:mysql://db/x?user=a&password=@"),
    ("appsettings.json", '{"ConnectionStrings":{"a":"Server=x;Pwd=@;"}}'),
    ("terraform.tfvars", "db_password = <<EOF\n@\nEOF"),
    ("inventory.ini", "host ansible_user=a ansible_password=@"),
    ("wg0.conf", "PrivateKey=@"),
    (".envrc", "export TOKEN=$'a\\'@'"),
    (".envrc", "TOKEN=$(echo @ | base64 -d)"),
    (".envrc", "export TOKEN=${TOKEN:-@}"),
    (".envrc", "# TOKEN=@; cat <<EOF"),
    (".envrc", "cat <<'EOF' >x\nTOKEN=@\nEOF"),
    (".envrc", "set -x TOKEN @"),
    (".envrc", "curl -u joe:@ x"),
    ("wp-config.php", "define( 'DB_PASSWORD' , '@' );"),
    ("x.php", "'password' => env('DB_PASSWORD', '@'),"),
    ("x.py", "SECRET_KEY = os.environ.get('X') or '@'"),
    ("x.py", "SECRET_KEY: str = b'@'"),
    ("x.py", "SECRET_KEY = (\n    'a' '@'\n)"),
    ("x.xml", "<r><x:password xmlns:x='y'><![CDATA[@]]></x:password></r>"),
    ("x.xml", "<r><password><!-- old -->@</password></r>"),
    ("x.xml", '<r><add key="Password" value="@"/></r>'),
    ("x.xml", "<r><key>API_KEY</key>\n<string>@</string></r>"),
    ("x.xml", '<r><property name="connection.password">@</property></r>'),
    ("x.ovpn", "<auth-user-pass>\njoe\n@\n</auth-user-pass>"),
    ("a.json", '{"args": ["--password", "@"]}'),
]


@pytest.mark.parametrize("how", [ALL, TELLING])
@pytest.mark.parametrize("end", ["", "\r\nname=x\r\n"])
def test_no_secret_comes_through(end: str, how: str) -> None:
    for name, text in TELLING_CASES:
        content = text.replace("@@", f"{SECRET}@").replace("@", SECRET, text.count("@@") < 1) + end
        for code in ("utf-8", "utf-16", "latin-1"):
            made = masker().mask(f"{content}\né".encode(code), how, name)
            shown = made.content.decode(code) if made else content
            assert (text, SECRET in shown, len(shown)) == (text, False, len(content) + 2)


@pytest.mark.parametrize(
    "text",
    [
        "POSTGRES_PASSWORD: correcthorse",
        "password: |\n  correcthorse\n  correct",
        "password = my secret pass",
        'define("DB_PASSWORD", "correcthorse");',
        "url: postgres://joe:correcthorse@db/x",
        '{"ApiKey": "\\u0063\\u006f\\u0072\\u0072\\u0065\\u0063\\u0074"}',
        "password: 'it''s correct'",
        "password: !!str correct",
        "password: &p correct",
        "passwords:\n  - Correct-horse\n  - correct1",
        "<password><![CDATA[correct]]></password>",
        '["--password", "correcthorse"]',
        "secretData: |\n" + "  correcthorse\n" * 500,
        "kennwort: correcthorse",
    ],
)
def test_plain_words_are_secrets_under_a_telling_key(text: str) -> None:
    shown = masked(text, TELLING, "x")
    assert len(shown) == len(text)
    assert not any(word in shown for word in ("correct", "my secret", "\\u0063\\u006f"))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.env", "PORT=1\nNAME=a long value\nURL=https://x.example/a?b=c\nTOKEN=${TOKEN}\nPASSWORD=changeme\n"),
        ("values.yaml", "image:\n  tag: x\ntext: |\n  a: b\npassword: ''\nexistingSecret:\nkeys: []\nname: joe\n"),
        ("values.yaml", 'password: "{{ .Values.password }}"\ndescription: "two\n  lines"\n'),
        ("c.json", '{"max_tokens": 4096, "pad_token": "<pad>", "tokenizer": "X", "author": "joe", "keyboard": "us"}'),
        ("c.json", '{"password_min_length": 8, "primary_key": "id", "auth_type": "basic", "token_url": "https://x/y"}'),
        ("compose.yml", "POSTGRES_PASSWORD: postgres\nURL: postgres://a:password@db/x\n"),
        (
            ".envrc",
            "use flake\nexport TOKEN=$OTHER\nTOKEN=$(pass show x) cmd\nsource_url https://x/ sha256-XQzUAvL6py=\n",
        ),
        ("x.py", "token = tokens[0]\npassword = form.data['password']\n__all__ = ['token_hex', 'x']\nit's\n"),
        ("x.xml", "<a><key>NAME</key><string>x</string><password></password><b c='d'/></a>\n"),
        ("ca.pem", f"-----BEGIN CERTIFICATE-----\n{BLOCKS['rsa CERTIFICATE']}\n-----END CERTIFICATE-----\n"),
        ("ssh.py", 'BEGIN = b"-----BEGIN OPENSSH PRIVATE KEY-----"\nEND = b"-----END OPENSSH PRIVATE KEY-----"\n'),
        ("secrets.yaml", "db:\n  password: ENC[AES256_GCM,data:x1Y2z3W4v5]\nsops:\n  version: 3\n"),
    ],
)
def test_what_is_no_secret_stays_as_it_is(path: str, text: str) -> None:
    assert masker().mask(text.encode(), TELLING, path) is None
    assert masker().mask(text.encode(), CONTENT, path) is None


def test_file_that_is_secret_by_name_keeps_what_is_harmless() -> None:
    kept = (
        "# to run it\nPORT=3000\nexport DEBUG=true\nNODE_ENV=production\nDB_CONNECTION=pgsql\nEMPTY=\nDB_USER=shop\n"
        "DB_HOST=db.corp\nAPI=https://x.example:8000/v1\nTOKEN=${OTHER_TOKEN}\nKEY=your-key-here\nWHEN=2024-01-15\n"
    )
    assert masker().mask(kept.encode(), ALL, ".env") is None
    changed = f"COLOUR=Deep Purple\nPIN=4711\n# {SECRET}\nPASSWORD=admin\nURL=https://x/?a={STRONG}\n{SECRET}\n"
    shown = masked(kept + changed)
    assert shown.startswith(kept)
    assert [line.partition("=")[0] for line in shown.splitlines()][-6:-1] == [
        "COLOUR",
        "PIN",
        shown.splitlines()[-4],
        "PASSWORD",
        "URL",
    ]
    assert not any(word in shown for word in ("Deep", "Purple", "4711", SECRET, "admin", STRONG[:6]))


@pytest.mark.parametrize(
    ("content", "shape"),
    [
        ("machine a.example login joe password @\n", "machine a.example login joe password "),
        ("db.example:5432:shop:joe:@\n", "db.example:5432:"),
        ("joe:$apr1$salt$@\n", "joe:$"),
        ("hvs.CAES1J4ab@DEF123456789\n", "hvs."),
        ("mysql -p@ shop\n", ""),
        ("@\n", ""),
        ('["@: two", "@"]', '["'),
        ("FOO: @: two", "FOO: "),
        ("FOO=@=two", "FOO="),
    ],
)
def test_lines_without_keys_are_values(content: str, shape: str) -> None:
    for secret in (SECRET, "correcthorse"):
        shown = masked(content.replace("@", secret))
        assert shown.startswith(shape)
        assert secret not in shown


def test_masked_documents_are_as_valid_as_before(tmp_path: Path) -> None:
    document = {"a": ['é\n"x"', {"token": "a\\b\u2028", "n": 1234567890, "f": 1.5e10, "t": True}], "my key": None}
    for text in (json.dumps(document), json.dumps(document, indent=1, ensure_ascii=False)):
        shown = json.loads(masked(text, ALL, "x.json"))
        assert shown["a"][1].keys() == document["a"][1].keys()  # type: ignore[index, union-attr]
        assert shown != document
    toml = "[db]\nd = 1979-05-27T07:32:00Z\nx = 'C:\\new'\nn = 80010101\ns = \"a\\u0041\\tb\"\nm = '''\nx\n'''\n"
    assert tomllib.loads(masked(toml, ALL, "x.toml"))["db"]["s"] != "aA\tb"
    ET.fromstring(masked("<r a='b'><p>x &amp; y</p><!-- c --><![CDATA[z]]></r>", TELLING, "x.xml"))
    script = f"A=b TOKEN='{SECRET}'\ncat <<EOF\npassword: {SECRET}\nEOF\necho \"$A\" $TOKEN\n"
    done = subprocess.run(
        ["/bin/sh", "-euc", masked(script, TELLING, ".envrc")], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("password: ")
    assert done.stdout.split()[1] == done.stdout.split()[3]


@pytest.mark.parametrize(
    "token", ["ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAIOSFODNN7QXAMPLA", f"sk-ant-api03-{STRONG}"]
)
@pytest.mark.parametrize("how", HOWS)
def test_token_is_found_anywhere_and_keeps_its_prefix(token: str, how: str) -> None:
    shown = masked(f"some words {token}, and more\n", how, "notes.txt")
    assert how == ALL or (shown.startswith(f"some words {token[:4]}") and shown.endswith(", and more\n"))
    assert token[:4] in shown
    assert token[8:14] not in shown
    assert may_hold_secret(token.encode(), "notes.txt")


def test_content_counts_only_if_it_is_sure() -> None:
    for text in (
        "password: hunter2Zq",
        "my TOKEN is x",
        "TOKEN=$X",
        "url=postgres://joe:hunter2Zq@db/x",
        "KEY = abcd1234",
    ):
        assert masker().mask(text.encode(), CONTENT, "notes.txt") is None
    assert masked(f"a\nexport API_TOKEN={SECRET}\nb: c\n", CONTENT, "notes.txt").endswith("\nb: c\n")
    assert SECRET not in masked(f"API_TOKEN={SECRET}\npassword: {SECRET}\n", CONTENT, "notes.txt")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("config.json", '{"password": "@"}'),
        ("config.yml", "db:\n  password: @\n"),
        ("config.toml", 'api_token = "@"\n'),
        ("config.ini", "[db]\npassword=@\n"),
    ],
)
def test_settings_count_whatever_the_case_of_their_keys(path: str, text: str) -> None:
    assert may_hold_secret(text.encode(), path)
    assert SECRET not in masked(text.replace("@", SECRET), CONTENT, path)
    assert masker().mask(text.replace("@", SECRET).encode(), CONTENT, "notes.txt") is None


def test_many_decoys_say_no_more_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start draws anew. Where the real letter never came, the one that never came would be the real one."""
    seen: list[set[str]] = [set() for _ in SECRET]
    for start in range(500):
        monkeypatch.setattr(masking, "OF_THIS_START", b"%d" % start)
        for letters, letter in zip(seen, masked(f"A_PASSWORD={SECRET}\n").partition("=")[2], strict=False):
            letters.add(letter)
    assert all(letter in letters for letter, letters in zip(SECRET, seen, strict=True))


SHAPES = (
    "://",
    "http://a:b@c/",
    "http://a/hook/b1c2d3/",
    "http://a@",
    "a_token=abcdEfg1 ",
    '{"a_token":"abcdEfg1",',
    "a_token='",
    'a_token="\\',
    "a_token: |\n  x\n",
    "a_token:\n\n",
    "<token>",
    "# ",
    "'a' #",
    "token ",
    "token=\t",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----",
    "public_key=abc token ",
    "aB3dE6gH9jK2=",
    "password: 'it''",
    "passwords:\n - a\n",
)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("how", HOWS)
def test_time_grows_as_the_text_does(shape: str, how: str) -> None:
    def seconds(length: int) -> float:
        content = (shape * (length // len(shape))).encode()
        start = time.process_time()
        may_hold_secret(content, "x.json")
        masker().mask(content, how, "x.env")
        return time.process_time() - start

    few = max(seconds(10_000), 0.002)
    assert seconds(80_000) < 8 * 4 * few, "with the square of its length it would take 64 times as long"


def test_guess_cannot_be_tested_but_what_nobody_guesses_agrees() -> None:
    text = f"A_PASSWORD={SECRET}\nURL=postgres://u:{SECRET}@db/x\nB_TOKEN={STRONG}\n"
    one, other = masked(text, path="/p/.env").split("\n"), masked(text, path="/p/guesses.env").split("\n")
    assert one[0] != other[0]
    assert one[2] == other[2]
    assert one[0].partition("=")[2] in one[1]
    again = masker(b"l" * 32).mask(text.encode(), ALL, "/p/.env")
    assert again is not None
    assert one[2] not in again.content.decode()


@pytest.mark.parametrize(
    "value", ["Summer2024Summer2024", "correct-horse-battery-staple", "a" * 40, "0" * 40, "hunter2"]
)
def test_what_can_be_guessed_is_drawn_for_its_file(value: str) -> None:
    assert masked(f"TOKEN={value}\n", path="a") != masked(f"TOKEN={value}\n", path="b")


def test_value_is_shown_if_the_user_wants_it() -> None:
    text = f"A={SECRET}\nTOKEN={STRONG}\n".encode()
    assert masker().mask(text, ALL, ".env", frozenset({"A", "TOKEN"})) == Decoy(text, ("A", "TOKEN"))
    some = masker().mask(text, ALL, ".env", frozenset({"A"}))
    assert some is not None
    assert (some.content.startswith(f"A={SECRET}\n".encode()), STRONG.encode() in some.content) == (True, False)


@pytest.mark.parametrize("content", [b"\x30\x82\0\x01 a key store", b"P\0A\0S\0S\0=\0x\0"])
def test_binary_file_appears_empty_if_its_name_says_secret(content: bytes) -> None:
    assert masker().mask(content, ALL, "x.p12") == Decoy(b"", ())
    assert masker().mask(content, TELLING, "x.png") is None


@pytest.mark.openssl
@pytest.mark.clients
@pytest.mark.parametrize("name", sorted(name for name in BLOCKS if "KEY" in name))
@pytest.mark.parametrize("form", ["{}", 'KEY="{}"\n', "key: |\n  {}\n", '{{"private_key": "{}"}}'])
def test_private_key_is_replaced_by_one_that_programs_read(name: str, form: str, tmp_path: Path) -> None:
    label = name.partition(" ")[2]
    body = BLOCKS[name][:30] + STRONG * 8
    feed = "\\n" if "private" in form else "\n  " if "|" in form else "\n"
    pem = feed.join((f"-----BEGIN {label}-----", body[:64], body[64:], f"-----END {label}-----"))
    for how in HOWS:
        shown = masked(form.format(pem), how, "x")
        assert STRONG[:6] not in shown
        block = shown[shown.index("-----B") : shown.rindex("-----") + 5].replace("\\n", "\n").replace("\n  ", "\n")
        (tmp_path / "key").write_text(f"{block}\n")
        (tmp_path / "key").chmod(0o600)
        tool = ["ssh-keygen", "-yf"] if "SSH" in label else ["openssl", "pkey", "-noout", "-in"]
        subprocess.run([*tool, str(tmp_path / "key")], check=True, capture_output=True)


def test_server_starts_with_the_replaced_key_and_certificate(tmp_path: Path) -> None:
    for label in ("RSA PRIVATE KEY", "EC PRIVATE KEY"):
        pem = "".join(f"-----BEGIN {one}-----\n{STRONG * 4}\n-----END {one}-----\n" for one in (label, "CERTIFICATE"))
        (tmp_path / "both").write_text(masked(pem, TELLING, "both.pem"))
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / "both")


@pytest.mark.parametrize("label", ["PGP PRIVATE KEY BLOCK", "ENCRYPTED PRIVATE KEY", "OpenVPN Static key V1"])
def test_other_private_keys_are_filled(label: str) -> None:
    text = f"-----BEGIN {label}-----\n{STRONG}\n-----END {label}-----\nrest\n"
    shown = masked(text, CONTENT, "x")
    assert (len(shown), STRONG[:6] in shown, shown.endswith(f"-----END {label}-----\nrest\n")) == (
        len(text),
        False,
        True,
    )


LINES = [
    "{key}={value}",
    'export {key}="{value}"',
    "{key}='first\n{value}\nlast'",
    "# OLD={value}",
    "A=b # {value}",
    "{value}",
    "{key}: {value}",
    "- {key}: {value}",
    "{key}: |\n    {value}\n    more",
    "{key} = ['{value}', '{value}']",
    "{key}=a\\\n{value}",
]
secrets = st.builds(
    lambda core, before, after: f"{before}Zq7{core}9x{after}",
    st.text("abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789", min_size=8, max_size=40),
    st.sampled_from(
        ["", "/", "$", "&", "*", "-", "sk-ant-", "Bearer ", "https://u:", "p=", "a:", "x #", "'", '"', "[", "{"]
    ),
    st.sampled_from(["", "=", "==", "@host/x", " b", "\\", ":", "'", '"', "}", ",", " # c"]),
)
keys = st.sampled_from(["KEY", "PASSWORD", "name", "db.url", "X-Header", "HOST", "a", "LEVEL", "user"])


@settings(max_examples=400, deadline=None, derandomize=True)  # under keys such as `name`, what is plain stays
@given(st.lists(st.tuples(st.sampled_from(LINES), keys, secrets), min_size=1, max_size=6))
def test_no_window_of_a_random_secret_survives(lines: list[tuple[str, str, str]]) -> None:
    # Without a key before it, what stands before `=` or `:` is taken for one.
    texts = [line.format(key=key, value=value if "{key}" in line else value.rstrip("=:")) for line, key, value in lines]
    content = "\n".join(texts) + "\n"
    shown = masked(content)
    assert len(shown) == len(content)
    for _, _, value in lines:
        core = value[value.index("Zq7") : value.rindex("9x") + 2]
        assert not any(core[place : place + 6] in shown for place in range(len(core) - 5)), (content, shown)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    st.binary(max_size=200)
    | st.text("\"'=: \n\\<>|#-[{@/?$aB1\ud800", max_size=80).map(lambda t: t.encode("utf-8", "replace"))
)
def test_nothing_raises(content: bytes) -> None:
    for how in HOWS:
        masker().mask(content, how, "x")
    may_hold_secret(content, "x")
