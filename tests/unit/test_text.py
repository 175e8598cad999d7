"""Text for a terminal, a shell and an eye."""

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.errors import for_account, quote
from claudebox.output.terminal import no_such_number, numbers_in
from claudebox.text import WIDTH, Style, cut, escape, fill, style_for, table_row, width

QUICK = settings(deadline=None, max_examples=100)

words = st.text(alphabet="ab/:é日本👍\u0301", min_size=1, max_size=120) | st.text(
    alphabet="abc", min_size=1, max_size=9
)


@QUICK
@given(st.lists(words, max_size=20), st.integers(0, 40))
def test_fill_loses_nothing(given_words: list[str], indent: int) -> None:
    assert "".join(fill(given_words, indent)).replace(" ", "") == "".join(given_words)


@pytest.mark.req("UX-01")
@QUICK
@given(st.lists(words, max_size=20), st.integers(0, 40))
def test_fill_stays_within_the_screen(given_words: list[str], indent: int) -> None:
    assert all(indent + width(line) <= WIDTH for line in fill(given_words, indent))


@QUICK
@given(st.lists(st.text(alphabet="abc", min_size=1, max_size=30), max_size=20), st.integers(0, 40))
def test_fill_breaks_only_between_words_that_fit(given_words: list[str], indent: int) -> None:
    assert " ".join(fill(given_words, indent)).split(" ") == (given_words or [""])


@QUICK
@given(words, st.integers(2, 40))
def test_cut_text_fits_and_says_that_it_is_cut(word: str, room: int) -> None:
    shown = cut(word, room)
    assert width(shown) <= room
    assert shown == word or (shown.endswith("…") and word.startswith(shown[:-1]))


@QUICK
@given(st.text(alphabet="ab", max_size=30), st.lists(words, max_size=6))
def test_table_row_stays_within_the_screen(label: str, given_words: list[str]) -> None:
    assert all(width(line) <= WIDTH for line in table_row(label, given_words, 19, Style(False)))


@pytest.mark.req("UX-01")
@QUICK
@given(st.text())
def test_escaped_text_moves_no_cursor(text: str) -> None:
    shown = escape(text)
    assert shown.isprintable()
    assert shown != text or text.isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本", "plain é 日本"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\x9b31m", "\\x9b31m"),
        ("a\ufe0f\u3164\u2800\u115f\uffa0\U000e0101", "a\\ufe0f\\u3164\\u2800\\u115f\\uffa0\\ue0101"),
        (os.fsdecode(b"latin-1 \xe9"), "latin-1 \\xe9"),
    ],
)
def test_what_would_deceive_is_made_visible(text: str, shown: str) -> None:
    assert escape(text) == shown


@pytest.mark.req("UX-04")
@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=12))
def test_quoted_words_survive_a_real_shell(given_words: list[str]) -> None:
    script = "printf '%s\\0' " + " ".join(quote(word) for word in given_words) if given_words else ":"
    output = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True).stdout
    assert output.decode().split("\0")[:-1] == given_words


@pytest.mark.req("UX-04")
def test_bytes_that_are_not_text_survive_a_real_shell() -> None:
    word = os.fsdecode(bytes(range(1, 256)))
    output = subprocess.run(["/bin/sh", "-c", f"printf %s {quote(word)}"], capture_output=True, check=True).stdout
    assert output == bytes(range(1, 256))


@pytest.mark.req("UX-01")
@pytest.mark.parametrize(
    ("is_terminal", "environ", "colour"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {}, False),
        (False, {"TERM": "xterm"}, False),
    ],
)
def test_colour_only_where_it_is_welcome(is_terminal: bool, environ: dict[str, str], colour: bool) -> None:
    style = style_for(is_terminal, environ)
    assert style == Style(colour)
    assert style.paint("text", "1") == ("\x1b[1mtext\x1b[0m" if colour else "text")


# A hint is what this account can type.


ROOT, SOMEBODY = 0, 1000
IN_QUOTES = quote("/home/it's my sudo directory")
HINTS = {
    "sudo apt install passt": "apt install passt",
    "sudo apt install x && sudo adduser $USER y": "apt install x && adduser $USER y",
    "echo a=1 | sudo tee /etc/x": "echo a=1 | tee /etc/x",
    "to allow it:\n   sudo sysctl -w a=0\n   sudo modprobe b": "to allow it:\n   sysctl -w a=0\n   modprobe b",
    "(on Debian: sudo apt install a), or (sudo b)": "(on Debian: apt install a), or (b)",
    "echo 'KERNEL' | sudo tee /etc/x": "echo 'KERNEL' | tee /etc/x",
    # Not a command of its own.
    "start it as that account: sudo -u alice claudebox": "start it as that account: sudo -u alice claudebox",
    "sudo chmod u-s '/home/my sudo programs/bwrap'": "chmod u-s '/home/my sudo programs/bwrap'",
    f"sudo rm {IN_QUOTES}\n   sudo ls {IN_QUOTES}": f"rm {IN_QUOTES}\n   ls {IN_QUOTES}",
    "mv /opt/pseudo x": "mv /opt/pseudo x",
    "": "",
}


@pytest.mark.req("UX-05")
@pytest.mark.parametrize(("hint", "typed"), HINTS.items())
def test_root_needs_no_sudo(hint: str, typed: str) -> None:
    assert for_account(hint, ROOT) == typed
    assert for_account(hint, SOMEBODY) == hint


# What somebody types at a question, as it is understood.


@pytest.mark.req("LAND-01")
@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("1 3-5", {1, 3, 4, 5}),
        ("2,4", {2, 4}),
        ("1-999999999", {1, 2, 3, 4, 5, 6}),
        ("x", set()),
        ("1 x", set()),
        ("1 7", set()),
        ("0", set()),
        ("0-3", set()),
        ("2-", set()),
        ("5-3", set()),
        ("-", set()),
        ("", set()),
    ],
)
def test_numbers_that_are_typed(said: str, numbers: set[int]) -> None:
    assert numbers_in(said, 6) == numbers


def test_which_numbers_there_are_is_said() -> None:
    assert [no_such_number(most) for most in (1, 6)] == [
        "Answer with numbers of the list: 1.\n",
        "Answer with numbers of the list: 1 to 6.\n",
    ]
