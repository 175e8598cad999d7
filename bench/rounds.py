"""Measures in rounds: each round takes every contender once, in turn, and is compared within itself.

The speed of a machine changes while something is measured. All runs of one contender and then all runs of the other
would compare two machines; within a round both meet the same one. A ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Times = dict[str, list[float]]


def in_rounds(contenders: Mapping[str, Callable[[], float]], rounds: int, warm_up: int = 0) -> Times:
    """What each contender returned, round by round, without the first rounds, which only warm up."""
    taken = [{name: run() for name, run in contenders.items()} for _ in range(warm_up + rounds)][warm_up:]
    return {name: [one[name] for one in taken] for name in contenders}


def ratio(times: Times, name: str, base: str) -> float:
    return statistics.median(own / other for own, other in zip(times[name], times[base], strict=True))


def rows(times: Times, base: str, factor: float = 1.0, digits: int = 1) -> list[str]:
    """Rows of a Markdown table: name, median, ratio to the base."""
    return [
        f"| {name} | {factor * statistics.median(values):.{digits}f} | {ratio(times, name, base):.2f} × |"
        for name, values in times.items()
    ]
