"""What package managers download, kept for the project."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import RW, Launch, Plan
from claudebox.record import Record
from claudebox.settings.table import MOUNTS, NONE, SHOWN, Setting
from claudebox.settings.types import Choice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.output.section import Section
    from claudebox.process.companion import Companion


HOST, PROJECT = "host", "project"
CACHE = Setting(
    *("cache", SHOWN),
    "what package managers download: kept for the project (default), over the host's, or none",
    Choice(HOST, PROJECT, NONE, default=PROJECT),
    usage="WHERE",
    help_in_files="where what package managers download is kept: host means over this host's own, read-only",
)


class Cache(Record):
    """What package managers download, kept for the project."""

    directory: str  # the box has it writable
    over_host: str = ""  # the same, if the host's own caches lie underneath
    layers: str = ""  # where the kernel keeps what the box changes in them
    lower: tuple[tuple[str, str], ...] = ()  # each cache of the host, and where it appears below `over_host`


class Caches(Feature):
    settings = (CACHE,)

    def applies(self, facts: Facts) -> bool:
        """A box without Claude on a host without any state leaves none behind, unless somebody asks for it."""
        said, state = facts.settings[CACHE], facts.claude.all_projects.directory
        is_wanted = facts.install is not None or said.origin.is_said or facts.tree.lstat(state) is not None
        return said.text != NONE and is_wanted

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.caches import places

        return places.decide(facts, draft)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import WRITABLE, Section

        cache = plan.get(Cache)
        if cache is None:
            return (Section(key="cache"),)
        value = {"directory": cache.over_host or cache.directory, "over": [path for path, _ in cache.lower]}
        return (Section(adds=((WRITABLE, "the cache"),), key="cache", value=value),)

    def beside(self, launch: Launch) -> Companion:
        from claudebox.features.caches import places

        return places.beside(launch)

    def mount(self, launch: Launch) -> None:
        from claudebox.features.caches import places

        places.mount(launch)


class Warnings(Feature):
    """Flags a cache of the host that somebody mounts writable."""

    def applies(self, facts: Facts) -> bool:
        return any(one.access == RW for one in facts.settings[MOUNTS])

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.caches import places

        return places.decide_warnings(facts, draft)


CACHES = Caches()
