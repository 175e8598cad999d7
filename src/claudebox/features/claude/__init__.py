"""Claude Code: its program, its home, and what its options name. And other agents in its place."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import RO, RW, Launch, Plan
from claudebox.settings.table import CLAUDE, PROGRAM
from claudebox.state.claude_settings import PROJECT_SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.host import Host
    from claudebox.model import Deed
    from claudebox.output.section import Section
    from claudebox.process.trial import CheckRow
    from claudebox.settings import Settings

RULE = "claude"

AGENT = "agent"  # the rule by which another agent has something


class Claude(Feature):
    """The program, and its home."""

    def applies(self, facts: Facts) -> bool:
        return facts.install is not None

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.claude import home

        return home.decide(facts, draft)

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        from claudebox.features.claude import home

        return home.complete(facts, draft, plan)

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        from claudebox.features.claude import home

        return home.check(host, settings)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import READ_ONLY, WRITABLE, Section

        kinds = {mount.kind for mount in plan.mounts if mount.origin.is_rule(RULE)}
        adds = ((RW, WRITABLE, "Claude's state"), (RO, READ_ONLY, "Claude and its configuration"))
        return (Section(adds=tuple((row, words) for kind, row, words in adds if kind in kinds)),)

    def after(self, launch: Launch) -> Deed:
        from claudebox.features.claude import conversations

        return conversations.after(launch)


class ProjectSettings(Feature):
    """Settings of Claude that the project brings."""

    def applies(self, facts: Facts) -> bool:
        return any(facts.tree.lstat(f"{facts.project}/{name}") is not None for name in PROJECT_SETTINGS)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.claude import home

        return home.decide_project_settings(facts, draft)


class Options(Feature):
    """Files of the host that options of Claude name."""

    def applies(self, facts: Facts) -> bool:
        return facts.runs_claude and bool(facts.words)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.claude import options

        return options.decide(facts, draft)


class Agents(Feature):
    """Other coding agents than Claude."""

    def applies(self, facts: Facts) -> bool:
        return facts.starts_agent and facts.settings[PROGRAM].text != CLAUDE

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.claude import agents

        return agents.decide(facts, draft)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import READ_ONLY, WRITABLE, Section

        if not any(mount.origin.is_rule(AGENT) for mount in plan.mounts):
            return ()
        name = plan.program.title
        return (Section(adds=((WRITABLE, f"{name}'s state"), (READ_ONLY, name))),)


CLAUDE_CODE = Claude()
