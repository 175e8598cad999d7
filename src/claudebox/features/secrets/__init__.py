"""Secrets of the project, and, in mounted.py, of what somebody mounts."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts, Masked, Secrets
from claudebox.features import Feature
from claudebox.features.secrets.table import RULE, Kind, kind_by_all_names, strictest
from claudebox.host.walk import GIT
from claudebox.model import HIDE, MASK, UNASKED, Launch, Mount, Origin, Plan, Step
from claudebox.paths import shorten_home, within
from claudebox.record import Record
from claudebox.sandbox.mounts import find_appearances
from claudebox.settings.table import SHOWN, Setting
from claudebox.settings.types import List, ProjectPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed
    from claudebox.output.section import Section
    from claudebox.process.companion import Companion


REVEAL = Setting(
    *("reveal", SHOWN, "show PATH in the project as it is, although it looks secret; PATH:KEY for one value of it"),
    List(ProjectPath()),
)
MADE_UP = "(made-up values, read-only; the real ones with --reveal PATH)"
MOST_TOLD = 30
TOLD = """\
These hold secrets on the user's machine. In the box their keys are right, but secret values are made up, in the shape
of the real ones, or the file is empty. They are read-only: writing, replacing (`sed -i`), moving or deleting one fails
("Read-only file system", "Device or resource busy"). If such a file needs a change, tell the user in your last message
which line to add or change, or write it into an example file such as `.env.example`. A login that fails with a made-up
value is not a bug. If a task needs the real values, ask the user for `--reveal PATH`, or `--reveal PATH:KEY` for one of
them; never ask for a secret itself.

"""


class Masks(Feature):
    """Covers files of the project that hold secrets with made-up ones, as long as the box lives."""

    settings = (REVEAL,)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        secrets = facts.secrets or Secrets()
        # At every place where the box would show such a file, except where somebody asked for that very file.
        asked = {wish.path for wish in draft.wished if any(wish.source == masked.path for masked in secrets.masked)}
        masks = [
            Mount(
                *(MASK, path, Origin.of_rule(RULE, masked.reason)),
                content=masked.decoy,
                mode=masked.mode,
                consent=UNASKED,
                covers=masked.path,
                identity=(masked.device, masked.inode),
            )
            for masked in secrets.masked
            for path in find_appearances(masked.path, draft.mounts)
            if path not in asked
        ]
        hides = [
            Mount(HIDE, path, Origin.of_rule(RULE, why), consent=UNASKED)
            for place, why in secrets.closed
            for path in find_appearances(place, draft.mounts)
        ]
        return Contribution(
            mounts=(*masks, *hides),
            pins=tuple(mount.path for mount in (*masks, *hides)),  # else the agent moves a directory with a secret
            findings=secrets.findings,
            preparations=secrets.preparations,
            # In a project without secrets somebody may make one while the box runs.
            steps=(Step(Step.BESIDE, self), Step(Step.MADE, self)),
            records=(Judging(facts, secrets, dict(secrets.also)),),
        )

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import FILES, WRITABLE, Row, Section, named

        covered = [mount for mount in plan.mounts if mount.origin.is_rule(RULE)]
        if not covered:
            return ()
        home, lines = plan.person.home, []
        for kind, label, note in ((HIDE, "none", ()), (MASK, "made", (MADE_UP,))):
            members = [mount for mount in covered if mount.kind == kind]
            words = [word for one in members for word in (shorten_home(one.path, home), f"({one.origin.reason})")]
            if members:
                lines.append((f"{RULE:<11} {label}", (*words, *note)))
        names = named((shorten_home(mount.path, home) for mount in covered), MOST_TOLD)
        return (
            Section(
                title=FILES,
                lines=tuple(lines),
                rows=(
                    Row(
                        "masked",
                        tuple(within(mount.path, plan.project) for mount in covered),
                        "(the box sees made-up values)",
                        after=WRITABLE,
                    ),
                ),
                told=(("Files with made-up values", TOLD + "".join(f"- {name}\n" for name in names)),),
            ),
        )

    def beside(self, launch: Launch) -> Companion:
        from claudebox.features.secrets import decoys

        return decoys.beside(launch)

    def made(self, launch: Launch, root: str) -> Deed:
        from claudebox.features.secrets import decoys

        return decoys.made(launch, root)


class Judging(Record):
    """Judges files of the host while the box runs, with a new look: nothing that was read before counts."""

    facts: Facts
    secrets: Secrets
    also: dict[str, str]  # of files and directories, other names by which they count

    def directories(self) -> list[str]:
        """Where to look for new files, the most important first."""
        git_dirs = [entry.path for entry in self.facts.entries if entry.name == GIT]
        return [*git_dirs, *self.also, *self.facts.directories]

    def kind(self, path: str) -> Kind | None:
        return kind_by_all_names(path, self.facts.project, self.also)

    def judge(self, path: str, here: int, asked: str = "") -> tuple[Masked | None, bytes | None, int]:
        """An open file as the box may see it, or None if nothing in it is secret; what was read, and of which inode.

        It is at this path, and was at another one when somebody asked. What was masked at the start is judged as
        strictly as then. It stays masked, even by its own content.
        """
        from claudebox.features.secrets.finding import make_finder

        before = next((one for one in self.secrets.masked if one.path == path), None)
        kind = strictest((self.kind(path), self.kind(asked), (before.how, before.reason) if before else None))
        finder = make_finder(self.facts)
        masked = finder.judge(path, kind, here) if kind is not None else None
        if masked is None and before is not None and finder.content is not None:
            masked = before.replace(decoy=finder.content)
        return masked, finder.content, finder.inode
