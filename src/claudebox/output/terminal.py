"""Talks to people: it says, asks and shows. Standard output is only for data."""

from __future__ import annotations

import os
import sys

from claudebox.errors import BROKEN_PIPE, Declined, Problem, for_account
from claudebox.text import RED, WIDTH, Style, escape, fill, style_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TextIO

HEIGHT = 24  # lines, where nobody knows better
LONGEST_LINE_BYTES = 4096  # a terminal hands over no more at once
KEEP = "keep"
PAGER = "less -R"
WHAT_CAN_BE_ANSWERED = "Answer with a word of the question, or with its first letter; ? says what they do.\n"


def errors_style() -> Style:
    return _style_of(sys.stderr)


def output_style() -> Style:
    return _style_of(sys.stdout)


def _style_of(stream: TextIO) -> Style:
    is_terminal = stream.isatty()
    return style_for(is_terminal, dict(os.environ), _size_of(stream)[0] if is_terminal else WIDTH)


def errors_height() -> int:
    return _size_of(sys.stderr)[1]


def _size_of(stream: TextIO) -> tuple[int, int]:
    """Columns and lines. A terminal that does not know its size says zero."""
    try:
        columns, lines = os.get_terminal_size(stream.fileno())
    except OSError:
        return WIDTH, HEIGHT
    return columns or WIDTH, lines or HEIGHT


def say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def show(text: str) -> None:
    """Write data to standard output, whichever characters its encoding can express."""
    if sys.stdout is None:
        raise Problem("standard output is closed")
    data = text.encode(sys.stdout.encoding, errors="backslashreplace")
    try:
        while data:
            data = data[os.write(1, data) :]
    except BrokenPipeError:
        raise SystemExit(BROKEN_PIPE) from None
    except OSError as error:
        raise Problem(f"cannot write to standard output: {error.strerror}") from None


def can_ask() -> bool:
    return sys.stderr.isatty()


def ask(question: str) -> str:
    """Ask on the terminal itself: standard input may be a pipe with the prompt for claude.

    What was typed before the question was not meant for it, and is thrown away. End of input is a no.
    """
    if not can_ask():
        raise nobody_to_ask()
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        if not os.isatty(0):
            raise nobody_to_ask() from None
        terminal = os.dup(0)
    try:
        _throw_away_input(terminal)
        os.write(2, question.encode())
        # Read the whole line: the rest of it would go to whatever reads next, perhaps a shell.
        line = os.read(terminal, LONGEST_LINE_BYTES)
    finally:
        os.close(terminal)
    if not line:
        os.write(2, b"\n")  # nobody has ended the line of the question
        return "no"
    return line.decode(errors="replace").strip().lower()


def _throw_away_input(terminal: int) -> None:
    import termios

    try:
        termios.tcflush(terminal, termios.TCIFLUSH)
    except termios.error:  # the terminal is gone, or belongs to others by now
        raise nobody_to_ask() from None


def says_yes(question: str) -> bool:
    return ask(question) in ("y", "yes")


def choose(asking: Callable[[str], str], question: str, words: dict[str, str], default: str) -> tuple[str, str]:
    """Ask for one of the words, or its first letter. Returns the word, and what was typed behind it.

    A bare Enter is the default, `?` says what each word does. A no keeps everything, and so it is if nobody can be
    asked.
    """
    while True:
        try:
            said, _, rest = (asking(question) or default).partition(" ")
        except Problem:
            return KEEP, ""
        said = KEEP if said in ("n", "no") else said
        for word in words:
            if said in (word, word[0]):
                return word, rest.strip()
        explained = "".join(f"  {word:<12}{does}\n" for word, does in words.items())
        say(explained if said == "?" else WHAT_CAN_BE_ANSWERED)


def numbers_in(said: str, most: int) -> set[int]:
    """The numbers of a list that somebody typed: `1 3-5, 8`. None, if a word is not one of them: it may be a slip."""
    found: set[int] = set()
    for word in said.replace(",", " ").split():
        first, dash, last = word.partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal()):
            return set()
        numbers = range(int(first), min(int(last), most) + 1)
        if not numbers or 0 in numbers:
            return set()
        found.update(numbers)
    return found


def no_such_number(most: int) -> str:
    """What is said if `numbers_in` found none."""
    return f"Answer with numbers of the list: {'1' if most == 1 else f'1 to {most}'}.\n"


def nobody_to_ask() -> Problem:
    return Problem("there is no terminal to ask on, and nobody said yes", "to go on without the question: --yes")


def show_problem(problem: Problem, uid: int = -1) -> None:
    """Show it, with the hint as the account of this number would type it."""
    if isinstance(problem, Declined):
        say(f"claudebox: {problem.message}\n")
        return
    # Paths stay whole, so that they can be copied.
    message = fill(escape(problem.message).split(" "), len("error: "), break_words=False)
    text = errors_style().paint("error", RED) + ": " + "\n       ".join(message) + "\n"
    if problem.hint:
        first, *rest = for_account(problem.hint, uid).split("\n")
        text += f"\nhint: {escape(first)}\n" + "".join(f"{escape(line)}\n" for line in rest)
    sys.stderr.write(text)


def page(lines: Iterable[str], home: str) -> None:
    """Show lines in the pager that the user has chosen. Standard output is not the terminal's when a box has ended.

    Of git, only the user's own configuration counts. A repository may name programs, too: those would be the agent's.
    """
    import subprocess

    from claudebox.host import read_host
    from claudebox.host.programs import trusted_path
    from claudebox.state.reach import reach_of

    host = read_host()
    # Without entries of PATH that an agent can write: the pager would come from there.
    path = trusted_path(host, reach_of(host))
    less = {"LESS": os.environ.get("LESS", "FRX"), "LESSSECURE": "1"}
    words = ["/bin/sh", "-c", users_pager(home)]
    terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    environ = {**host.environ, "PATH": path, **less}
    pager = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=terminal, cwd="/", env=environ)
    os.close(terminal)
    assert pager.stdin is not None
    try:
        for line in lines:
            pager.stdin.write(f"{line}\n".encode(errors="backslashreplace"))
        pager.stdin.close()
    except BrokenPipeError:
        pass  # they have seen enough
    while True:
        try:
            pager.wait()
            return
        except KeyboardInterrupt:
            continue  # less takes it for its own


def users_pager(home: str) -> str:
    """What the user's own configuration of git says, never the repository's; else their variable."""
    from claudebox.host.git import host_configs, load_config
    from claudebox.host.tree import Tree

    configs = host_configs(dict(os.environ), home)
    said = {name: value for config in configs for name, value in load_config(Tree(), config, home, "")}
    return said.get("pager.diff") or said.get("core.pager") or os.environ.get("PAGER", "") or PAGER
