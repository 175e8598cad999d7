"""No byte of the credential reaches the box, wherever an answer is cut into pieces, and everything else does."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.servers.broker.policy import Cutter, Leak

SECRET = "sk-ant-oat01-aaabaaab"
OTHER = "sk-ant-ort01-cccc"


def pieces_of(text: bytes, cuts: list[int]) -> list[bytes]:
    pieces = []
    for cut in cuts:
        pieces.append(text[:cut])
        text = text[cut:]
    return [*pieces, text]


def passed_before_the_cut(cutter: Cutter, text: str, cuts: list[int]) -> bytes:
    passed = b""
    try:
        for piece in pieces_of(text.encode(), cuts):
            passed += cutter.feed(piece)
    except Leak:
        return passed
    pytest.fail("it was let through")


@pytest.mark.req("AUTH-03")
@settings(max_examples=300, deadline=None)
@given(
    before=st.text("sk-antoab01c", max_size=40),
    after=st.text("sk-antoab01c", max_size=40),
    cuts=st.lists(st.integers(0, 12), max_size=30),
    secret=st.sampled_from([SECRET, OTHER]),
)
def test_secret_is_cut(before: str, after: str, cuts: list[int], secret: str) -> None:
    passed = passed_before_the_cut(Cutter([SECRET, OTHER]), f"{before}{secret}{after}", cuts)
    assert before.encode().startswith(passed)


@settings(max_examples=300, deadline=None)
@given(
    text=st.text("sk-antoab01c", max_size=100),
    ending=st.integers(0, len(SECRET) - 1),
    cuts=st.lists(st.integers(0, 12), max_size=30),
)
def test_everything_else_passes_whole(text: str, ending: int, cuts: list[int]) -> None:
    whole = (text + SECRET[:ending]).encode()
    if SECRET.encode() not in whole and OTHER.encode() not in whole:
        assert b"".join(Cutter([SECRET, OTHER]).pieces(pieces_of(whole, cuts))) == whole


def test_what_cannot_begin_a_secret_is_not_held_back() -> None:
    assert Cutter([SECRET]).feed(b"data: hello\n\n") == b"data: hello\n\n"


def test_without_a_secret_all_passes() -> None:
    assert Cutter(["", "short"]).feed(b"short") == b"short"


@pytest.mark.req("AUTH-03")
@pytest.mark.parametrize("form", ['a/b+c"d=1234', 'a/b+c\\"d=1234', 'a\\/b+c"d=1234', "a%2Fb%2Bc%22d%3D1234"])
def test_secret_is_known_in_json_and_in_addresses(form: str) -> None:
    """The key of a gateway may have characters that are written in another way there."""
    with pytest.raises(Leak):
        list(Cutter(['a/b+c"d=1234']).pieces([form.encode()]))


def as_json(character: str, depth: int, *, is_upper: bool) -> str:
    """The character as JSON in JSON in JSON … may write it."""
    backslashes: int = 2**depth - 1
    code = f"{ord(character):04X}" if is_upper else f"{ord(character):04x}"
    return "\\" * backslashes + f"u{code}"


def as_address(character: str, depth: int, *, is_upper: bool) -> str:
    code = f"{ord(character):02X}" if is_upper else f"{ord(character):02x}"
    return "%" + "25" * (depth - 1) + code


FORMS = st.tuples(st.sampled_from([None, as_json, as_address]), st.integers(1, 3), st.booleans())


@pytest.mark.req("AUTH-03")
@settings(max_examples=300, deadline=None)
@given(
    before=st.text("sk-\\%u0073", max_size=20),
    forms=st.lists(FORMS, min_size=len(SECRET), max_size=len(SECRET)),
    cuts=st.lists(st.integers(0, 12), max_size=40),
)
def test_secret_is_known_however_each_character_is_written(
    before: str, forms: list[tuple[Callable[..., str] | None, int, bool]], cuts: list[int]
) -> None:
    """What a reader makes of it in the box is the credential all the same."""
    before = f"{before}."  # or a backslash before it would belong to it
    written = "".join(
        character if form is None else form(character, depth, is_upper=is_upper)
        for character, (form, depth, is_upper) in zip(SECRET, forms, strict=True)
    )
    passed = passed_before_the_cut(Cutter([SECRET]), f"{before}{written} and more", cuts)
    assert before.encode().startswith(passed)


@pytest.mark.req("AUTH-03")
@pytest.mark.parametrize(
    "escape",
    [
        *("\\u0073", "\\\\u0073", "%73", "%2573", "%5Cu0073", "%5cu0073", "\\u002573", "\\u0025\\u00373", "%255Cu0073"),
        *("\\\\u005Cu0073", "%25252573"),
    ],
)
def test_one_escape_in_another_is_known(escape: str) -> None:
    for cut in range(len(escape)):
        text = f"x{escape}{SECRET[1:]}".encode()
        cutter = Cutter([SECRET])
        assert b"x".startswith(cutter.feed(text[: cut + 1]))
        with pytest.raises(Leak):
            cutter.feed(text[cut + 1 :])


@settings(max_examples=300, deadline=None)
@given(
    text=st.text('sk-ant\\%u0073"/', max_size=200),
    cuts=st.lists(st.integers(0, 12), max_size=30),
)
def test_other_escapes_pass_whole(text: str, cuts: list[int]) -> None:
    assert b"".join(Cutter([SECRET]).pieces(pieces_of(text.encode(), cuts))) == text.encode()


@pytest.mark.parametrize("text", ["\\", "%", "%25", "\\u00", "s", "sk-ant-oat01-aaabaaa", "\\u0073k-ant-oat01-"])
def test_long_row_of_what_could_begin_a_secret_takes_no_time(text: str) -> None:
    """A model can be told to answer with such a row, and the broker serves other requests meanwhile."""
    piece = (text * 60_000).encode()[:60_000]
    started = time.process_time()
    assert b"".join(Cutter([SECRET * 5, OTHER * 5]).pieces([piece] * 5)) == piece * 5
    assert time.process_time() - started < 10
