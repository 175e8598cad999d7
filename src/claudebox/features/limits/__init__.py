"""How much of the machine the box may use."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Launch
from claudebox.record import Record
from claudebox.settings.table import AMOUNT, Setting
from claudebox.settings.types import Quantity

A_SECOND = 1_000_000  # microseconds

MEMORY = Setting(
    *("memory", AMOUNT, "the most memory that the box may use, such as 4G; needs systemd"),
    Quantity("4G", 16 << 20, is_size=True),
    tightens=True,
)
PIDS = Setting(
    *("pids", AMOUNT, "the most processes and threads that the box may have; needs systemd"),
    Quantity("500", 10, is_whole=True),
    tightens=True,
)
CPU = Setting(
    *("cpu", AMOUNT, "the most processors that the box may use, such as 1.5; needs systemd"),
    Quantity("1.5", A_SECOND // 100, unit=A_SECOND),
    tightens=True,
)


class Limits(Record):
    """How much of the machine the box may use; 0 means no limit. systemd enforces them."""

    busctl: str
    memory: int  # bytes
    pids: int
    cpu: int  # microseconds in each second


class LimitsFeature(Feature):
    settings = (MEMORY, PIDS, CPU)

    def applies(self, facts: Facts) -> bool:
        return any(facts.settings[setting] for setting in self.settings)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.limits import systemd

        return systemd.decide(facts, draft)

    def before(self, launch: Launch) -> None:
        from claudebox.features.limits import systemd

        systemd.put_into_force(launch.get(Limits))


LIMITS = LimitsFeature()
