"""What went wrong, what the user can do about it, and how a word of that is quoted for a shell."""

from __future__ import annotations

FAILED = 125
CANNOT_EXECUTE = 126
NOT_FOUND = 127
INTERRUPTED = 130
BROKEN_PIPE = 141

SUDO = "sudo "


def for_account(hint: str, uid: int) -> str:
    """The hint as this account types it: root needs no `sudo` before a command, and small machines have none.

    `sudo -u NAME` stays: in its place `su -c` would take the terminal away, and `runuser -u` would keep root's home.
    """
    if uid != 0 or SUDO not in hint:
        return hint
    import re

    # What stands in quotes is a path, or what is written into a file. A quote in a path is `\'`, and begins nothing.
    return re.sub(rf"('[^']*'|\\')|(?<![^ \n(]){SUDO}(?!-)", r"\1", hint)


class Problem(Exception):
    """Nothing is started. The message says why; the excerpt is the line of a file; the hint is what to type next."""

    def __init__(self, message: str, hint: str = "", status: int = FAILED, excerpt: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status
        self.excerpt = excerpt


SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")


def quote(word: str) -> str:
    """The word as a shell reads it. Invisible characters are spelled in octal: the terminal must not obey them."""
    if word and SAFE.issuperset(word):
        return word
    if word.isprintable():
        return "'" + word.replace("'", "'\\''") + "'"
    return "".join(_quote_run(run) for run in _runs(word))


def _runs(word: str) -> list[str]:
    """The word in pieces, cut wherever visible and invisible characters meet."""
    runs = [word[0]]
    for character in word[1:]:
        if _is_visible(character) == _is_visible(runs[-1][-1]):
            runs[-1] += character
        else:
            runs.append(character)
    return runs


def _is_visible(character: str) -> bool:
    # A line break is visible as such, and the shell would drop it at the end of `$(…)`.
    return character.isprintable() or character == "\n"


def _quote_run(run: str) -> str:
    if _is_visible(run[0]):
        return "'" + run.replace("'", "'\\''") + "'"
    octal = "".join(f"\\{byte:03o}" for byte in run.encode(errors="surrogateescape"))
    return f"\"$(printf '{octal}')\""
