"""Toolchains of the home that the host's PATH would run."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.system import PLAIN_PATH
from claudebox.model import RO, Plan
from claudebox.paths import shorten_home
from claudebox.settings.table import OFF, SHOWN, Setting
from claudebox.settings.types import Choice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.output.section import Section

TOOLCHAINS = Setting(
    *("toolchains", SHOWN, "programs in your home that PATH would run (nvm, pyenv, rustup): auto (default) or off"),
    Choice("auto", OFF, default="auto"),
)

RULE = "toolchain"
TOLD = """
From the user's home, read-only and on your PATH, at the user's versions: {}. You cannot add to them (`npm install -g`,
`rustup toolchain install`): install into the project instead.
"""


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

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import READ_ONLY, TOOLS, Row, Section, named

        trees = [mount.path for mount in plan.mounts if mount.kind == RO and mount.origin.is_rule(RULE)]
        if not trees:
            return ()
        names = tuple(shorten_home(path, plan.person.home) for path in trees)
        return (
            Section(
                rows=(Row("tools", names, "(read-only: your PATH has them)", after=READ_ONLY),),
                mounts=tuple(trees),
                told=((TOOLS, TOLD.format(", ".join(named(names)))),),
            ),
        )
