"""What a box can have: a folder, or a file, for each feature, and one contract for all of them.

A feature is an object in `table.py`. It decides what it gives to the box, and says what it does besides bwrap. What
costs time to load is imported by the method that needs it.
"""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.model import Launch, Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Whoever writes a feature has these from here.
    from claudebox.host import Host as Host
    from claudebox.model import Deed as Deed
    from claudebox.output.explanation import Answer as Answer
    from claudebox.output.explanation import Question as Question
    from claudebox.output.section import Section as Section
    from claudebox.process.companion import Companion as Companion
    from claudebox.process.trial import CheckRow as CheckRow
    from claudebox.settings import Settings as Settings
    from claudebox.settings.table import Setting


class Feature:
    """One thing that a box can have. A feature overrides the methods that it needs."""

    settings: tuple[Setting[object], ...] = ()  # what the user can say about it, and nothing else asks for

    def applies(self, facts: Facts) -> bool:
        """Whether it has something to decide for this box. One that does not apply costs nothing."""
        return True

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        """What it gives to the box. `draft` has what the features before it gave. Nothing is started or written."""
        return Contribution()

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        """Add what can be decided only when the rest of the plan is known."""
        return plan

    def find_out(self, facts: Facts, plan: Plan) -> Facts:
        """Ask a program of the host what `plan.unknown` says, for the next plan."""
        return facts

    # What is shown of it.

    def show(self, plan: Plan) -> tuple[Section, ...]:
        """What people, programs and the agent are told of it, and what JSON says if the box has none of it."""
        return ()

    def pasted(self, plan: Plan, settings: Settings) -> Settings:
        """The settings for a command to paste, if it can only have less than what claudebox itself would start.

        Raises a Problem if it cannot have anything like it."""
        return settings

    # What it says when no box is started.

    def explain(self, question: Question) -> list[Answer]:
        """What it knows of what is asked."""
        return []

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        """Look at what it needs of this machine."""
        return []

    # What happens besides bwrap. A Step of the plan names the feature and the moment.

    def beside(self, launch: Launch) -> Companion:
        """Start a process that lives as long as the box, and the box no longer than it."""
        raise NotImplementedError

    def before(self, launch: Launch) -> None:
        """Do something on the host before the box is made."""

    def mount(self, launch: Launch) -> None:
        """Change what bwrap finds: this is the process that becomes bwrap, with mounts of its own."""

    def inside(self, launch: Launch, life: int, others_end: int) -> None:
        """Do something in the process that becomes bwrap, just before it does. The box lives as long as the pipe."""

    def after(self, launch: Launch) -> Deed:
        """Look around while bwrap makes the mounts. Returns what to do when the box has ended."""
        raise NotImplementedError

    def made(self, launch: Launch, root: str) -> Deed:
        """Look at the box when its mounts are made, and nothing has started. Returns what to do when it has ended."""
        raise NotImplementedError
