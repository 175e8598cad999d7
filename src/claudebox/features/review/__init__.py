"""Layers: what the box changes is kept until the user lands it."""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import LAYER, RO, Launch, Plan
from claudebox.settings.table import OFF, REVIEW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed
    from claudebox.output.section import Section
    from claudebox.process.companion import Companion
    from claudebox.settings import Settings


class ReviewFeature(Feature):
    def applies(self, facts: Facts) -> bool:
        return facts.has_layer

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        """The project is a layer, or something in it is guarded that can be one: git's own never is."""
        if not any(
            mount.kind == LAYER
            or (mount.kind == RO and mount.is_dir and mount.origin.is_rule("guard") and "/.git/" not in mount.path)
            for mount in draft.mounts
        ):
            return Contribution()
        from claudebox.features.review import decide

        return decide.decide(facts, draft)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import Section

        if plan.review is None:
            return (Section(key="review"),)
        from claudebox.features.review import decide

        return (decide.section(plan, plan.review),)

    def pasted(self, plan: Plan, settings: Settings) -> Settings:
        """Where the guarded parts are layers, they are read-only."""
        if plan.review is None:
            return settings
        if plan.review.is_whole:
            # The command would have to write through, which is what the user does not want.
            raise Problem(
                f"{plan.review.origin.shown}: only claudebox itself can lay a layer over the project",
                "to see the rest of the box: --dry-run --review off",
            )
        return settings.having(REVIEW, settings[REVIEW].replace(text=OFF))

    def beside(self, launch: Launch) -> Companion:
        from claudebox.overlay import mounting

        return mounting.hold_layer(launch)

    def mount(self, launch: Launch) -> None:
        from claudebox.overlay import mounting

        mounting.mount_layers(launch)

    def after(self, launch: Launch) -> Deed:
        from claudebox.overlay import mounting

        return mounting.watch_layer(launch)


REVIEW_FEATURE = ReviewFeature()
