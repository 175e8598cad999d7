"""Values that are made up: programs accept them, they agree with each other, and nobody can test a guess with them."""

from __future__ import annotations

import base64
import json
import ssl
import string
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.features.secrets.decoys import make_decoy
from claudebox.features.secrets.invention import MOST_WEAK, Inventor, is_strong
from claudebox.features.secrets.table import KEY, SHELL, VALUES
from claudebox.features.secrets.throwaway import BLOCKS
from claudebox.features.secrets.values import stand_in
from claudebox.host.digest import sha256

pytestmark = pytest.mark.req("SEC-01")

STRONG = "q7Rt2Zx9Lm4Vb8Np3Kc6Wd1Hs5Jf0Gy"


@pytest.fixture
def inventor() -> Inventor:
    return Inventor(b"k" * 32)


def made(inventor: Inventor, value: str, name: str = "PASSWORD") -> str:
    return stand_in(value, inventor.for_file("/p/.env"), name)


def decoy(inventor: Inventor, content: str, path: str = ".env", style: str = VALUES) -> str:
    shown = make_decoy(content.encode(), style, path.rpartition("/")[2], invent=inventor.for_file(path))
    assert shown is not None
    return shown.decode()


def variables(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if line)


@pytest.mark.parametrize(("length", "shown"), [(1, 8), (7, 8), (8, 8), (32, 32), (100, 100)])
def test_length_is_kept_but_that_of_a_short_secret(inventor: Inventor, length: int, shown: int) -> None:
    value = (STRONG * 5)[:length]
    assert len(made(inventor, value)) == shown
    assert made(inventor, value) != value


@pytest.mark.parametrize(
    ("value", "alphabet"),
    [
        ("0123456789", string.digits),
        ("4711", string.digits),
        ("deadbeef01" * 4, "0123456789abcdef"),
        ("DEADBEEF01" * 4, "0123456789ABCDEF"),
        ("lowercaseonly", string.ascii_lowercase),
        ("UPPERCASEONLY", string.ascii_uppercase),
        ("with-joints_in", string.ascii_lowercase + "-_"),
        ("Some!Thing#else2", string.ascii_letters + string.digits + "_"),
    ],
)
def test_alphabet_is_kept(inventor: Inventor, value: str, alphabet: str) -> None:
    assert set(made(inventor, value)) <= set(alphabet)


def test_base64_and_uuid_stay_what_they_are(inventor: Inventor) -> None:
    for length in (16, 17, 18, 32):
        coded = base64.b64encode(bytes(range(200, 200 + length))).decode()
        assert len(base64.b64decode(made(inventor, coded), validate=True)) == length
    shown = made(inventor, str(uuid.UUID(int=1 << 100)))
    assert str(uuid.UUID(shown)) == shown


@pytest.mark.parametrize(
    "value",
    [
        "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "AKIAIOSFODNN7QXAMPLE",
        "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
        "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",
        "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    ],
)
def test_token_keeps_its_prefix_and_sections(inventor: Inventor, value: str) -> None:
    shown = made(inventor, value)
    joints = [(place, one) for place, one in enumerate(value) if one in ".-_"]
    assert len(shown) == len(value)
    assert shown[:3] == value[:3]
    assert [(place, one) for place, one in enumerate(shown) if one in ".-_"] == joints
    assert value[-10:] not in shown


def test_signed_token_still_parses(inventor: Inventor) -> None:
    value = f"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJqb2UifQ.{STRONG}"
    head, payload, signature = made(inventor, value).split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "=="))["alg"]
    assert json.loads(base64.urlsafe_b64decode(payload + "=="))["sub"] == "masked-by-claudebox"
    assert len(signature) == len(STRONG)
    assert STRONG not in signature


ADDRESSES = [
    "postgres://shop:hunter2@db.corp:5432/shop_dev?sslmode=require&pool=5",
    "mysql://root:hunter2@localhost/orders",
    "redis://:hunter2@cache:6379/0",
    "mongodb+srv://joe:hunter2@a.example,b.example/app?retryWrites=true",
    "amqp://guest:hunter2@mq:5672/%2F",
    "jdbc:postgresql://db:5432/shop?user=joe&password=hunter2",
    "https://joe:hunter2@registry.example/simple/",
    "postgres://shop:hun%40ter2@db/shop",
    "postgres://shop:hunter/2@db/shop",
]


@pytest.mark.parametrize("value", ADDRESSES)
def test_address_keeps_all_but_the_password(inventor: Inventor, value: str) -> None:
    shown = made(inventor, value, "DATABASE_URL")
    assert "hunter2" not in shown
    bare = value.removeprefix("jdbc:").replace("hunter/2", "hunter2")
    old, new = urlsplit(bare), urlsplit(shown.removeprefix("jdbc:"))
    assert (old.scheme, old.username, old.hostname) == (new.scheme, new.username, new.hostname)
    assert old.netloc.rpartition("@")[2] == new.netloc.rpartition("@")[2]
    assert old.path in (new.path, "/%2F")
    assert old.query.partition("password=")[0] == new.query.partition("password=")[0]


@pytest.mark.parametrize("secret", ["hunter2", "hun@ter/2", STRONG])
def test_password_and_the_one_in_an_address_agree_in_every_file(inventor: Inventor, secret: str) -> None:
    coded = secret.replace("@", "%40").replace("/", "%2F")
    env = variables(decoy(inventor, f"DB_PASSWORD={secret}\nDATABASE_URL=postgres://u:{coded}@db/shop\n"))
    assert env["DB_PASSWORD"] != secret
    assert env["DATABASE_URL"] == f"postgres://u:{env['DB_PASSWORD']}@db/shop"
    script = decoy(inventor, f"export PGPASSWORD='{secret}'\n", "app/.envrc", SHELL)
    assert script == f"export PGPASSWORD='{env['DB_PASSWORD']}'\n"


def test_decoys_stay_from_start_to_start_and_differ_between_keys() -> None:
    content = f"A_PASSWORD=hunter2\nB_TOKEN={STRONG}\nNAME=Some Thing\n"
    first = decoy(Inventor(b"k" * 32), content)
    assert decoy(Inventor(b"k" * 32), content) == first
    other = variables(decoy(Inventor(b"l" * 32), content))
    assert not set(other.values()) & set(variables(first).values())


def test_planted_guesses_tell_nothing() -> None:
    """An agent leaves a file with guesses, and at the next start compares what stands for them."""
    inventor = Inventor(b"k" * 32)
    real = variables(decoy(inventor, "DB_PASSWORD=hunter2\n"))["DB_PASSWORD"]
    guesses = [f"guess{number}" for number in range(1000)] + ["hunter2"]
    shown = variables(decoy(inventor, "".join(f"PASSWORD_{n}={one}\n" for n, one in enumerate(guesses)), "planted.env"))
    linked = [one for one in shown.values() if one == real]
    assert linked == [real], "it was known already: the project's own use of it stays linked"
    fresh = Inventor(b"k" * 32)
    planted = decoy(fresh, "".join(f"PASSWORD_{n}={one}\n" for n, one in enumerate(guesses)), "planted.env")
    later = Inventor(b"k" * 32, tuple(fresh.weak))
    assert variables(decoy(later, "DB_PASSWORD=hunter2\n"))["DB_PASSWORD"] not in planted
    assert len(later.weak) == MOST_WEAK


def test_hashes_of_guesses_tell_little() -> None:
    """What looks random may be the hash of a weak password: of one start, only some are linked."""
    inventor = Inventor(b"k" * 32)
    planted = "".join(f"HASH_{number}={sha256(b'%d' % number)}\n" for number in range(2000))
    shown = decoy(inventor, planted, "planted.env")
    real = variables(decoy(inventor, f"API_KEY={sha256(b'1999')}\n"))["API_KEY"]
    assert real not in shown
    assert len(real) == 64


def test_value_under_an_ordinary_name_is_drawn_from_its_place_alone() -> None:
    inventor = Inventor(b"k" * 32)
    assert decoy(inventor, "COLOUR=Deep Purple\n") == decoy(inventor, "COLOUR=Dark Orange\n")
    assert not inventor.weak


@pytest.mark.parametrize("value", ["Summer2024Summer2024", "correct-horse-battery-staple", "a" * 40, "0" * 40])
def test_what_can_be_guessed_is_not_strong(value: str) -> None:
    assert not is_strong(value)
    assert is_strong(STRONG)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80), st.sampled_from(["PASSWORD", "NAME", "", "URL"]))
def test_stand_in_never_holds_the_secret(value: str, name: str) -> None:
    shown = Inventor(b"k" * 32).for_file("/p")(value or "x", name)
    assert (value or "x") not in shown
    assert shown.isascii()
    assert shown.isprintable()


@pytest.mark.parametrize("kind", sorted({kind for _, kind in BLOCKS} - {"k256"}))
def test_server_starts_with_the_key_and_the_certificate(inventor: Inventor, kind: str, tmp_path: Path) -> None:
    key, certificate = BLOCKS["PRIVATE KEY", kind], "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
    pem = f"{certificate}-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n"
    (tmp_path / "both.pem").write_text(decoy(inventor, pem, "both.pem", KEY))
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / "both.pem")


def test_key_in_a_text_of_several_lines(inventor: Inventor, tmp_path: Path) -> None:
    pem = f"-----BEGIN EC PRIVATE KEY-----\n{STRONG}\n-----END EC PRIVATE KEY-----\n"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for shown in (
        decoy(inventor, f'KEY="{pem}"\nPORT=1\n').partition('"')[2].partition('"')[0],
        decoy(inventor, "KEY=" + pem.replace("\n", "\\n") + "\n").partition("=")[2].replace("\\n", "\n"),
        "".join(
            decoy(inventor, f"key: |\n  {pem}".replace("\n", "\n  "), "secrets.yml").partition("|\n")[2].split("  ")
        ),
        json.loads(decoy(inventor, json.dumps({"private_key": pem}), "x.json"))["private_key"],
    ):
        certificate = f"-----BEGIN CERTIFICATE-----\n{BLOCKS['CERTIFICATE', 'p256']}\n-----END CERTIFICATE-----\n"
        (tmp_path / "pem").write_text(shown + certificate)
        assert STRONG not in shown
        # The key of an `EC PRIVATE KEY` is the one of the certificate: the server checks that.
        context.load_cert_chain(tmp_path / "pem")


@pytest.mark.parametrize("value", ["-", "_", "--", "-_", "a-", "1_", "a", "1", "!"])
def test_short_value_does_not_take_forever(value: str) -> None:
    """It did for a joint, which is in everything that is made up for it: no box started in such a project."""
    made = Inventor(b"k" * 32).for_file("/p/.env")(value, "PASSWORD")
    assert made != value
