"""Why a package of Nix is in the box, or a path of the store on its PATH."""

from __future__ import annotations

from claudebox.answers import (
    DEPENDS,
    IN,
    PACKAGE,
    Answer,
    Because,
    named,
    undo,
)
from claudebox.features.nix.references import (
    NIXPKGS,
    short_name,
)
from claudebox.model import (
    Finding,
    Package,
    Plan,
)
from claudebox.paths import is_inside

MOST_NAMED = 6


def explain_packages(plan: Plan, word: str) -> list[Answer]:
    """One for each package that the word names, or that is at this path of the store, or needs it."""
    return [answer for package in plan.packages if (answer := _answer(plan, package, word)) is not None]


def is_named(plan: Plan, word: str) -> bool:
    return any(_names(package, word) for package in plan.packages)


def _names(package: Package, word: str) -> bool:
    return package.reference in (word, NIXPKGS + word)


def _answer(plan: Plan, package: Package, word: str) -> Answer | None:
    is_own = _names(package, word) or any(is_inside(word, path) for path in package.paths)
    if not is_own and not any(is_inside(word, path) for path in package.closure):
        return None
    name, origin = short_name(package.reference), package.origin
    because = [Because(f"{named(origin)} asks for {name}", origin)]
    if not is_own:
        because.append(Because(f"{name} needs it"))
    if not package.paths:
        because.append(Because("Nix was not asked for it yet: that happens when a box starts"))
        return _package(DEPENDS, package, word, "not resolved yet", because)
    shown = ", ".join(package.paths[:MOST_NAMED])
    because.append(Because(f"Nix resolved it to {shown}, with all that it needs {len(package.closure)} paths"))
    notes = [finding for finding in plan.findings if finding.kind == Finding.NOTE and finding.subject == name]
    because += [Because(finding.text) for finding in notes]
    return _package(IN, package, word, "in the box" if notes or not is_own else "in the box, on PATH", because)


def _package(state: str, package: Package, word: str, verdict: str, because: list[Because]) -> Answer:
    name = short_name(package.reference)
    subject = name if _names(package, word) else f"package {name}"
    return Answer(PACKAGE, subject, state, verdict, tuple(because), tuple(undo(package.origin, name)))
