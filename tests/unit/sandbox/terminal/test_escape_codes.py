"""What passes to the user's terminal and what does not, for every reading that terminals have of it."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudebox.sandbox.terminal import escape_codes
from claudebox.sandbox.terminal.escape_codes import OutputFilter
from unit.sandbox.terminal.terminal_codes import DANGEROUS_CODES, DANGEROUS_STRINGS, NOT_IN_THE_MODEL, USEFUL
from unit.sandbox.terminal.terminal_forbidden import forbidden_actions
from unit.sandbox.terminal.terminal_model import DIALECTS, EIGHT_BIT_DIALECT, Terminal

CHECKOUT = Path(__file__).resolve().parents[4]
RECORDINGS = sorted((Path(__file__).parent / "recordings").iterdir())
ENDS = (b"\x07", b"\x1b\\")


def filtered(*pieces: bytes) -> bytes:
    output = OutputFilter()
    return b"".join(output.feed(piece) for piece in pieces)


# What real programs send.


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.name)
def test_output_of_real_programs_passes_as_it_is(recording: Path) -> None:
    data = recording.read_bytes()
    assert filtered(data) == data
    for seed in range(5):
        assert filtered(*_in_pieces(data, random.Random(seed))) == data
    assert filtered(*(data[place : place + 1] for place in range(len(data)))) == data


def _in_pieces(data: bytes, choice: random.Random) -> list[bytes]:
    cuts = sorted(choice.randrange(len(data)) for _ in range(len(data) // 50))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def test_useful_codes_pass() -> None:
    for code in USEFUL:
        text = b"before " + code + b" after"
        assert filtered(text) == text


def test_broken_utf8_loses_only_what_may_be_a_control_code() -> None:
    assert filtered(b"\xe2\x94 \xf0\x9f\x98 \xc3 \xe2\xa5 \xff.") == b"\xe2 \xf0 \xc3 \xe2\xa5 \xff."


# What does not pass.


def test_dangerous_strings_do_not_pass() -> None:
    for body, danger in DANGEROUS_STRINGS.items():
        assert forbidden_actions(b"\x1b" + body + b"\x1b\\"), f"the model of a terminal does not see: {danger}"
        for end in (*ENDS, b"\x1b\\\x07", b"\x9c", b"\xc2\x9c", b"\x18", b"\x1a", b"\x1b[m", b""):
            passed = filtered(b"before \x1b", body, end)
            assert re.sub(rb"\x1b\\|\x1b\[m|\x07|\x1a", b"", passed) == b"before ", (danger, passed)


def test_dangerous_codes_do_not_pass() -> None:
    for code, danger in DANGEROUS_CODES.items():
        assert forbidden_actions(code) or code in NOT_IN_THE_MODEL, danger
        passed = filtered(code)
        assert b"\x1b" not in passed, danger
        assert forbidden_actions(passed) == [], danger


def test_without_utf8_every_byte_may_be_a_control_code() -> None:
    """In a box-drawing character is a byte that begins a string, to a terminal that reads bytes."""
    plant = "╝52;c;aGVsbG8=\x07".encode()
    assert forbidden_actions(filtered(plant), (EIGHT_BIT_DIALECT,))
    passed = OutputFilter(is_utf8=False).feed(plant)
    assert forbidden_actions(passed, (EIGHT_BIT_DIALECT,)) == []
    assert OutputFilter(is_utf8=False).feed(b"caf\xe9 \x1b[1m\xa0") == b"caf\xe9 \x1b[1m\xa0"


@pytest.mark.parametrize("string", [b"\x1b]0;title", b"\x1b]8;;https://x", b"\x1bP$qm", b"\x1b_Ga=d", b"\x1bktitle"])
def test_strings_pass_only_in_the_spelling_that_all_terminals_read_alike(string: bytes) -> None:
    assert filtered(string + b"\x1b\\") == string + b"\x1b\\"
    for control in (*range(0x20), 0x7F):
        inside = string[:3] + bytes([control]) + string[3:] + b"\x1b\\"
        assert string[3:] not in filtered(inside).partition(b"\x1b")[2], inside
    for end in (b"\x18", b"\x1a", b"\x9c", b"\xc2\x9c", b"\x1b[m", b"\x1b\x1b\\", b"\x1b\n\\"):
        assert filtered(string + end).removesuffix(b"\x1b\\") in (b"", b"\x1b[m", b"\n\\"), end
    bell = string + b"\x07"
    assert filtered(bell) == (bell if string.startswith(b"\x1b]") else b"")


def test_what_follows_a_dropped_string_passes() -> None:
    assert (
        filtered(b"a\x1b]52;c;eA==\x07b\x1b]52;c;eA==\x1b\\c\x1b]52;c;eA==\xc2\x9cd\x1b]52;\x1b[1me") == b"abcd\x1b[1me"
    )


# Properties, for whatever a program may send.

PIECES = st.sampled_from(
    [
        *(bytes([byte]) for byte in range(0x20)),
        *(b"\x1b", b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX", b"\x1bk", b"\x1b[", b"\x1b[?"),
        *(b"\x1b[>", b"\x1b\\"),
        *(bytes([byte]) for byte in range(0x80, 0xA0)),
        *(b"\xc2" + bytes([byte]) for byte in (0x85, 0x90, 0x98, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F)),
        *(b"\xc2", b"\xe2", b"\xe2\x95\x9d", b"\xe2\x94", b"\xf0\x9f", b"\xc0\x9b", b"\xe0\x80\x9b"),
        *(b"\xff", b"\xed\xa0\x80"),
        *(b"52;c;aGk=", b"0;title", b"8;;https://x", b"9;6;x", b"10;?", b"4;1;red", b"tmux;", b"$q", b"+q41", b"Gt=f;"),
        *(b"Gt=d;AA", b"21", b"2", b"1049", b"5", b";", b":", b"t", b"i", b"h", b"l", b"n", b"*y", b"m"),
        *(b"u", b"r", b"p"),
        *(b"!", b"%@", b" G", b"P1234567", b"R", b"(", b"\\", b"text", b"]", b"[", b"?"),
    ]
)
OUTPUT = st.lists(st.one_of(PIECES, PIECES, PIECES, st.binary(max_size=4)), max_size=14).map(b"".join)


@given(OUTPUT, st.data())
def test_splitting_changes_nothing(data: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=4)))
    pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert filtered(*pieces) == filtered(data)
    assert filtered(*(bytes([byte]) for byte in data)) == filtered(data)


@given(OUTPUT)
def test_filtering_again_changes_nothing(data: bytes) -> None:
    once = filtered(data) + b"."  # ends what could still go on
    assert filtered(once) == once


@given(OUTPUT)
def test_no_terminal_does_what_is_forbidden(data: bytes) -> None:
    """And at the end each of them shows text: the next prompt is not taken for a part of something."""
    output = OutputFilter()
    passed = output.feed(data)
    passed += output.undo()
    assert forbidden_actions(passed) == [], passed
    for dialect in DIALECTS:
        terminal = Terminal(dialect)
        terminal.read(passed)
        assert terminal.state == "ground", (dialect.name, passed)


@given(OUTPUT)
def test_no_terminal_of_one_byte_does_what_is_forbidden(data: bytes) -> None:
    passed = OutputFilter(is_utf8=False).feed(data)
    assert forbidden_actions(passed, (EIGHT_BIT_DIALECT,)) == []


@given(st.lists(st.one_of(st.binary(), st.text().map(str.encode)), max_size=8).map(b"".join))
def test_text_passes_as_it_is(data: bytes) -> None:
    """Bytes of any encoding, without what is a control code to some terminal."""
    text = re.sub(rb"[\x05\x18\x1b\x80-\x9f]", b"", data) + b"."
    assert filtered(text) == text


@given(st.text(st.characters(exclude_characters="\x05\x18\x1b", exclude_categories=["Cs"])))
def test_utf8_passes_as_it_is(text: str) -> None:
    data = re.sub("[\x80-\x9f]", "", text).encode()
    assert filtered(data) == data


@pytest.mark.parametrize(
    "start", [b"\x1b]0;", b"\x1b]52;c;", b"\x1b_G", b"\x1bPq", b"\x1bk", b"\x1b[", b"\x1b", b"\x1b^"]
)
@pytest.mark.parametrize("filling", [b"A", b"1", b";", b" ", b"(", "é".encode(), b"\xe9", b"\x00"])
def test_held_memory_is_bounded(start: bytes, filling: bytes) -> None:
    output = OutputFilter()
    output.feed(start)
    for _ in range(200):
        output.feed(filling * 1000)
        assert len(output._held) <= escape_codes.LONGEST_STRING + 4


def test_a_string_that_is_too_long_is_dropped_to_its_end() -> None:
    long = b"\x1b]0;" + b"A" * escape_codes.LONGEST_STRING
    for end in ENDS:
        assert filtered(long + end + b"after") == filtered(long, end[:1], end[1:], b"after") == b"after"
        assert filtered(*(long[place : place + 7] for place in range(0, len(long), 7)), end, b"after") == b"after"
    fits = b"\x1b]0;" + b"A" * (escape_codes.LONGEST_STRING - 2) + b"\x07"
    assert filtered(fits) == fits


# The tables, and what is said about them.


def test_rows_that_control_sequences_skip_are_not_refused() -> None:
    """What the fast search takes for harmless is in no table, and leaves nothing switched on."""
    harmless = [chr(code) for code in range(0x40, 0x7F) if not escape_codes.SUSPECT.search(f"\x1b[1;2{chr(code)}")]
    refused = {ending for row in escape_codes.CONTROL_SEQUENCES for ending in row.endings}
    assert refused.isdisjoint(harmless)
    assert set("hlrutnqi").isdisjoint(harmless)


def test_document_shows_the_tables() -> None:
    document = (CHECKOUT / "docs" / "terminal.md").read_text()
    rows = [*escape_codes.OSC, *escape_codes.DCS, *escape_codes.APC, *escape_codes.SCREEN_TITLE, *escape_codes.ESCAPES]
    said = [
        *(row.meaning for row in rows),
        *(row.reason for row in escape_codes.CONTROL_SEQUENCES),
        *escape_codes.CONTROLS.values(),
        *(meaning for _, meaning in escape_codes.MODES.values()),
    ]
    assert [meaning for meaning in said if meaning not in document] == []
