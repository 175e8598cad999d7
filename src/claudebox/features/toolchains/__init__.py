"""Toolchains of the home that the host's PATH would run."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.system import PLAIN_PATH
from claudebox.settings.table import OFF, SHOWN, Setting
from claudebox.settings.types import Choice

TOOLCHAINS = Setting(
    *("toolchains", SHOWN, "programs in your home that PATH would run (nvm, pyenv, rustup): auto (default) or off"),
    Choice("auto", OFF, default="auto"),
)


class Toolchains(Feature):
    settings = (TOOLCHAINS,)

    def applies(self, facts: Facts) -> bool:
        """Whether PATH has a directory of the home or below /usr/local, or one that may lead there, as fnm makes it."""
        starts = (f"{facts.home}/", "/run/user/", "/usr/local/", *(f"{home}/" for home in facts.host.person.homes))
        entries = set(facts.host.environ.get("PATH", "").split(":")).difference(PLAIN_PATH)
        return facts.settings[TOOLCHAINS].text != OFF and any(entry.startswith(starts) for entry in entries)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.toolchains import finder

        return finder.decide(facts, draft)
