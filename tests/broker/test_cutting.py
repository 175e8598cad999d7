"""No byte of the credential reaches the box, wherever an answer is cut into pieces, and everything else does."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.features.broker.server.cutting import Cutter, Leak, decompressed

SECRET = "sk-ant-oat01-aaabaaab"
OTHER = "sk-ant-ort01-cccc"


def pieces_of(text: bytes, cuts: list[int]) -> list[bytes]:
    pieces = []
    for cut in cuts:
        pieces.append(text[:cut])
        text = text[cut:]
    return [*pieces, text]


@pytest.mark.req("AUTH-03")
@settings(max_examples=300, deadline=None)
@given(
    before=st.text("sk-antoab01c", max_size=40),
    after=st.text("sk-antoab01c", max_size=40),
    cuts=st.lists(st.integers(0, 12), max_size=30),
    secret=st.sampled_from([SECRET, OTHER]),
)
def test_secret_is_cut(before: str, after: str, cuts: list[int], secret: str) -> None:
    cutter = Cutter([SECRET, OTHER])
    passed = b""
    try:
        for piece in pieces_of(f"{before}{secret}{after}".encode(), cuts):
            passed += cutter.feed(piece)
    except Leak:
        pass
    else:
        pytest.fail("it was let through")
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


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_compressed_answer_is_unpacked(coding: str, size: int) -> None:
    text = b"hello " * 100_000
    packed = gzip.compress(text) if coding == "gzip" else zlib.compress(text)
    pieces = [packed[start : start + size] for start in range(0, len(packed), size)]
    unpacked = list(decompressed(pieces, coding))
    assert b"".join(unpacked) == text
    assert max(map(len, unpacked)) <= 256 * 1024


@pytest.mark.parametrize(
    ("data", "coding"),
    [(b"hello", "gzip"), (gzip.compress(b"hello", mtime=0)[:-9], "gzip"), (b"hello", "br"), (b"x", "zstd")],
)
def test_what_cannot_be_unpacked_is_an_error(data: bytes, coding: str) -> None:
    with pytest.raises(ValueError, match="it "):
        list(decompressed([data], coding))


@pytest.mark.req("AUTH-03")
@pytest.mark.parametrize("form", ['a/b+c"d=1234', 'a/b+c\\"d=1234', 'a\\/b+c"d=1234', "a%2Fb%2Bc%22d%3D1234"])
def test_secret_is_known_in_json_and_in_addresses(form: str) -> None:
    """The key of a gateway may have characters that are written in another way there."""
    with pytest.raises(Leak):
        list(Cutter(['a/b+c"d=1234']).pieces([form.encode()]))
