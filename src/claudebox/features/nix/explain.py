"""Explains why the box uses Nix as it does, and which packages it has."""

from __future__ import annotations

from claudebox.features.nix.references import NIXPKGS, short_name
from claudebox.model import Finding, Nix, Package, Plan
from claudebox.paths import is_inside
from claudebox.settings.table import AUTO, DAEMON, OFF, PRIVATE, STORE
from claudebox.view.explanation import Answer, Because, Change, Question, describe_origin, undo

MOST_NAMED = 6
EFFECTS = {
    DAEMON: "the daemon, all the same: the agent can do through it what is said above",
    PRIVATE: "a store of this project's own: builds stay in the box",
    STORE: "the store to read, and no daemon",
    OFF: "nothing of Nix",
}


def explain(question: Question) -> list[Answer]:
    """About Nix itself, about a package by its name, or about those that are at a path of the store or need it."""
    plan, word, path = question.plan, question.word, question.path
    named = [package for package in plan.packages if package.reference in (word, NIXPKGS + word)]
    if word == "nix" and not named:
        return [_explain_nix(plan)]
    needing = [one for one in plan.packages if any(is_inside(path, place) for place in (*one.paths, *one.closure))]
    return [_explain_package(plan, package, path) for package in named or needing]


def _explain_nix(plan: Plan) -> Answer:
    if plan.nix is None:
        because = Because("this host has no /nix/store")
        way = Change("a store of this project's own, if nix is installed", ("--nix", PRIVATE))
        return Answer(Answer.NIX, "nix", Answer.OUT, "not in the box", [because], [way])
    nix = plan.nix
    others = [mode for mode in (DAEMON, PRIVATE, STORE, OFF) if mode != nix.mode and (mode != DAEMON or nix.holes)]
    changes = [Change(EFFECTS[mode], ("--nix", mode)) for mode in others]
    state, verdict = Answer.OUT if nix.mode == OFF else Answer.IN, f"{nix.mode}: {nix.meaning}"
    back = undo(nix.origin, nix.mode, "then it is chosen by what is safe")
    return Answer(Answer.NIX, "nix", state, verdict, _because(nix), [*back, *changes])


def _because(nix: Nix) -> list[Because]:
    chosen = Because(f"asked for by {describe_origin(nix.origin)}", nix.origin)
    if nix.origin.is_default:
        chosen = Because(f"it is {AUTO}: the daemon, unless that is a way out")
    judged = [Because(f"the daemon is a way out of the box: {hole}") for hole in nix.holes]
    if nix.mode == DAEMON and not nix.holes:
        builds = "says that it builds in a sandbox; a start tries that" if nix.needs_trial else "builds in a sandbox"
        judged = [Because(f"the daemon is no way out: it does not trust you, and {builds}")]
    return [chosen, *judged]


def _explain_package(plan: Plan, package: Package, path: str) -> Answer:
    """About a package, or about a path that comes with it."""
    name, origin = short_name(package.reference), package.origin
    subject = f"package {name}" if path else name
    because = [Because(f"{describe_origin(origin)} asks for {name}", origin)]

    def answer(state: str, verdict: str) -> Answer:
        return Answer(Answer.PACKAGE, subject, state, verdict, because, undo(origin, name))

    is_own = not path or any(is_inside(path, place) for place in package.paths)
    if not is_own:
        because.append(Because(f"{name} needs it"))
    if not package.paths:
        because.append(Because("Nix was not asked for it yet: that happens when a box starts"))
        return answer(Answer.DEPENDS, "not resolved yet")
    shown = ", ".join(package.paths[:MOST_NAMED])
    because.append(Because(f"Nix resolved it to {shown}, paths with all that it needs: {len(package.closure)}"))
    notes = [finding for finding in plan.findings if finding.kind == Finding.NOTE and finding.subject == name]
    because += [Because(finding.text) for finding in notes]
    return answer(Answer.IN, "in the box" if notes or not is_own else "in the box, on PATH")
