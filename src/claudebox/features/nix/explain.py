"""Explains why the box uses Nix as it does, and which packages it has."""

from __future__ import annotations

from claudebox.features.nix.references import NIXPKGS, short_name
from claudebox.model import Finding, Nix, Package, Plan
from claudebox.paths import is_inside
from claudebox.settings.table import AUTO, DAEMON, OFF, PRIVATE, STORE
from claudebox.view.explanation import (
    DEPENDS,
    IN,
    NIX,
    OUT,
    PACKAGE,
    Answer,
    Because,
    Change,
    Question,
    describe_origin,
    undo,
)

MOST_NAMED = 6
EFFECTS = {
    DAEMON: "the daemon, all the same: the agent can do through it what is said above",
    PRIVATE: "a store of this project's own: builds stay in the box",
    STORE: "the store to read, and no daemon",
    OFF: "nothing of Nix",
}


def explain(question: Question) -> list[Answer]:
    """An answer for each package that the word names, that is at this path of the store, or that needs the path."""
    plan, thing = question.plan, question.word or question.path
    packages = [answer for package in plan.packages if (answer := _explain_package(plan, package, thing)) is not None]
    return [*([_explain_nix(plan)] if question.word == "nix" and not packages else []), *packages]


def _explain_nix(plan: Plan) -> Answer:
    if plan.nix is None:
        because = Because("this host has no /nix/store")
        way = Change("a store of this project's own, if nix is installed", ("--nix", PRIVATE))
        return Answer(NIX, "nix", OUT, "not in the box", (because,), (way,))
    nix = plan.nix
    others = [mode for mode in (DAEMON, PRIVATE, STORE, OFF) if mode != nix.mode and (mode != DAEMON or nix.holes)]
    changes = tuple(Change(EFFECTS[mode], ("--nix", mode)) for mode in others)
    state, verdict = OUT if nix.mode == OFF else IN, f"{nix.mode}: {nix.meaning}"
    back = undo(nix.origin, nix.mode, "then it is chosen by what is safe")
    return Answer(NIX, "nix", state, verdict, tuple(_because(nix)), (*back, *changes))


def _because(nix: Nix) -> list[Because]:
    chosen = Because(f"asked for by {describe_origin(nix.origin)}", nix.origin)
    if nix.origin.is_default:
        chosen = Because(f"it is {AUTO}: the daemon, unless that is a way out")
    judged = [Because(f"the daemon is a way out of the box: {hole}") for hole in nix.holes]
    if nix.mode == DAEMON and not nix.holes:
        builds = "says that it builds in a sandbox; a start tries that" if nix.needs_trial else "builds in a sandbox"
        judged = [Because(f"the daemon is no way out: it does not trust you, and {builds}")]
    return [chosen, *judged]


def _names(package: Package, word: str) -> bool:
    return package.reference in (word, NIXPKGS + word)


def _explain_package(plan: Plan, package: Package, word: str) -> Answer | None:
    is_own = _names(package, word) or any(is_inside(word, path) for path in package.paths)
    if not is_own and not any(is_inside(word, path) for path in package.closure):
        return None
    name, origin = short_name(package.reference), package.origin
    because = [Because(f"{describe_origin(origin)} asks for {name}", origin)]
    if not is_own:
        because.append(Because(f"{name} needs it"))
    if not package.paths:
        because.append(Because("Nix was not asked for it yet: that happens when a box starts"))
        return _package(DEPENDS, package, word, "not resolved yet", because)
    shown = ", ".join(package.paths[:MOST_NAMED])
    because.append(Because(f"Nix resolved it to {shown}, paths with all that it needs: {len(package.closure)}"))
    notes = [finding for finding in plan.findings if finding.kind == Finding.NOTE and finding.subject == name]
    because += [Because(finding.text) for finding in notes]
    return _package(IN, package, word, "in the box" if notes or not is_own else "in the box, on PATH", because)


def _package(state: str, package: Package, word: str, verdict: str, because: list[Because]) -> Answer:
    name = short_name(package.reference)
    subject = name if _names(package, word) else f"package {name}"
    return Answer(PACKAGE, subject, state, verdict, tuple(because), tuple(undo(package.origin, name)))
