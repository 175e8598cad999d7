"""The difference of two texts, line by line. An agent wrote one of them, so the work for it has an end."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Steps that difflib may take: at worst, it looks at every pair of equal lines once for each line. This many take it a
# few seconds.
MOST_STEPS = 30_000_000
POPULAR_SINCE = 200  # lines: from there on, difflib leaves out those that are more than one in a hundred


def unified(old: list[str], new: list[str], around: int = 3) -> Iterator[str]:
    """The lines of the difference, without the names of the files.

    Where it would take too long to find out which lines stayed, all of them were replaced.
    """
    if _steps(old, new) > MOST_STEPS:
        yield f"@@ -1,{len(old)} +1,{len(new)} @@"
        yield from (f"-{line}" for line in old)
        yield from (f"+{line}" for line in new)
        return
    import difflib

    for number, line in enumerate(difflib.unified_diff(old, new, lineterm="", n=around)):
        if number >= 2:  # a line of the file may look like a name, too: `++i` becomes `+++i`
            yield line


def _steps(old: list[str], new: list[str]) -> int:
    counts: dict[str, int] = {}
    for line in new:
        counts[line] = counts.get(line, 0) + 1
    most = len(new) // 100 + 1 if len(new) >= POPULAR_SINCE else len(new)
    pairs = sum(counts[line] for line in old if counts.get(line, most + 1) <= most)
    return pairs * min(len(old), len(new))
