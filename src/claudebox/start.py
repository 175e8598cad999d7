"""A launch, from top to bottom: gather the settings, plan until nothing is unknown, ask, start the box."""

from __future__ import annotations

from claudebox.consent import ask_about_project, ask_to_start, find_news, note_agreement, recall
from claudebox.errors import Problem
from claudebox.facts import Facts
from claudebox.features.table import SETTINGS
from claudebox.host import Host, read_host
from claudebox.host.system import doubts_namespaces
from claudebox.model import MASK, Launch, Plan, Question
from claudebox.output.terminal import can_ask, say
from claudebox.paths import within
from claudebox.plan import decide, survey
from claudebox.sandbox.launch import launch
from claudebox.settings.gather import gather
from claudebox.settings.words import Request
from claudebox.text import escape, fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def start(request: Request) -> NoReturn:
    host = read_host()
    said = gather(SETTINGS, host, request)
    if said.project is not None and said.project.is_undecided:
        said = ask_about_project(SETTINGS, host, request, said)
    facts = survey(host, request, said.settings)
    show_unseen(facts)
    plan = plan_until_known(facts)
    finish_landings(host, plan)
    if look_back(host, plan, may_ask=not request.yes and can_ask()):
        plan = plan_until_known(survey(host.looked_at_anew(), request, said.settings))
    try_namespaces(host, plan)
    plan = confirm(host, plan, request)
    launch(Launch(plan, may_ask=not request.yes and can_ask(), is_quiet=request.quiet))


def plan_until_known(facts: Facts) -> Plan:
    """Plan the box. If a feature has to ask a program of the host first, plan it again with the answer."""
    plan, asked = decide(facts), set[Question]()
    while plan.unknown:
        if not asked.isdisjoint(plan.unknown):
            raise Problem("what the box depends on has changed while it was looked at", "try again")
        asked.update(plan.unknown)
        for feature in dict.fromkeys(question.feature for question in plan.unknown):
            facts = feature.find_out(facts, plan)
        facts = survey(facts.host.looked_at_anew(), facts.request, facts.settings, facts.answered)
        plan = decide(facts)
    return plan


def show_unseen(facts: Facts) -> None:
    """Show before anything else what an earlier box left, if its report may have been seen by nobody."""
    if facts.state is not None and facts.tree.lstat(f"{facts.state.reports}/unseen") is not None:
        from claudebox.overlay import kept

        kept.show_unseen(facts.state)


def look_back(host: Host, plan: Plan, *, may_ask: bool) -> bool:
    """Look at what a box left if claudebox was killed while it ran. Returns whether something may have changed here."""
    if plan.state is None or not any(name.startswith("box-") for name in host.tree.entries(plan.state.reports)):
        return False
    from claudebox.overlay import kept

    return kept.look_back(plan, may_ask=may_ask)


def finish_landings(host: Host, plan: Plan) -> None:
    """If a landing was ended by force, bring it to an end before another box sees half of it."""
    layers = plan.state.layers if plan.state is not None else ""
    journals = [f"{layers}/{name}/journal" for name in host.tree.entries(layers) if name.isdigit()]
    if any(host.tree.lstat(f"{journal}{end}") is not None for journal in journals for end in ("", ".done")):
        from claudebox.commands import review

        review.finish_landings(layers)


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
            say(_in_short(plan, "as agreed: ", " (--audit)"))
        return plan
    ask_to_start(plan, news, _in_short(plan) if agreements else "", request)
    if request.yes:
        return plan
    return plan.replace(preparations=(*plan.preparations, *note_agreement(plan, agreements)))


def _in_short(plan: Plan, before: str = "", after: str = "") -> str:
    masked = [within(mount.covers, plan.project) for mount in plan.mounts if mount.kind == MASK]
    parts = [f"network {plan.network.tier}"]
    if masked:
        parts.append(f"{escape(masked[0]) if len(masked) == 1 else f'{len(masked)} files'} masked")
    if plan.flagged:
        parts.append(f"{len(plan.flagged)} warning{'s' if len(plan.flagged) > 1 else ''}")
    return "\n".join(fill(f"claudebox: {before}{' · '.join(parts)}{after}".split(" "), 0)) + "\n"
