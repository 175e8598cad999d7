"""What of the kernel the box gets: system calls, namespaces, /proc."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature


class KernelFeature(Feature):
    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.kernel import decide

        return decide.decide(facts, draft)
