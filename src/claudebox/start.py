"""A launch, from top to bottom: gather the settings, plan until nothing is unknown, ask, start the box."""

from __future__ import annotations

from claudebox.agreement import find_news, note_agreement, recall
from claudebox.facts import Facts
from claudebox.features.guard.decide import is_guard
from claudebox.features.table import act
from claudebox.files import prepare
from claudebox.host import Host, read_host
from claudebox.host.system import doubts_namespaces
from claudebox.host.tree import Tree
from claudebox.launch import launch
from claudebox.model import FROM_HOST, Finding, Plan, Question
from claudebox.plan import decide, make_plan, survey
from claudebox.problem import Problem
from claudebox.settings.gather import Layers, gather
from claudebox.settings.values import PROJECT_FILE
from claudebox.settings.words import Request
from claudebox.terminal import can_ask, errors_style, say, says_yes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def start(request: Request) -> NoReturn:
    host = read_host()
    layers = gather(host, request)
    if layers.project is not None and layers.project.is_undecided:
        layers = ask_about_project(host, request, layers)
    plan = plan_until_known(survey(host, request, layers.settings))
    finish_landings(host, plan)
    try_namespaces(host, plan)
    plan = confirm(host, plan, request)
    launch(plan.replace(may_ask=not request.yes and can_ask(), is_quiet=request.quiet))


def ask_about_project(host: Host, request: Request, layers: Layers) -> Layers:
    """Ask whether the project gets what its file asks for. Without an answer, it gets nothing."""
    project = layers.project
    if project is None or request.yes or not can_ask():
        return layers
    try:
        make_plan(host, request, gather(host, request, project.replace(granted=True)).settings)
    except Problem as problem:
        # Nobody can say yes to that, so it counts as a no until the file changes.
        note = Finding(Finding.NOTE, PROJECT_FILE, f"asks for something impossible and gets nothing: {problem.message}")
        return layers.replace(settings=layers.settings.replace(findings=(note,)))
    from claudebox.settings.project_file import note_decision
    from claudebox.view.wishes import wishes_text

    say(wishes_text(project.wishes, errors_style()))
    granted = says_yes("Let it have these, as long as the file stays as it is? [y/N] ")
    prepare(note_decision(host, project.content_id, granted=granted))
    return gather(host, request, project.replace(granted=granted))


def plan_until_known(facts: Facts) -> Plan:
    """Plan the box. If a feature has to ask a program of the host first, plan it again with the answer."""
    plan, asked = decide(facts), set[Question]()
    while plan.unknown:
        if not asked.isdisjoint(plan.unknown):
            raise Problem("what the box depends on has changed while it was looked at", "try again")
        asked.update(plan.unknown)
        for feature in dict.fromkeys(question.feature for question in plan.unknown):
            facts = act(feature, "find_out", facts, plan)
        facts = survey(facts.host.looked_at_anew(), facts.request, facts.settings, facts.answered)
        plan = decide(facts)
    return plan


def finish_landings(host: Host, plan: Plan) -> None:
    """If a landing was ended by force, bring it to an end before another box sees half of it."""
    layers = plan.state.layers if plan.state is not None else ""
    if any(name.isdigit() and is_landing(host.tree, f"{layers}/{name}") for name in host.tree.entries(layers)):
        from claudebox import reviewing

        reviewing.finish_landings(layers)


def is_landing(tree: Tree, layer: str) -> bool:
    """Whether the layer has the journal of a landing."""
    return any(tree.lstat(f"{layer}/journal{end}") is not None for end in ("", ".done"))


def try_namespaces(host: Host, plan: Plan) -> None:
    """Try namespaces first on a kernel that may refuse them: bwrap would say so less clearly."""
    if doubts_namespaces(host.tree, plan.bwrap):
        from claudebox.process import trial

        trial.require_namespaces(host, plan.bwrap)


def confirm(host: Host, plan: Plan, request: Request) -> Plan:
    """Show the box and ask, unless the user has agreed to all of it before. Raises unless the answer is yes.

    The plan that is returned remembers a yes. `--yes` does not count as one: it may be in a script, and nobody looked.
    """
    agreements = recall(host.tree, plan.state, host.person.uid)
    news = find_news(plan, agreements)
    if not news.amount:
        if not request.quiet:
            say(f"claudebox: as agreed: {_in_short(plan)} (--audit)\n")
        return plan
    from claudebox.asking import ask_to_start

    ask_to_start(plan, news, f"claudebox: {_in_short(plan)}\n" if agreements else "", request)
    if request.yes:
        return plan
    return plan.replace(preparations=(*plan.preparations, *note_agreement(plan, agreements)))


def _in_short(plan: Plan) -> str:
    paths = sum(mount.kind in FROM_HOST and not is_guard(mount) for mount in plan.mounts)
    parts = [f"{paths} paths", f"{len(plan.environment)} variables", f"network {plan.network.tier}"]
    if plan.flagged:
        parts.append(f"{len(plan.flagged)} flagged")
    return ", ".join(parts)
