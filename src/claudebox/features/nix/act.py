"""Asks Nix what a box depends on, before it starts: packages, whether builds are in a sandbox, what programs need."""

from __future__ import annotations

from claudebox.facts import Facts
from claudebox.features.nix.ask_closure import look_up_closure
from claudebox.features.nix.errand import give_up, plan_errand, strict_problem
from claudebox.features.nix.fetch import fetch_packages
from claudebox.features.nix.packages import to_resolve
from claudebox.features.nix.try_builds import try_builds
from claudebox.model import Plan


def find_out(facts: Facts, plan: Plan) -> Facts:
    """What Nix says is kept where the next plan finds it. Packages that cannot be had are given up, with a note."""
    if plan.nix is not None and plan.nix.needs_trial:
        try_builds(facts.host)
    if plan.nix is not None and plan.nix.roots:
        look_up_closure(facts.host, plan.nix.roots)
    missing = tuple(package for package in to_resolve(plan.packages) if package.reference not in facts.answered)
    if not missing:
        return facts
    failures = fetch_packages(plan_errand(facts.host, missing))
    if failures and facts.request.strict:
        raise strict_problem(failures)
    return facts.replace(
        settings=give_up(facts.host, facts.settings, failures),
        answered=(*facts.answered, *(package.reference for package in missing)),
    )
