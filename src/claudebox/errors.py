"""What went wrong, what the user can do about it, and how a word of that is quoted for a shell."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import suppress as suppress
else:

    class suppress:
        """Go on behind the `with` if it ends with one of these errors. `contextlib` takes milliseconds to import."""

        def __init__(self, *errors):
            self.errors = errors

        def __enter__(self):
            pass

        def __exit__(self, kind, *_):
            return kind is not None and issubclass(kind, self.errors)


FAILED, CANNOT_EXECUTE, NOT_FOUND, INTERRUPTED, BROKEN_PIPE = 125, 126, 127, 130, 141  # exit statuses

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
    """Nothing is started. The message says why; the hint is what to type next."""

    def __init__(self, message: str, hint: str = "", status: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status


class Declined(Problem):
    """Somebody was asked and said no: that is no error."""


SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")


def quote(word: str) -> str:
    """The word as a shell reads it. Invisible characters are spelled in octal: the terminal must not obey them."""
    if word and SAFE.issuperset(word):
        return word
    if word.replace("\n", "").isprintable():
        return "'" + word.replace("'", "'\\''") + "'"
    # By lines: the shell would drop a line break at the end of `$(…)`.
    return "'\n'".join(f"\"$(printf '{_spelled(line)}')\"" for line in word.split("\n"))


def _spelled(line: str) -> str:
    octal = ("".join(f"\\{byte:03o}" for byte in one.encode(errors="surrogateescape")) for one in line)
    return "".join(one if one in SAFE.difference("%-") else code for one, code in zip(line, octal, strict=True))
