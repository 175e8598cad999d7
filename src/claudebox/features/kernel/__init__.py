"""What of the kernel the box gets: system calls, namespaces, /proc."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import Plan
from claudebox.settings.table import OFF, ON, SHOWN, Setting
from claudebox.settings.types import Choice

USERNS = Setting(
    *("userns", SHOWN, "user namespaces in the box, for Chromium or bwrap: off (default) or on"),
    Choice(ON, OFF, default=OFF),
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.host import Host
    from claudebox.output.section import Section
    from claudebox.process.trial import CheckRow
    from claudebox.settings import Settings

OPTION = "- user namespaces: `--userns on`; Chromium does not need them if you start it with `--no-sandbox`\n"


class KernelFeature(Feature):
    settings = (USERNS,)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.kernel import decide

        return decide.decide(facts, draft)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import ASK, Section

        return (Section(told=((ASK, OPTION),)),)

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        from claudebox.features.kernel import decide

        return decide.check(host)
