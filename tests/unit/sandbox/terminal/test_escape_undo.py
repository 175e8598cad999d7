"""What a program leaves switched on is switched off, and nothing else."""

import pytest

from claudebox.sandbox.terminal.escape_codes import MODES, OutputFilter

BEGIN, END = b"\x1b\\", b"\x1b[m\x1b(B\x0f"
KEYBOARD_OFF = b"\x1b[<99u\x1b[=0u"
PALETTE_OFF = b"\x1b]104\x1b\\\x1b]105\x1b\\"
COLOURS_OFF = b"".join(b"\x1b]%d\x1b\\" % number for number in range(110, 120))


def undone(*pieces: bytes) -> bytes:
    """The codes between those that every undoing begins and ends with."""
    output = OutputFilter()
    for piece in pieces:
        output.feed(piece)
    codes = output.undo()
    assert output.undo() == b"", "once is enough"
    assert codes.startswith(BEGIN)
    assert codes.endswith(END)
    return codes[len(BEGIN) : -len(END)]


def test_program_without_codes_needs_none() -> None:
    output = OutputFilter()
    output.feed(b"hello\r\n\x1b]52;c;eA==\x07")
    assert output.undo() == b""


@pytest.mark.parametrize("mode", [mode for mode, (normal, _) in MODES.items() if normal])
def test_mode_that_was_left_is_undone(mode: str) -> None:
    normal = MODES[mode][0]
    other = {"h": "l", "l": "h"}[normal]
    on, off = f"\x1b[{mode}{other}".encode(), f"\x1b[{mode}{normal}".encode()
    assert undone(on) == off
    assert undone(on, off) == b""
    assert undone(off) == b""
    assert undone(*(bytes([byte]) for byte in on)) == off


@pytest.mark.parametrize(
    ("codes", "undoing"),
    [
        (b"\x1b[?1000;1006;2004h\x1b[?1000l", b"\x1b[?1006l\x1b[?2004l"),
        (b"\x1b[?1000h\x1b[?1000s\x1b[?1000l\x1b[?1000r", b"\x1b[?1000l"),
        (b"\x1b[>1u\x1b[>5u", KEYBOARD_OFF),
        (b"\x1b[>1u\x1b[<u", KEYBOARD_OFF),
        (b"\x1b[=5;1u", KEYBOARD_OFF),
        (b"\x1b[?u\x1b[<u", b""),
        (b"\x1b[>1u\x1b[?1049h\x1b[>5u", KEYBOARD_OFF + b"\x1b[?1049l" + KEYBOARD_OFF),
        (b"\x1b[?1049h\x1b[>5u\x1b[?1049l", b""),
        (b"\x1b[>4;2m", b"\x1b[>m\x1b[>4m"),
        (b"\x1b[>04:2m", b"\x1b[>m\x1b[>4m"),
        (b"\x1b[>4n", b"\x1b[>m\x1b[>4m"),
        (b"\x1b[>4;1f", b"\x1b[>f\x1b[>4f"),
        (b"\x1b=", b"\x1b>"),
        (b"\x1b=\x1b>", b"\x1b>"),
        (b"\x1b[2;5r", b"\x1b7\x1b[r\x1b8"),
        (b"\x1b[r", b""),
        (b"\x1b[5 q", b"\x1b[0 q"),
        (b"\x1b[ q", b""),
        (b"\x1bP=1s\x1b\\", b"\x1b[?2026l"),
        (b"\x1b]4;1;red\x07", PALETTE_OFF),
        (b"\x1b]4;1;?;2;red\x07", PALETTE_OFF),
        (b"\x1b]11;#000\x07\x1b]111\x07", COLOURS_OFF),
        (b"\x1b]10;?;red\x1b\\", COLOURS_OFF),
        (b"\x1b]11;?\x07\x1b]11;?\x1b\\\x1b]10;?;?\x07\x1b]4;1;?\x07\x1b]4;1;?;2;?\x1b\\", b""),
        (b"\x1b]P0123456", b"\x1b]R"),
        (b"\x1b]8;;https://evil\x07", b"\x1b]8;;\x1b\\"),
        (b"\x1b]8;id=1;https://x\x07x\x1b]8;;\x1b\\", b"\x1b]8;;\x1b\\"),
        (b"\x1b]9;4;3;\x07", b"\x1b]9;4;0;\x1b\\"),
        (b"\x1b]9;a notification\x07\x1b]133;A\x07", b""),
        (b"\x1b]7501;state=working:id=a\x07", b"\x1b]7501;state=clear\x1b\\"),
        (b"\x1b]7501;?\x07", b""),
        (b"\x1b]21337;indicator=#fff\x07", b"\x1b]21337;indicator=;status=;status-color=\x1b\\"),
        (b"\x0e", b""),
        (b"\x1b]0;unfinished\x1b[1m\x1b]0;unfin", b""),
    ],
)
def test_state_that_was_left_is_undone(codes: bytes, undoing: bytes) -> None:
    assert undone(codes + b"\x1b[m") == undoing


def test_other_character_set_alone_is_undone() -> None:
    output = OutputFilter()
    output.feed(b"\x0elqk")
    assert output.undo().endswith(b"\x0f")


def test_what_was_held_is_forgotten() -> None:
    output = OutputFilter()
    output.feed(b"\x1b]0;begun\xe2\x94")
    output.undo()
    assert output.feed(b"next") == b"next"


def test_undoing_passes_the_filter() -> None:
    output = OutputFilter()
    output.feed(b"".join(f"\x1b[{mode}h\x1b[{mode}l\x1b[{mode}h".encode() for mode in MODES))
    output.feed(b"\x1b[>1u\x1b[=1u\x1b[>4;1m\x1b=\x1b[1;2r\x1b[2 q\x1b]11;red\x07\x1b]P0123456")
    codes = output.undo()
    assert len(codes) > 100
    assert OutputFilter().feed(codes) == codes


def test_memory_is_bounded() -> None:
    """A program that puts the keyboard's state aside for ever, or numbers all modes there are."""
    output = OutputFilter()
    output.feed(b"\x1b[>1u" * 10_000)
    output.feed(b"".join(b"\x1b[?%dh\x1b[%dh\x1b[>%d;1m\x1b]%d;red\x07" % ((number,) * 4) for number in range(10_000)))
    assert len(output.undo()) < 1000
