"""What passes to the user's terminal and what does not, for every reading that terminals have of it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudebox.launch.parent import escape_codes, escape_rules
from claudebox.launch.parent.escape_codes import OutputFilter
from unit.launch.parent.terminal_model import DIALECTS, EIGHT_BIT_DIALECT, Action, Dialect, Terminal

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


USEFUL = (
    *(b"\x1b]0;a title\x07", b"\x1b]2;\xe2\x9c\xb3 Claude\x1b\\", b"\x1b]0;\x07", b"\x1bkbash\x1b\\"),
    *(b"\x1b]11;?\x07", b"\x1b]10;?\x1b\\", b"\x1b]4;1;?\x1b\\", b"\x1b]4;1;rgb:00/11/22;2;#fff\x07", b"\x1b]104\x07"),
    *(b"\x1b]12;red\x07", b"\x1b]112\x07", b"\x1b]104;255\x07", b"\x1b]P0a1b2c3", b"\x1b]R"),
    *(b"\x1b]8;;https://example.com/?a=b;c\x07link\x1b]8;;\x07", b"\x1b]8;id=1;file://host/a%20b\x1b\\x\x1b]8;;\x1b\\"),
    *(b"\x1b]9;4;0;\x07", b"\x1b]9;4;1;50\x07", b"\x1b]9;4;3\x07", b"\x1b]9;Claude is waiting\x07"),
    *(b"\x1b]99;i=7:d=0:p=title;Claude Code\x1b\\", b"\x1b]99;i=7:p=body;done\x07", b"\x1b]99;i=7:d=1:a=focus;\x07"),
    *(b"\x1b]99;;hello\x07", b"\x1b]777;notify;title;body\x07"),
    *(b"\x1b]133;A;redraw=0\x07", b"\x1b]133;C\x07\x1b]133;D\x07", b"\x1b]133;D;0\x07"),
    *(
        b"\x1b]7501;?\x1b\\",
        b"\x1b]7501;state=working:id=a:title=b\x07",
        b"\x1b]21337;indicator=;status=;status-color=\x07",
    ),
    *(
        b"\x1bP$q q\x1b\\",
        b"\x1bP$qm\x1b\\",
        b"\x1bP+q544e;524742\x1b\\",
        b"\x1bP=1s\x1b\\\x1bP=2s\x1b\\",
        b"\x1bPzz\x1b\\",
    ),
    *(b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\", b"\x1b_Gm=0;" + b"A" * 4096 + b"\x1b\\", b"\x1b_Ga=d\x1b\\"),
    *(b"\x1b[22;0;0t", b"\x1b[23;0;0t", b"\x1b[14t", b"\x1b[18t", b"\x1b[6n", b"\x1b[?6n", b"\x1b[?996n", b"\x1b[5n"),
    *(
        b"\x1b[c",
        b"\x1b[>c",
        b"\x1b[=c",
        b"\x1b[>0q",
        b"\x1b[?2026$p",
        b"\x1b[?u",
        b"\x1b[>1u",
        b"\x1b[<u",
        b"\x1b[=5;1u",
    ),
    *(b"\x1b[?1049h\x1b[?25l\x1b[?1000;1002;1006h", b"\x1b[>4;2m", b"\x1b[?4m", b"\x1b[!p", b"\x1b[2 q", b"\x1b[4:3m"),
    *(
        b"\x1b[38;2;1;2;3m",
        b"\x1b[58:2::1:2:3m",
        b"\x1b[1;24r",
        b"\x1b[s\x1b[u",
        b"\x1b[4h\x1b[4l",
        b"\x1b[3J",
        b"\x1b[0%m",
    ),
    *(
        b"\x1b7\x1b8",
        b"\x1b=\x1b>",
        b"\x1b(0lqk\x1b(B",
        b"\x1b)0\x0e\x0f",
        b"\x1bM\x1bD\x1bE\x1bH",
        b"\x1bc",
        b"\x1b%G",
    ),
    *(
        "ä€╝─🎉\u00a0".encode(),
        b"\x00\x08\t\n\x0b\x0c\r\x7f\x07",
        b"caf\xe9 \xa0\xff\xfe",
        b"\xe2\x94",
        b"\xf0\x9f\x98",
    ),
)


@pytest.mark.parametrize("code", USEFUL)
def test_useful_codes_pass(code: bytes) -> None:
    text = b"before " + code + b" after"
    assert filtered(text) in (text, text.replace(b"\x94", b"").replace(b"\x9f", b"").replace(b"\x98", b""))


# What does not pass.

DANGEROUS_STRINGS = {
    b"]52;c;aGVsbG8=": "plants into the clipboard",
    b"]52;c;?": "reads the clipboard",
    b"]52;;aGVsbG8=": "the same, without saying which",
    b"]052;c;aGVsbG8=": "the same number",
    b"]65588;c;aGVsbG8=": "52 for who counts up to 65535",
    b"]4294967348;c;aGVsbG8=": "52 for who counts up to 4294967295",
    b"]5522;type=read;dGV4dC9wbGFpbg==": "reads the clipboard of kitty",
    b"]1337;Copy=:aGVsbG8=": "plants into the clipboard of iTerm2",
    b"]1337;CopyToClipboard=": "plants what follows",
    b"]1337;File=name=LmJhc2hyYw==:aGVsbG8=": "stores a file",
    b"]1337;SetUserVar=a=b": "runs what the user has bound to it",
    b"]1337;RequestUpload=format=tgz": "sends files",
    b"]1337;ReportVariable=c2Vzc2lvbi5uYW1l": "types a variable",
    b"]1337;CurrentDir=/tmp/evil": "the next tab starts in a repository that runs code",
    b"]7;file:///tmp/evil": "the same",
    b"]9;9;/tmp/evil": "the same",
    b"]633;P;Cwd=/tmp/evil": "the same",
    b"]633;E;rm -rf ~": "a command that the editor repeats",
    b"]133;B": "what follows becomes a command to repeat",
    b"]133;A;cl=line": "makes clicks type",
    b']9;6;Shell("cmd")': "a macro of ConEmu",
    b"]9;7;cmd": "starts a program",
    b"]9;2;message": "opens a window",
    b"]99;i=1:p=?;": "is answered, with a text that the program has chosen",
    b"]99;i=1:a=report;x": "is answered when somebody clicks",
    b"]99;p=close:i=1:c=1;x": "is answered when it is closed",
    b"]777;precmd": "the shell of a container",
    b"]777;container;push;evil;toolbox;": "the next tab enters it",
    b"]50;?": "types the name of a font",
    b"]50;SetProfile=evil": "changes what Konsole does",
    b']51;["call","Tapi_evil",[]]': "calls a function of vim",
    b"]51;Eevil": "calls a function of emacs",
    b"]46;/tmp/log": "writes a log",
    b"]3;WM_CLASS=evil": "changes properties of the window",
    b"]21;evil text=?": "is answered with the text",
    b"]2;?": "some terminals type the title",
    b"]l": "title of a Sun",
    b"]83;exec sh": "commands of screen",
    b"]5379;exec sh": "commands of mlterm",
    b"]8;;ssh://-oProxyCommand=evil/": "a link that starts a program",
    b"]8;;vscode://evil": "the same",
    b"]8;;javascript:evil": "the same",
    b"Ptmux;\x1b\x1b]52;c;aGVsbG8=\x07": "goes round tmux",
    b"P\x1b]52;c;aGVsbG8=\x07": "goes round screen",
    b'P@kitty-cmd{"cmd":"launch"}': "remote control of kitty",
    b"P0;1|17/6c730d": "programs a key",
    b"P$q;id\r": "is echoed (CVE-2008-2383)",
    b"P$qevil": "is echoed",
    b"P+p436f=31": "changes what keys send",
    b"P0;0;0!z616263": "stores a text to play back",
    b"P1;1;4;8;0;2;16;0{ @": "other shapes for letters",
    b"P1$t1;1;1": "restores a state",
    b"P1000p": "control mode of tmux",
    b"Pq#0;2;0;0;0#0~~": "sixel pictures have no bound",
    b"_Gt=f,a=T;L2V0Yy9wYXNzd2Q=": "a picture from a file",
    b"_Ga=T,t=t;L3RtcC94": "the same, and the file is removed",
    b"_Ga=T,t=s;L3g=": "from shared memory",
    b"_Gt=d,t=f;L3g=": "the later one counts",
    b"_Ga=T, t=f;L3g=": "a blank in between",
    b"_evil": "the title of tmux and screen",
    b"^evil": "a message",
    b"Xevil": "a start of string",
}


@pytest.mark.parametrize("body", DANGEROUS_STRINGS, ids=DANGEROUS_STRINGS.values())
def test_dangerous_strings_do_not_pass(body: bytes) -> None:
    assert _forbidden_actions(b"\x1b" + body + b"\x1b\\"), "the model of a terminal does not see the danger"
    for end in (*ENDS, b"\x1b\\\x07", b"\x9c", b"\xc2\x9c", b"\x18", b"\x1a", b"\x1b[m", b""):
        passed = filtered(b"before \x1b", body, end)
        assert re.sub(rb"\x1b\\|\x1b\[m|\x07|\x1a", b"", passed) == b"before ", passed


DANGEROUS_CODES = {
    b"\x05": "answerback",
    b"**\x18B00000000000000": "ZMODEM",
    b"\x1b[20t": "types the icon's title",
    b"\x1b[21t": "types the title",
    b"\x1b[021t": "the same number",
    b"\x1b[21;1t": "the same",
    b"\x1b[21:1t": "the same",
    b"\x1b[65557t": "21 for who counts up to 65535",
    b"\x1b[4294967317t": "21 for who counts up to 4294967295",
    b"\x1b[2t": "hides the window",
    b"\x1b[8;1;1t": "makes it small",
    b"\x1b[>2t": "titles in hexadecimal",
    b"\x1b[i": "prints the screen",
    b"\x1b[4i": "ends printing",
    b"\x1b[5i": "prints what follows",
    b"\x1b[?5i": "the same",
    b"\x1b[1;1;1;1;1;1*y": "a checksum of the screen",
    b"\x1b[1*z": "plays back what was stored",
    b"\x1b[1$w": "reports the cursor's state",
    b"\x1b[1$u": "reports the terminal's state",
    b"\x1b[7n": "rxvt types the display's name",
    b"\x1b[1'z": "mouse of DEC",
    b"\x1b[?2l": "VT52",
    b"\x1b[?1;2l": "the same among others",
    b"\x1b[?02l": "the same number",
    b"\x1b[?65538l": "2 for who counts up to 65535",
    b"\x1b[2h": "locks the keyboard",
    b'\x1b[61"p': "VT100",
    b"\x1b[12;3]": "changes to another console",
    b"\x1b%@": "leaves UTF-8",
    b"\x1b G": "answers in eight bits",
    b"\x1b!x": "a message of screen",
    b"\x1b[1?2h": "no code of any terminal",
    b"\x9b21t": "eight bits",
    b"\xc2\x9b21t": "in UTF-8",
    b"\xc0\x9b[21t": "an overlong ESC",
    b"\xe0\x80\x9b[21t": "the same",
    b"\xe0\x82\x9b21t": "an overlong CSI",
    b"\x1b\x9b21t": "two beginnings",
    b"\x1b\n[21t": "a line feed inside",
    b"\x1b[2\n1t": "the same",
    b"\x1b[\x7f21t": "a delete inside",
    b"\x1b[2\x051t": "an ENQ inside",
    b"\x1b\x05[21t": "what is left when it is taken out",
    b"\x1b[2\xc2\x9c1t": "the same",
    b"\x1b\x18\x1b\x1b[21t": "broken off",
}


# Dangerous to a terminal that the model does not know, or only if the filter took out what is in the middle.
NOT_IN_THE_MODEL = (
    *(b"**\x18B00000000000000", b"\x1b[1?2h", b"\x1b!x"),
    *(b"\x1b[2\x051t", b"\x1b\x05[21t", b"\x1b[2\xc2\x9c1t"),
)


@pytest.mark.parametrize("code", DANGEROUS_CODES, ids=DANGEROUS_CODES.values())
def test_dangerous_codes_do_not_pass(code: bytes) -> None:
    assert _forbidden_actions(code) or code in NOT_IN_THE_MODEL
    passed = filtered(code)
    assert b"\x1b" not in passed
    assert _forbidden_actions(passed) == []


def test_without_utf8_every_byte_may_be_a_control_code() -> None:
    """In a box-drawing character is a byte that begins a string, to a terminal that reads bytes."""
    plant = "╝52;c;aGVsbG8=\x07".encode()
    assert _forbidden_actions(filtered(plant), (EIGHT_BIT_DIALECT,))
    passed = OutputFilter(is_utf8=False).feed(plant)
    assert _forbidden_actions(passed, (EIGHT_BIT_DIALECT,)) == []
    assert OutputFilter(is_utf8=False).feed(b"caf\xe9 \x1b[1m\xa0") == b"caf\xe9 \x1b[1m\xa0"


def test_what_follows_a_dropped_string_passes() -> None:
    assert (
        filtered(b"a\x1b]52;c;eA==\x07b\x1b]52;c;eA==\x1b\\c\x1b]52;c;eA==\xc2\x9cd\x1b]52;\x1b[1me") == b"abcd\x1b[1me"
    )


# Properties, for whatever a program may send.

PIECES = st.sampled_from(
    [
        *(bytes([byte]) for byte in range(0x20)),
        *(
            b"\x1b",
            b"\x1b]",
            b"\x1bP",
            b"\x1b_",
            b"\x1b^",
            b"\x1bX",
            b"\x1bk",
            b"\x1b[",
            b"\x1b[?",
            b"\x1b[>",
            b"\x1b\\",
        ),
        *(bytes([byte]) for byte in range(0x80, 0xA0)),
        *(b"\xc2" + bytes([byte]) for byte in (0x85, 0x90, 0x98, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F)),
        *(
            b"\xc2",
            b"\xe2",
            b"\xe2\x95\x9d",
            b"\xe2\x94",
            b"\xf0\x9f",
            b"\xc0\x9b",
            b"\xe0\x80\x9b",
            b"\xff",
            b"\xed\xa0\x80",
        ),
        *(b"52;c;aGk=", b"0;title", b"8;;https://x", b"9;6;x", b"10;?", b"4;1;red", b"tmux;", b"$q", b"+q41", b"Gt=f;"),
        *(
            b"Gt=d;AA",
            b"21",
            b"2",
            b"1049",
            b"5",
            b";",
            b":",
            b"t",
            b"i",
            b"h",
            b"l",
            b"n",
            b"*y",
            b"m",
            b"u",
            b"r",
            b"p",
        ),
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


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@given(data=OUTPUT)
def test_no_terminal_does_what_is_forbidden(dialect: Dialect, data: bytes) -> None:
    output = OutputFilter()
    passed = output.feed(data) + output.undo()
    assert _forbidden_actions(passed, (dialect,)) == [], passed


@given(OUTPUT)
def test_no_terminal_of_one_byte_does_what_is_forbidden(data: bytes) -> None:
    passed = OutputFilter(is_utf8=False).feed(data)
    assert _forbidden_actions(passed, (EIGHT_BIT_DIALECT,)) == []


@given(OUTPUT)
def test_after_the_end_every_terminal_shows_text(data: bytes) -> None:
    """Whatever the program was in the middle of: the next prompt is not taken for a part of it."""
    output = OutputFilter()
    passed = output.feed(data)
    passed += output.undo()
    for dialect in DIALECTS:
        terminal = Terminal(dialect)
        terminal.read(passed)
        assert terminal.state == "ground", (dialect.name, passed)


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
    refused = {ending for row in escape_rules.CONTROL_SEQUENCES for ending in row.endings}
    assert refused.isdisjoint(harmless)
    assert set("hlrutnqi").isdisjoint(harmless)


def test_document_shows_the_tables() -> None:
    document = (CHECKOUT / "docs" / "terminal.md").read_text()
    rows = [*escape_rules.OSC, *escape_rules.DCS, *escape_rules.APC, *escape_rules.SCREEN_TITLE, *escape_rules.ESCAPES]
    said = [
        *(row.meaning for row in rows),
        *(row.reason for row in escape_rules.CONTROL_SEQUENCES),
        *escape_rules.CONTROLS.values(),
        *(meaning for _, meaning in escape_rules.MODES.values()),
    ]
    assert [meaning for meaning in said if meaning not in document] == []


# What no terminal may be told, said in another way than the filter says it.

KNOWN_OSC = {0, 1, 2, 4, 5, 8, 9, *range(10, 20), 99, 104, 105, *range(110, 120), 133, 777, 7501, 21337}
FORBIDDEN_ENDINGS = {"i", "?i", "*y", "*z", "$w", "$u", "&u", "'w", "'z", "'{", "'|", '"p', "$}", "$~", "]", ">t", ">T"}


def _forbidden_actions(data: bytes, dialects: tuple[Dialect, ...] = DIALECTS) -> list[Action]:
    """What at least one of the terminals would do."""
    return [action for dialect in dialects for action in Terminal(dialect).read(data) if _is_forbidden(action)]


def _is_forbidden(action: Action) -> bool:
    judge = {"control": _bad_control, "escape": _bad_escape, "csi": _bad_csi, "osc": _bad_osc}
    strings = {"dcs": _bad_dcs, "apc": _bad_apc, "title": _has_control}
    found = {**judge, **strings}.get(action.kind)
    return True if found is None else found(action)  # PM, SOS, a message of screen


def _bad_control(action: Action) -> bool:
    return action.text == "\x05"


def _bad_escape(action: Action) -> bool:
    return action.text in ("%@", "%8", " G", "Z", "n", "o", "N", "O")


def _bad_csi(action: Action) -> bool:
    first = [number % wrap for number in action.numbers[:1] for wrap in (1 << 16, 1 << 32)]
    every = [number % wrap for number in action.numbers for wrap in (1 << 16, 1 << 32)]
    if action.ending == "t":
        return any(number < 11 or number in (20, 21) or number > 23 for number in first)
    if action.ending == "n":
        return 7 in first or 8 in first
    if action.ending in ("h", "l", "?h", "?l"):
        return 2 in every
    return action.ending in FORBIDDEN_ENDINGS


def _bad_osc(action: Action) -> bool:
    digits = re.match(r"[0-9]*", action.text)
    assert digits is not None
    if not digits[0]:
        return action.text[:1] not in ("P", "R")  # the palette of the Linux console
    rest = action.text[digits.end() :]
    number = int(digits[0])
    commands = {
        9: r";(?!4;|4$)[0-9]",
        777: r";(?!notify;)",
        133: r";(?![ACD]$|A;redraw=0$|D;[0-9]+$)",
        2: r";\?$",
        8: r";[^;]*;(?!http|file:|mail|$)",
    }
    is_command = number in commands and re.match(commands[number], rest) is not None
    is_answered = number == 99 and re.search(r"\?|report|close|c=", rest.split(";")[1]) is not None
    return number not in KNOWN_OSC or is_command or is_answered or _has_control(action)


def _bad_dcs(action: Action) -> bool:
    return _has_control(action) or not re.match(r"\$q.{1,2}$|\+q[0-9A-Fa-f;]+$|=[12]s$|zz$", action.text)


def _bad_apc(action: Action) -> bool:
    keys = action.text[1:].split(";")[0].replace(" ", "").split(",")
    from_outside = any(key.startswith("t=") and key != "t=d" for key in keys)
    return _has_control(action) or not action.text.startswith("G") or from_outside


def _has_control(action: Action) -> bool:
    return re.search(r"[\x00-\x1f\x7f-\x9f]", action.text) is not None
