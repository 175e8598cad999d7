"""Decides that somebody looks, when the box has ended, what is lost with its home."""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.model import Step


def decide(_: Facts, __: Draft) -> Contribution:
    return Contribution(steps=(Step(Step.MADE, "vanished"),))
