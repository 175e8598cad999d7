"""Nix in the box, and packages of it."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.system import NIX_STORE
from claudebox.model import Origin, Plan
from claudebox.record import Record
from claudebox.settings.table import AUTO, HIDES, NIX, OFF, SHOWN, Setting
from claudebox.settings.types import List, Text

PACKAGES = Setting(
    *("package", SHOWN, "put this Nix package on PATH: a name in nixpkgs, or a flake reference"),
    List(Text()),
    usage="NAME",
    called="packages",
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features import Answer, CheckRow, Host, Question, Section, Settings


class Nix(Record):
    mode: str
    meaning: str
    origin: Origin
    shows_store: bool = False  # whether the box sees the host's store
    directory: str = ""  # the directory on the host that holds the project's own store
    roots: tuple[str, ...] = ()  # store paths for the project's own store whose requirements are not known yet
    needs_trial: bool = False  # nobody has tried yet whether the daemon builds in a sandbox
    holes: tuple[str, ...] = ()  # why the daemon is a way out of the box


class Package(Record):
    """A package of Nix that has to be on PATH."""

    reference: str  # the words with which Nix is asked for it
    paths: tuple[str, ...]  # its store paths; empty until Nix was asked
    origin: Origin


class Packages(Record):
    members: tuple[Package, ...]


class NixFeature(Feature):
    settings = (NIX, PACKAGES)

    def applies(self, facts: Facts) -> bool:
        settings = facts.settings
        return settings[NIX].text not in (AUTO, OFF) or bool(settings[PACKAGES]) or facts.tree.is_dir(NIX_STORE)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.nix import store

        return store.decide(facts, draft)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import Section

        nix, packages = plan.get(Nix), packages_of(plan)
        if nix is None and not packages:
            return Section(key="nix"), Section(key="packages", value=[])
        from claudebox.features.nix import store

        return store.show_nix(nix), store.show_packages(packages)

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


def packages_of(plan: Plan) -> tuple[Package, ...]:
    found = plan.get(Packages)
    return found.members if found is not None else ()


NIX_FEATURE = NixFeature()
