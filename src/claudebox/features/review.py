"""Layers: what the box changes in the project, or in what is guarded there, is kept until the user lands it.

A box that was asked to keep its changes never writes through: where that cannot be done, nothing starts. In one that
was not asked, what is guarded is read-only then.
"""

from __future__ import annotations

import stat

from claudebox.errors import Problem, quote
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.tree import Tree
from claudebox.model import LAYER, MOST_LAYERED, RO, RW, UNSEEN, Covered, Finding, Launch, Mount, Plan, Review, Step
from claudebox.paths import is_below, is_inside, within
from claudebox.settings.table import LAND, OFF, REVIEW
from claudebox.state import Instance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features import Companion, Deed, Section, Settings

DOT_GIT = ".git"
OF_ANOTHER_GROUP = "belongs to another group than yours: a layer can change nothing that does (chgrp mends it)"
NOT_PASTED = """\
Only claudebox itself can keep changes until you land them. A launch does so for all of these; in this command their
guarded parts are read-only, and the rest is written at once: {}
"""
TOLD_OF_ALL = """\
What you write in the project is real for you, and for nobody else: when the box ends, the user sees a list and lands
what they want. So work as usual, and commit as usual; commits arrive on the user's machine, hooks and configuration of
git do not, and neither do pipes, sockets and repositories inside the project. What the user's programs run by
themselves (CI files, editor tasks, hooks) lands only if the user picks it: name such files in your last message.
Renaming a directory that was there before fails ("Invalid cross-device link"): use `mv` or `git mv`, which copy then.
"""
TOLD_OF_PARTS = """\
The user's own programs, or CI, run files in {names}. You can change them, and git can; on the user's machine they are
as before until the user lands them when the box ends. Say in your last message what you changed there, and why.
These directories cannot be removed or renamed, and those in them only by `mv`, which copies ("Invalid cross-device
link" otherwise).{direct}
"""
DIRECT = "Git's worktrees in `.claude/worktrees` are not kept back."


class ReviewFeature(Feature):
    def applies(self, facts: Facts) -> bool:
        return facts.has_layer or facts.settings[LAND].origin.is_typed

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        """The project is a layer, or something in it is guarded that can be one: git's own never is."""
        said = facts.settings[REVIEW]
        if not facts.has_layer:
            raise Problem("--land has no meaning with --review off: nothing is kept", "leave out one of the two")
        layered = [] if facts.is_reviewed else guarded_directories(facts, draft.mounts)
        if not (facts.is_reviewed or layered) or (said.origin.is_default and facts.why_no_layers):
            return Contribution()
        state = _require_ground(facts)
        outside = next((one.source for one in draft.mounts if one.kind == LAYER and one.source != facts.project), "")
        roots = [mount.source for mount in layered] or [facts.project, *([outside] if outside else [])]
        review = Review(
            origin=said.origin,
            land=facts.settings[LAND].text,
            place=state.layers,
            project=facts.project,
            covered=tuple(Covered(root, identity(facts.tree, root)) for root in roots),
            git=outside,
            direct=() if facts.is_reviewed else find_direct(facts.tree, roots, draft.mounts),
        )
        steps = tuple(Step(moment, self) for moment in (Step.BESIDE, Step.MOUNT, Step.AFTER))
        return Contribution(
            mounts=tuple(mount.replace(kind=LAYER) for mount in layered),
            findings=tuple(find_gaps(facts, draft)) if facts.is_reviewed else (),
            steps=steps,
            records=(review,),
        )

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import Section, named

        review = plan.review
        if review is None:
            return (Section(key="review"),)
        names = ", ".join(named(within(one.path, plan.project) for one in review.covered))
        parts = TOLD_OF_PARTS.format(names=names, direct=f" {DIRECT}" if plan.guard.direct else "")
        places = sorted(review.places)
        told = ("Your changes wait for the user", TOLD_OF_ALL)
        value = {
            "land": review.land,
            "rule": review.origin.shown,
            "layers": [one.path for one in review.covered],
            "direct": [one.path for one in review.direct],
        }
        return (
            Section(
                key="review",
                value=value,
                told=(told if review.is_whole else ("Changes that wait for the user", parts),),
                comment=NOT_PASTED.format(" ".join(map(quote, places))),
                pasted=(("read_only_instead_of_layers", places),),
            ),
        )

    def pasted(self, plan: Plan, settings: Settings) -> Settings:
        """Where the guarded parts are layers, they are read-only."""
        if plan.review is None:
            return settings
        if plan.review.is_whole:
            # The command would have to write through, which is what the user does not want.
            what = f"{plan.review.origin.shown}: only claudebox itself can lay a layer over the project"
            raise Problem(what, "to see the rest of the box: --dry-run --review off")
        return settings.having(REVIEW, settings[REVIEW].replace(text=OFF))

    def beside(self, launch: Launch) -> Companion:
        from claudebox.overlay import mounting

        return mounting.hold_layer(launch)

    def mount(self, launch: Launch) -> None:
        from claudebox.overlay import mounting

        mounting.mount_layers(launch)

    def after(self, launch: Launch) -> Deed:
        from claudebox.overlay import mounting

        return mounting.watch_layer(launch)


def _require_ground(facts: Facts) -> Instance:
    """Where layers are kept. Raises a Problem if there cannot be any."""
    from claudebox.overlay.machine import WALLS, WITHOUT, find_obstacle

    said, state = facts.settings[REVIEW].origin.shown, facts.claude.all_projects
    without = WITHOUT if facts.is_reviewed else WALLS
    obstacle = find_obstacle(facts.tree, facts.host.person.uid, state)
    if obstacle is not None:
        raise Problem(f"{said}: {obstacle.message}", f"{obstacle.hint}\n      {without}")
    if facts.state is None:
        raise Problem(f"{said}: {state.directory} cannot be used", f"ls -ld {state.directory}\n      {without}")
    return facts.state


def guarded_directories(facts: Facts, mounts: tuple[Mount, ...]) -> list[Mount]:
    """The directories of the project that are read-only because the host runs what is in them.

    Git's own stay so: of those nothing would ever land. And so does one with a repository in it, since files in a layer
    do not go together with what git notes of them; one with another file system, on which nothing lands; and one of
    another group, which no layer can change.
    """
    guards = [mount for mount in mounts if mount.origin.is_rule("guard") and mount.path == mount.source]
    inside = [mount for mount in guards if mount.kind == RO and mount.is_dir and is_below(mount.path, facts.project)]
    candidates = [mount for mount in inside if DOT_GIT not in mount.path.lower().split("/")]
    direct = [mount.source for mount in guards if mount.kind == RW]
    foreign = [entry.path for entry in facts.entries if entry.name == DOT_GIT]
    foreign += _mounted_inside(facts) if candidates else []
    found: list[Mount] = []
    for mount in candidates:
        path = mount.path
        around = max((place for place in direct if is_below(path, place)), key=len, default="")
        if (
            not is_of_another_group(facts, path)
            and _can_be_entered(facts, path)
            and not any(is_below(path, other.path) and not is_below(around, other.path) for other in found)
            and not any(is_inside(one, path) and not any(is_inside(one, part) for part in direct) for one in foreign)
        ):
            found.append(mount)
    return found[:MOST_LAYERED]


def _mounted_inside(facts: Facts) -> list[str]:
    """Where other file systems are mounted in the project on this host."""
    from claudebox.overlay.machine import read_mounts

    return [path for path, _ in read_mounts(facts.tree) if is_below(path, facts.project)]


def _can_be_entered(facts: Facts, path: str) -> bool:
    """Whether its mode lets the user in. A layer has the same mode, and nobody could see what is in it."""
    status = facts.tree.lstat(path)
    return status is not None and status.st_mode & stat.S_IRWXU == stat.S_IRWXU


def find_direct(tree: Tree, roots: list[str], mounts: tuple[Mount, ...]) -> tuple[Covered, ...]:
    """The places in layers that the box may change on the host itself: somebody said so, or git needs it."""
    found = [
        mount.source
        for mount in mounts
        if mount.kind == RW and mount.path == mount.source and any(is_below(mount.source, root) for root in roots)
    ]
    return tuple(Covered(path, identity(tree, path)) for path in dict.fromkeys(found))


def identity(tree: Tree, path: str) -> tuple[int, int]:
    status = tree.lstat(path)
    return (status.st_dev, status.st_ino) if status is not None else UNSEEN


def is_of_another_group(facts: Facts, path: str) -> bool:
    """Whether it is the user's, and of a group that the box does not know: the kernel puts no copy of it in a layer.

    Programs in the box that try to change it are told "Value too large for defined data type".
    """
    status, person = facts.tree.lstat(path), facts.host.person
    return status is not None and status.st_uid == person.uid and status.st_gid != person.gid


def find_gaps(facts: Facts, draft: Draft) -> list[Finding]:
    """What a layer does not cover, or cannot hold."""
    top = [facts.project, *(f"{facts.project}/{name}" for name in facts.tree.entries(facts.project))]
    others = [path for path in top if is_of_another_group(facts, path)]
    found = [Finding(Finding.NOTE, path, OF_ANOTHER_GROUP) for path in others[:1]]
    not_shown = "is mounted in the project on this host: a layer does not show it"
    found += [Finding(Finding.NOTE, path, not_shown) for path in _mounted_inside(facts)]
    found += [
        Finding(Finding.NOTE, wish.source, "is writable and not in the layer: changes there reach this host at once")
        for wish in draft.wished
        if wish.kind == RW and not is_inside(wish.source, facts.project)
    ]
    return found
