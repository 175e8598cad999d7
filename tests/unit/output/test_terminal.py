"""What somebody types at a question, as it is understood."""

from __future__ import annotations

import pytest

from claudebox.output.terminal import no_such_number, numbers_in

pytestmark = pytest.mark.req("LAND-01")


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
