"""What is shown was partly chosen by others: a name or a value must not be able to rewrite the screen."""

import re
import unicodedata
from collections.abc import Mapping

import pytest

from conftest import Box
from terminal.pseudoterminal import PLAIN, claudebox_terminal

pytestmark = pytest.mark.req("UX-01")

CLEAR_SCREEN = "\x1b[2J"
COLOUR = re.compile(r"\x1b\[\d*m")


def shown(
    box: Box, *arguments: str, cwd: str = "", env: Mapping[str, str | None] | None = None
) -> tuple[int, list[str]]:
    """The exit status and the lines on the terminal, as they were sent to it."""
    with claudebox_terminal(box, *arguments, cwd=box.project / cwd, env=env) as opened:
        status = opened.wait()
        return status, opened.read_all().split("\r\n")


def unsafe(lines: list[str]) -> list[str]:
    """Characters, other than our own colours and tabs, that a terminal would act on or hide."""
    text = "".join(COLOUR.sub("", line) for line in lines)
    return sorted({character for character in text if not character.isprintable() and character != "\t"})


def too_wide(lines: list[str]) -> list[str]:
    def width(line: str) -> int:
        columns = {"W": 2, "F": 2}
        return sum(
            0 if unicodedata.combining(character) else columns.get(unicodedata.east_asian_width(character), 1)
            for character in line
        )

    return [line for line in lines if width(COLOUR.sub("", line)) > 80]


SCREENS = [("--yes", "--run", "true"), ("--audit", "--run", "true")]


@pytest.mark.parametrize("screen", SCREENS)
def test_screens_have_colours_and_fit_80_columns(box: Box, screen: tuple[str, ...]) -> None:
    status, lines = shown(box, *screen)
    assert (status, unsafe(lines), too_wide(lines)) == (0, [], [])
    assert any(COLOUR.search(line) for line in lines)


@pytest.mark.parametrize(
    "env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": None}], ids=["NO_COLOR", "dumb", "unset"]
)
@pytest.mark.parametrize("screen", [*SCREENS, ("--mount-ro", "/no/such")])
def test_no_colour_where_it_is_not_welcome(box: Box, screen: tuple[str, ...], env: dict[str, str | None]) -> None:
    _, lines = shown(box, *screen, env=env)
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize("screen", SCREENS)
def test_no_colour_in_a_file(box: Box, screen: tuple[str, ...]) -> None:
    result = box.claudebox(*screen)
    assert "\x1b" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    "name",
    ["名前" * 30, "e\u0301" * 60, "👩💻" * 30, "long/" * 60 + "end", "x" * 250, "two  spaces"],
    ids=["wide", "combining", "emoji", "deep", "long", "spaces"],
)
@pytest.mark.parametrize("screen", SCREENS)
def test_strange_but_visible_names_keep_the_screen_in_shape(box: Box, name: str, screen: tuple[str, ...]) -> None:
    box.account.write(box.project / name / "README.md")
    status, lines = shown(box, *screen, cwd=name)
    assert (status, unsafe(lines), too_wide(lines)) == (0, [], [])
    assert name.replace(" ", "") in COLOUR.sub("", "".join(lines)).replace(" ", "")


@pytest.mark.parametrize("text", [CLEAR_SCREEN, "a\nb", "\u202e", "\x9b2J"], ids=ascii)
@pytest.mark.parametrize("screen", [*SCREENS, ("--dry-run", "--run", "true")], ids=["launch", "audit", "dry-run"])
def test_hostile_text_is_shown_escaped(box: Box, screen: tuple[str, ...], text: str) -> None:
    """In a variable, an argument, a mount, TERM and the identity for git."""
    data = box.account.write(box.account.home / f"data{text}" / "file").parent
    box.account.write(box.account.home / ".gitconfig", f'[user]\n\tname = "Eve{text}"\n\temail = eve@example.com\n')
    arguments = (screen[0], "--env", f"X={text}", "--mount-ro", str(data), *screen[1:], text)
    for env in ({}, {"TERM": f"xterm{text}"}):
        assert unsafe(shown(box, *arguments, env=env)[1]) == []


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("option", ["CLAUDEBOX_CLAUDE", "CLAUDEBOX_BWRAP", "--mount-ro", "--mount-rw", "--env"])
@pytest.mark.parametrize(
    "text", [f"/no{CLEAR_SCREEN}", f"/no\n{CLEAR_SCREEN}", f"README.md\n{CLEAR_SCREEN}"], ids=ascii
)
def test_hostile_text_in_an_error_is_shown_escaped(box: Box, option: str, text: str) -> None:
    if text.startswith("README"):
        box.account.write(box.project / text)  # there, but not executable
    words, environ = ((option, text), {}) if option.startswith("--") else ((), {option: text})
    status, lines = shown(box, *words, "--yes", env=PLAIN | environ)
    assert (status != 0, unsafe(lines)) == (True, [])
