"""`--explain` and `--check` about Nix: how the box uses it, which packages it has, and what this machine can do."""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.features.nix import Nix, Package, packages_of
from claudebox.features.nix.packages import NIXPKGS, find_nix, short_name
from claudebox.features.nix.store import plan_nix
from claudebox.host import Host
from claudebox.host.system import NIX_STORE, find_system
from claudebox.model import Finding, Plan
from claudebox.output.explanation import Answer, Because, Change, Question, describe_origin, undo
from claudebox.paths import is_inside
from claudebox.process.trial import NOTE, OK, CheckRow, program_version
from claudebox.settings import Settings
from claudebox.settings.table import AUTO, DAEMON, NIX, OFF, PRIVATE, STORE
from claudebox.state import find_state

MOST_NAMED = 6
IN_THE_BOX = "Nix in the box"
ALTERNATIVES = "builds in the box: --nix private; tools from outside: --package NAME"
EFFECTS = {
    DAEMON: "the daemon, all the same: the agent can do through it what is said above",
    PRIVATE: "a store of this project's own: builds stay in the box",
    STORE: "the store to read, and no daemon",
    OFF: "nothing of Nix",
}


def explain(question: Question) -> list[Answer]:
    """About Nix itself, about a package by its name, or about those that are at a path of the store."""
    plan, word, path = question.plan, question.word, question.path
    named = [package for package in packages_of(plan) if package.reference in (word, NIXPKGS + word)]
    if word == "nix" and not named:
        return [_explain_nix(plan)]
    there = [one for one in packages_of(plan) if any(is_inside(path, place) for place in one.paths)]
    return [_explain_package(plan, package, path) for package in named or there]


def _explain_nix(plan: Plan) -> Answer:
    nix = plan.get(Nix)
    if nix is None:
        because = Because("this host has no /nix/store")
        way = Change("a store of this project's own, if nix is installed", ("--nix", PRIVATE))
        return Answer(Answer.NIX, "nix", Answer.OUT, "not in the box", [because], [way])
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

    if not package.paths:
        because.append(Because("Nix was not asked for it yet: that happens when a box starts"))
        return answer(Answer.DEPENDS, "not resolved yet")
    because.append(Because(f"Nix resolved it to {', '.join(package.paths[:MOST_NAMED])}"))
    notes = [finding for finding in plan.findings if finding.kind == Finding.NOTE and finding.subject == name]
    because += [Because(finding.text) for finding in notes]
    return answer(Answer.IN, "in the box" if notes else "in the box, on PATH")


def check(host: Host, settings: Settings) -> list[CheckRow]:
    if settings[NIX].text in (AUTO, OFF) and not host.tree.is_dir(NIX_STORE):
        return []
    nix = find_nix(host)
    if not nix:
        program = CheckRow(NOTE, "nix", "not found", "the store is there, but no nix that is not an agent's")
    else:
        program = CheckRow(OK, "nix", f"{program_version(nix)}, {nix}")
    try:
        is_nix_host = find_system(host.tree, host.environ.get("PATH", "")).is_nix
        plan = plan_nix(host, settings, find_state(host).instance(host.cwd), is_nix_host=is_nix_host)
    except Problem as problem:
        return [program, CheckRow.of_problem(IN_THE_BOX, problem)]
    why = "; ".join(plan.holes)
    if plan.mode == DAEMON and plan.holes:
        return [program, CheckRow(NOTE, IN_THE_BOX, "the daemon, although it is a way out of the box", why)]
    if plan.holes:
        return [program, CheckRow(NOTE, IN_THE_BOX, f"{plan.meaning}: {ALTERNATIVES}", f"the daemon: {why}")]
    untried = " (if a build that is tried at the first start sees nothing of this host)" if plan.needs_trial else ""
    return [program, CheckRow(OK, IN_THE_BOX, plan.meaning + untried)]
