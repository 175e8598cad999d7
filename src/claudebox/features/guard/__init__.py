"""What this host runs later: held while the box runs, and reported when it has ended."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Guard, Launch, Plan, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed
    from claudebox.output.section import Section


class Guarding(Feature):
    """Holds it."""

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.guard import decide

        return decide.decide(facts, draft)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.features.guard import decide

        return decide.show(plan)


class Report(Feature):
    """Says at the end what the box has left that this host may obey, and what of its home is gone with it.

    What was kept in layers comes first: some of it may have landed then.
    """

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        guard = draft.get(Guard)
        moments = (Step.MADE, Step.AFTER) if guard is not None and guard.roots else (Step.MADE,)
        return Contribution(steps=tuple(Step(moment, self) for moment in moments))

    def made(self, launch: Launch, root: str) -> Deed:
        from claudebox.overlay import lost_files

        return lost_files.watch_home(launch, root)

    def after(self, launch: Launch) -> Deed:
        from claudebox.overlay import report

        return report.watch_project(launch)
