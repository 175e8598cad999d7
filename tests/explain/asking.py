"""A box to ask about: its Plan, and what the Plan was made from."""

from dataclasses import dataclass

from claudebox.commands.explain import explain
from claudebox.host import Host
from claudebox.model import Plan
from claudebox.output.explanation import Answer
from claudebox.plan import make_plan
from claudebox.settings import Settings
from saying import gather, parse


@dataclass
class Asked:
    """A host, what was said, and what came of it."""

    host: Host
    settings: Settings
    plan: Plan

    def explain(self, thing: str) -> list[Answer]:
        return explain(self.plan, self.host, self.settings, thing)

    def answer(self, thing: str) -> Answer:
        """For what can be one kind of thing only."""
        (answer,) = self.explain(thing)
        return answer


def ask(host: Host, *words: str) -> Asked:
    request = parse(list(words))
    settings = gather(host, request).settings
    return Asked(host, settings, make_plan(host, request, settings))
