"""How much of the machine the box may use."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Launch, Plan
from claudebox.record import Record
from claudebox.settings.table import AMOUNT, Setting
from claudebox.settings.types import Quantity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.output.section import Section

A_SECOND = 1_000_000  # microseconds
PER_CENT = A_SECOND // 100

MEMORY = Setting(
    *("memory", AMOUNT, "the most memory that the box may use, such as 4G; needs systemd"),
    Quantity("4G", 16 << 20, is_size=True),
    tightens=True,
)
PIDS = Setting(
    *("pids", AMOUNT, "the most processes and threads that the box may have; needs systemd"),
    Quantity("500", 10),
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

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import Section

        limits = plan.get(Limits)
        if limits is None:
            return (Section(key="limits"),)
        properties = [f"MemoryMax={limits.memory}", "MemorySwapMax=0"] if limits.memory else []
        properties += [f"TasksMax={limits.pids}"] if limits.pids else []
        properties += [f"CPUQuota={limits.cpu // PER_CENT}%"] if limits.cpu else []
        words = " ".join(f"-p {words}" for words in properties)
        manager = "--system" if plan.kernel.drop_groups else "--user"
        return (
            Section(
                key="limits",
                value={"memory": limits.memory, "pids": limits.pids, "cpu": limits.cpu // PER_CENT},
                start=f"systemd-run {manager} --scope --quiet --collect {words} -- \\\n",
            ),
        )

    def before(self, launch: Launch) -> None:
        from claudebox.features.limits import systemd

        systemd.put_into_force(launch.get(Limits))


LIMITS = LimitsFeature()
