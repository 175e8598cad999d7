"""How much of the machine the box may use."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Launch, Plan
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.output.section import Section

PER_CENT = 10_000  # microseconds of a second


class Limits(Record):
    """How much of the machine the box may use; 0 means no limit. systemd enforces them."""

    busctl: str
    memory: int  # bytes
    pids: int
    cpu: int  # microseconds in each second


class LimitsFeature(Feature):
    def applies(self, facts: Facts) -> bool:
        settings = facts.settings
        return bool(settings.memory or settings.pids or settings.cpu)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.limits import decide

        return decide.decide(facts, draft)

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
        from claudebox.features.limits import act

        limits = launch.get(Limits)
        act.put_into_force(limits)
        launch.limits_memory = bool(limits.memory)


LIMITS = LimitsFeature()
