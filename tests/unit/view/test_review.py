"""A difference is right, and no file can make it last."""

from __future__ import annotations

import difflib
import time

import pytest

from claudebox.view.review import unified


def test_same_as_the_library_where_that_is_quick() -> None:
    old = [f"line {number}" for number in range(3000)]
    new = [*old[:100], "new", *old[150:2000], "", "++i", *old[2001:]]
    assert list(unified(old, new)) == list(difflib.unified_diff(old, new, lineterm=""))[2:]
    assert list(unified(old, old)) == []


@pytest.mark.parametrize("each", [2, 20, 90])
def test_crafted_lines_do_not_make_it_last(each: int) -> None:
    """Lines that come again, but seldom enough for the library not to leave them out, and in another order."""
    lines = [f"{number}" for number in range(20_000 // each)] * each
    begun = time.process_time()
    shown = list(unified(lines, lines[1:] + lines[:1] + ["x"] + lines[::-1]))
    assert time.process_time() - begun < 20
    assert len(shown) > 20_000
