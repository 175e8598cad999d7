"""How rows of names are written: separated by spaces, and `a{b,c}` means `ab` and `ac`, as in a shell."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Rows = tuple[tuple[str, str, str], ...]  # the group, the reason and the names


def spelled_out(written: str) -> Iterator[str]:
    """The names that are meant, in order."""
    for word in written.split():
        yield from _spelled(word) if "{" in word else (word,)


def _spelled(word: str) -> Iterator[str]:
    before, brace, rest = word.partition("{")
    if not brace:
        yield word
        return
    choices, _, after = rest.partition("}")
    for choice in choices.split(","):
        for end in _spelled(after):
            yield f"{before}{choice}{end}"
