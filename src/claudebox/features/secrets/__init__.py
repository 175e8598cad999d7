"""Secrets of the project, and of what somebody mounts."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Launch, Plan
from claudebox.settings.table import SHOWN, Setting
from claudebox.settings.types import List, ProjectPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed
    from claudebox.output.section import Section
    from claudebox.process.companion import Companion


REVEAL = Setting(
    *("reveal", SHOWN, "show PATH in the project as it is, although it looks secret; PATH:KEY for one value of it"),
    List(ProjectPath()),
)


class Masks(Feature):
    """Covers files of the project that hold secrets with made-up ones, as long as the box lives."""

    settings = (REVEAL,)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.secrets import decide

        return decide.decide(facts, draft)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.features.secrets import decide

        return decide.show(plan)

    def beside(self, launch: Launch) -> Companion:
        from claudebox.features.secrets import act

        return act.beside(launch)

    def made(self, launch: Launch, root: str) -> Deed:
        from claudebox.features.secrets import act

        return act.made(launch, root)


class Mounted(Feature):
    """Finds credentials in what somebody mounts."""

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        if not draft.wished:
            return Contribution()
        from claudebox.features.secrets import mounted

        return mounted.decide(facts, draft)


MASKS = Masks()
