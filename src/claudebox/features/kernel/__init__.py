"""What of the kernel the box gets: system calls, namespaces, /proc."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.settings.table import OFF, ON, SHOWN, Setting
from claudebox.settings.types import Choice

USERNS = Setting(
    *("userns", SHOWN, "user namespaces in the box, for Chromium or bwrap: off (default) or on"),
    Choice(ON, OFF, default=OFF),
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.host import Host
    from claudebox.process.trial import CheckRow
    from claudebox.settings import Settings


class KernelFeature(Feature):
    settings = (USERNS,)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.kernel import decide

        return decide.decide(facts, draft)

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        from claudebox.features.kernel import decide

        return decide.check(host)
