"""Nix in the box, and packages of it."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.system import NIX_STORE
from claudebox.model import Nix, Plan
from claudebox.settings.table import HIDES, OFF, SHOWN, Setting
from claudebox.settings.types import Choice, List, Text

AUTO, DAEMON, PRIVATE, STORE = "auto", "daemon", "private", "store"
NIX = Setting(
    *("nix", SHOWN, "Nix in the box: auto (default), daemon, private, store or off"),
    Choice(DAEMON, AUTO, PRIVATE, STORE, OFF, default=AUTO),
    variable="CLAUDEBOX_NIX",
)
PACKAGES = Setting(
    *("package", SHOWN, "put this Nix package on PATH: a name in nixpkgs, or a flake reference"),
    List(Text()),
    usage="NAME",
    called="packages",
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.host import Host
    from claudebox.process.trial import CheckRow
    from claudebox.settings import Settings
    from claudebox.view.explanation import Answer, Question


class NixFeature(Feature):
    settings = (NIX, PACKAGES)

    def applies(self, facts: Facts) -> bool:
        settings = facts.settings
        return settings[NIX].text not in (AUTO, OFF) or bool(settings[PACKAGES]) or facts.tree.is_dir(NIX_STORE)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.nix import store

        return store.decide(facts, draft)

    def find_out(self, facts: Facts, plan: Plan) -> Facts:
        from claudebox.features.nix import asking

        return asking.find_out(facts, plan)

    def explain(self, question: Question) -> list[Answer]:
        from claudebox.features.nix import diagnosis

        return diagnosis.explain(question)

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        from claudebox.features.nix import diagnosis

        return diagnosis.check(host, settings)


class Closure(Feature):
    """What a store of the project's own needs of the host's: that follows from the rest of the plan."""

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        nix = plan.get(Nix)
        if nix is None or not nix.directory:
            return plan
        from claudebox.features.nix.store import with_closure

        return with_closure(plan, nix, facts.host, facts.settings[HIDES])


NIX_FEATURE = NixFeature()
