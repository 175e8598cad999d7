"""Quotes words for a POSIX shell."""

from __future__ import annotations

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
