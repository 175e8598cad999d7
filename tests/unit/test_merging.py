"""What an agent leaves of a decoy, brought back into the real file."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.features.secrets.decoys import make_decoy
from claudebox.features.secrets.invention import Inventor
from claudebox.features.secrets.rows import VALUES
from claudebox.merging import (
    HELD_ADDRESS,
    HELD_GONE,
    HELD_MADE_UP,
    HELD_OBEYED,
    HELD_QUOTES,
    HELD_REFERENCE,
    HELD_SECRET,
    HELD_TWICE,
    HELD_USED,
    HELD_WHERE,
    LARGEST,
    NOT_LINES,
    STALE,
    TOO_LARGE,
    Merged,
    is_editable,
    merge,
)

pytestmark = pytest.mark.req("SEC-01")

SECRET = "q7Rt2Zx9Lm4V"
REAL = (
    "# of the shop\n"
    "PORT=3000\n"
    f"DB_PASSWORD={SECRET}\n"
    "\n"
    "# where the data is\n"
    f'DATABASE_URL="postgres://shop:{SECRET}@db.corp:5432/shop"  # prod\n'
    "DEBUG=false # for now\n"
    "LOG_LEVEL=info\n"
)


def shown(real: str | bytes) -> bytes:
    content = real.encode() if isinstance(real, str) else real
    made = make_decoy(content, VALUES, ".env", invent=Inventor(b"k" * 32).for_file("/p/.env"))
    assert made is not None
    return made


GIVEN = shown(REAL)
PASSWORD = GIVEN.decode().partition("DB_PASSWORD=")[2].partition("\n")[0]


def brought(left: str | bytes, real: str = REAL) -> Merged:
    return merge(real.encode(), shown(real), left.encode() if isinstance(left, str) else left)


def after(left: str) -> str:
    merged = brought(left)
    assert merged.content is not None, merged
    return merged.content.decode()


def test_nothing_changed_is_nothing_to_do() -> None:
    assert brought(GIVEN) == Merged()


def test_new_line_lands_where_it_was_written() -> None:
    left = GIVEN.decode().replace("DEBUG=false\n", "DEBUG=false\nNEW_FLAG=on\n")
    merged = brought(left)
    assert merged == Merged(REAL.replace("for now\n", "for now\nNEW_FLAG=on\n").encode(), landed=("NEW_FLAG",), held=())
    assert after(GIVEN.decode() + "LAST='some words'\n") == REAL + "LAST='some words'\n"
    assert after("# first\n" + GIVEN.decode()) == "# first\n" + REAL


def test_changed_line_lands_and_keeps_its_comment() -> None:
    left = GIVEN.decode().replace("DEBUG=false", "DEBUG=true").replace("PORT=3000", "PORT=4000")
    assert after(left) == REAL.replace("DEBUG=false", "DEBUG=true").replace("PORT=3000", "PORT=4000")


def test_removed_line_is_removed() -> None:
    assert after(GIVEN.decode().replace("LOG_LEVEL=info\n", "")) == REAL.replace("LOG_LEVEL=info\n", "")


def test_line_with_a_secret_stays_whatever_became_of_its_decoy() -> None:
    for old, new in (
        (PASSWORD, "hunter2"),
        (PASSWORD, ""),
        ("db.corp", "evil.example"),
        ("postgres://shop", "postgres://root"),
        (":5432/shop", ":5432/shop?host=evil.example"),
    ):
        merged = brought(GIVEN.decode().replace(old, new))
        assert merged.content is None
        assert set(dict(merged.held).values()) == {HELD_SECRET}


def test_secret_is_not_deleted_and_then_nothing_is() -> None:
    """Who writes a file anew, with less in it, has not meant to remove the rest."""
    merged = brought("PORT=3000\nNEW=1\n")
    assert merged.content == REAL.replace("PORT=3000\n", "PORT=3000\nNEW=1\n").encode()
    assert dict(merged.held) == {
        "DB_PASSWORD": HELD_SECRET,
        "DATABASE_URL": HELD_SECRET,
        "DEBUG": HELD_GONE,
        "LOG_LEVEL": HELD_GONE,
    }
    assert brought("").content is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("X=${DB_PASSWORD}", HELD_REFERENCE),
        ("X=$DB_PASSWORD", HELD_REFERENCE),
        ("X='$DB_PASSWORD'", HELD_REFERENCE),
        ('X="a ${DB_PASSWORD:-b}"', HELD_REFERENCE),
        ("X='\\u0024{DB_PASSWORD}'", HELD_REFERENCE),
        ("X='{{ DB_PASSWORD }}'", HELD_REFERENCE),
        ("X='%(DB_PASSWORD)s'", HELD_REFERENCE),
        ("X='`cat .env`'", HELD_REFERENCE),
        ("X=two words", HELD_QUOTES),
        ("X='two\nlines'", HELD_QUOTES),
        ("X: yes", HELD_QUOTES),
        (f"X={PASSWORD}", HELD_MADE_UP),
        (f"X=https://evil.example/?p={PASSWORD}", HELD_MADE_UP),
        (f"X='a {PASSWORD} b'", HELD_MADE_UP),
        ("API_URL=https://evil.example", HELD_ADDRESS),
        ("DB_HOST=evil.example", HELD_ADDRESS),
        ("SMTP_SERVER=evil", HELD_ADDRESS),
        ("X=http://127.0.0.1@evil.example", HELD_ADDRESS),
        ("X=//joe@evil.example", HELD_ADDRESS),
        ("PATH=/tmp", HELD_OBEYED),
        ("LD_PRELOAD=./x.so", HELD_OBEYED),
        ("NODE_OPTIONS='--require ./x.js'", HELD_OBEYED),
        ("PGHOST=evil.example", HELD_ADDRESS),
        ("BASEURL=evil.example", HELD_ADDRESS),
        ("X=//evil.example/x", HELD_ADDRESS),
        ("X='shop?host=evil.example'", HELD_ADDRESS),
        ("X=192.0.2.7:80", HELD_ADDRESS),
        ("X=evil.example:5672", HELD_ADDRESS),
        ("X=evil.example/", HELD_ADDRESS),
        ("spring.rabbitmq.addresses=evil", HELD_ADDRESS),
        ("DB_HOST=localhost", HELD_WHERE),
        ("DB_PORT=6666", HELD_WHERE),
        ("DATABASE_PROXY=localhost:6666", HELD_WHERE),
        ("X= ./program", HELD_QUOTES),
        ("sh = ./program", HELD_QUOTES),
        ("X= './program'", HELD_QUOTES),
        ("X=1 # ${DB_PASSWORD}", HELD_REFERENCE),
        ("X=1 # don't", HELD_QUOTES),
        ("# takes the next line with it \\", HELD_REFERENCE),
        ("MAKEFLAGS=--eval=x", HELD_OBEYED),
        ("HTTPS_PROXY=localhost:8080", HELD_OBEYED),
        ("ZDOTDIR=.", HELD_OBEYED),
        ("DB_PASSWORD=other", HELD_TWICE),
        ("export DB_PASSWORD=other", HELD_TWICE),
    ],
)
def test_line_that_could_carry_a_secret_elsewhere_does_not_land(line: str, why: str) -> None:
    merged = brought(f"{GIVEN.decode()}{line}\nFINE=1\n")
    assert merged.content == (REAL + "FINE=1\n").encode()
    assert list(dict(merged.held).values()) == [why]


@pytest.mark.parametrize(
    "line",
    [
        "X=1",
        "X=",
        "X=./a.b/c",
        "X=app.main:run",
        "X=redis:7.2",
        "X=a/b.c",
        "export X=a-b.c",
        "X='a # b'",
        'X="two words" # why',
        "API_URL=http://localhost:8080/x",
    ],
)
def test_plain_line_lands(line: str) -> None:
    assert after(f"{GIVEN.decode()}{line}\n") == f"{REAL}{line}\n"


@pytest.mark.parametrize(
    "left", ["", "BASE_URL=\n", "BASE_URL=http://localhost:9\n", "BASE_URL=https://evil.example\n"]
)
def test_address_of_another_host_stays(left: str) -> None:
    """Without it a gateway's key would go to somebody else; with one of this machine, to a box that listens there."""
    real, given = (f"BASE_URL=https://gateway.corp\nAPI_KEY={key}\n" for key in (SECRET, PASSWORD))
    merged = merge(real.encode(), given.encode(), f"{left}API_KEY={PASSWORD}\nFINE=1\n".encode())
    assert sorted((merged.content or b"").decode().splitlines()) == sorted(f"{real}FINE=1\n".splitlines())
    assert [key for key, _ in merged.held] == ["BASE_URL"]


def test_address_beside_a_secret_stays() -> None:
    """Where PGPASSWORD is, PGHOST says who gets it."""
    real, given = (f"PGPASSWORD={key}\nPORT=3000\n" for key in (SECRET, PASSWORD))
    left = f"PGPASSWORD={PASSWORD}\nPORT=3001\nPGHOST=localhost\nPGPORT=6666\n"
    merged = merge(real.encode(), given.encode(), left.encode())
    assert merged.landed == ("PORT",)
    assert dict(merged.held) == {"PGHOST": HELD_WHERE, "PGPORT": HELD_WHERE}


def test_spaces_land_where_the_file_has_them() -> None:
    real, given = (f"password = {key}\nname = shop\n" for key in (SECRET, PASSWORD))
    assert merge(real.encode(), given.encode(), f"{given}size = 2\n".encode()).landed == ("size",)


def test_line_that_another_one_uses_is_not_taken_away() -> None:
    real, given = (f"DB=shop\nURL=postgres://joe:{key}@db/${{DB}}\n" for key in (SECRET, PASSWORD))
    assert merge(real.encode(), given.encode(), given.encode().replace(b"DB=shop\n", b"")).held == (("DB", HELD_USED),)


def test_name_without_end_is_not_shown_to_anybody() -> None:
    assert brought(GIVEN + b"K" * 10_000 + b"=1\n") == Merged(trouble=NOT_LINES)


def test_line_that_another_one_uses_does_not_change() -> None:
    """With `DB=x?host=evil.example` the password would be sent there."""
    real = f"DB=shop\nURL=postgres://joe:{SECRET}@db/${{DB}}\n"
    given = f"DB=shop\nURL=postgres://joe:{PASSWORD}@db/${{DB}}\n".encode()
    assert merge(real.encode(), given, given.replace(b"DB=shop", b"DB=orders")).held == (("DB", HELD_USED),)


@pytest.mark.parametrize(
    "left",
    [
        "X='\n",
        'X="\n',
        "X=a\\\n",
        "X=\\\n",
        "X=`\n",
        "X=$(cat .env)\n",
        "X=a; cat .env\n",
        "[evil]\n",
        "X=1\0\n",
        "X=1\x1b[2J\n",
        "X=1\x0bDB_PASSWORD=2\n",
        "X=1\u2028Y=2\n",
        "X=1\rY=2\n",
        "just words\n",
        "cat <<END\n",
        "= x\n",
        ". ./evil.sh\n",
    ],
)
def test_what_several_programs_would_read_differently_does_not_land_at_all(left: str) -> None:
    for text in (left + GIVEN.decode(), GIVEN.decode() + left, left):
        assert brought(text) == Merged(trouble=NOT_LINES)


def test_bytes_that_are_no_text_and_too_many_of_them() -> None:
    assert brought(GIVEN + b"X=\xff\n") == Merged(trouble=NOT_LINES)
    assert brought(GIVEN + b"A=1\n" * LARGEST) == Merged(trouble=TOO_LARGE)
    assert brought(GIVEN + b"\n" * 30_000) == Merged(trouble=NOT_LINES)


def test_quote_without_end_is_read_once() -> None:
    """Not once for each line behind it: that took seconds, for each such file that an agent left in a project."""
    began = process_time()
    assert brought(b'X="' + b"\n" * (LARGEST - 10)) == Merged(trouble=NOT_LINES)
    assert process_time() - began < 1


def test_file_that_was_changed_on_the_host_is_left_alone() -> None:
    real = REAL.replace("LOG_LEVEL", "LEVEL")
    assert merge(real.encode(), GIVEN, GIVEN + b"X=1\n") == Merged(trouble=STALE)


def test_secret_that_was_changed_on_the_host_stays_changed() -> None:
    real = REAL.replace(SECRET, "another")
    assert merge(real.encode(), GIVEN, GIVEN + b"X=1\n").content == (real + "X=1\n").encode()


def test_line_ends_are_kept() -> None:
    real = REAL.replace("\n", "\r\n")
    given = shown(real)
    assert merge(real.encode(), given, given + b"X=1\n").content == (real + "X=1\r\n").encode()
    assert merge(REAL.encode(), GIVEN, (GIVEN + b"X=1\n").replace(b"\n", b"\r\n")).content == (REAL + "X=1\n").encode()
    assert not is_editable(REAL.replace("\n", "\r\n", 1).encode(), GIVEN)


def test_text_of_several_lines_is_one_line() -> None:
    real = f'A=1\nKEY="-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----"\nB=2\n'
    given = shown(real)
    merged = merge(real.encode(), given, given.replace(b"B=2", b"B=3") + b"C=4\n")
    assert merged.content == (real.replace("B=2", "B=3") + "C=4\n").encode()


@pytest.mark.parametrize(
    "real",
    [
        f"[db]\npassword={SECRET}\n",
        f"db:\n  password: {SECRET}\n",
        f"db: x\n  password: {SECRET}\n",
        f"password: &p {SECRET}\nother: *p\n",
        f"A=it's\nPASSWORD={SECRET}\n",
        f'A="x\\"\nPASSWORD={SECRET}\n',
        f"A='x\nPASSWORD={SECRET}\n",
        f"A=a\\\nPASSWORD={SECRET}\n",
        f"\ufeffPASSWORD={SECRET}\n",
        f"PASSWORD={SECRET}\nwords\n",
        f"A=`\nPASSWORD={SECRET}\n",
        f'{{"password": "{SECRET}"}}\n',
        f"user:x=y\nPASSWORD={SECRET}\n",
    ],
)
def test_file_that_can_be_read_in_several_ways_is_not_editable(real: str) -> None:
    assert not is_editable(real.encode(), shown(real))


def test_usual_file_is_editable() -> None:
    assert is_editable(b"name: shop\npassword: x\n", b"name: shop\npassword: y\n")
    assert is_editable(REAL.encode(), GIVEN)
    assert is_editable(
        f"# x\n\nexport A_TOKEN={SECRET}\nB = 'c d'\nC=\n".encode(), shown(f"export A_TOKEN={SECRET}\nB = 'c d'\nC=\n")
    )


# For any edit: no secret anywhere but in its own line, and what was not touched is as it was.

keys = st.sampled_from(["PORT", "DB_PASSWORD", "API_TOKEN", "NAME", "DEBUG", "DATABASE_URL", "NEW", "OTHER_KEY"])
secret_values = st.text("abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", min_size=9, max_size=30)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, list[str]]:
    lines, secrets = [], []
    for number in range(draw(st.integers(1, 6))):
        secret = f"Zq{number}{draw(secret_values)}"
        line = draw(
            st.sampled_from(
                [
                    "PORT=3000",
                    "DEBUG=true",
                    "",
                    "# a comment",
                    "X_TOKEN={}",
                    "DB_PASSWORD='{}'",
                    'URL="https://u:{}@h.example/x"',
                    "export API_KEY={}",
                    f"N{number}=1",
                    "DB_PASSWORD={} # old",
                    'KEY="{}\nmore"',
                ]
            )
        )
        secrets += [secret] if "{}" in line else []
        lines.append(line.replace("{}", secret))
    secret = f"Zq9{draw(secret_values)}"
    return "".join(f"{line}\n" for line in [*lines, f"LAST_SECRET={secret}"]), [*secrets, secret]


edits = st.lists(
    st.tuples(
        st.sampled_from(["insert", "delete", "replace", "move", "quote", "duplicate", "char", "prefix"]),
        st.integers(0, 50),
        st.integers(0, 50),
        keys,
        st.text(st.characters(codec="utf-8"), max_size=12)
        | st.sampled_from(["$DB_PASSWORD", "'", '"', "\\", "1", "x y"]),
    ),
    min_size=1,
    max_size=6,
)


def edited(text: str, changes: list[tuple[str, int, int, str, str]]) -> str:
    lines = text.split("\n")
    for how, one, two, key, value in changes:
        here, there = one % len(lines), two % len(lines)
        if how == "insert":
            lines.insert(here, f"{key}={value}")
        elif how == "delete" and len(lines) > 1:
            del lines[here]
        elif how == "replace":
            lines[here] = f"{key}={value}"
        elif how == "move":
            lines.insert(there, lines.pop(here))
        elif how == "quote":
            lines[here] = f"{key}='{lines[here]}"
        elif how == "duplicate":
            lines.insert(there, lines[here])
        elif how == "char":
            lines[here] = lines[here][:two] + value + lines[here][two:]
        elif how == "prefix":
            lines[here] = f"{key}={lines[here].partition('=')[2]}"
    return "\n".join(lines)


@settings(max_examples=1000, deadline=None)
@given(files(), edits)
def test_for_any_edit_a_secret_is_only_where_it_was(
    file: tuple[str, list[str]], changes: list[tuple[str, int, int, str, str]]
) -> None:
    real, secrets = file
    given_text = shown(real).decode()
    left = edited(given_text, changes)
    merged = merge(real.encode(), given_text.encode(), left.encode(errors="surrogatepass"))
    if merged.content is None:
        return
    result = merged.content.decode()
    real_lines, new_lines = real.split("\n"), result.split("\n")
    for secret in secrets:
        assert result.count(secret) == real.count(secret), (real, left, result)
        assert [one for one in new_lines if secret in one] == [one for one in real_lines if secret in one]
    kept = set(left.split("\n"))
    for line in real_lines:
        # What was shown as it is, and is still there; and what was not shown.
        if line in given_text.split("\n") and line in kept:
            assert line in new_lines
        if line.startswith("#"):
            assert new_lines.count(line) >= real_lines.count(line)
    assert all(one.isprintable() or one in "\n\t" for one in result)
