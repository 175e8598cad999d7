"""Decides that the project is a layer, or what is guarded in it. Where that cannot be done, nothing starts.

There is no way in between: a box that was asked to keep its changes never writes through.
"""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.host.kernel import keeps_namespaces_from_us
from claudebox.host.tree import Tree
from claudebox.layers import Covered, Review
from claudebox.model import LAYER, RO, RW, Finding, Mount, Step
from claudebox.paths import is_below, is_inside
from claudebox.problem import Problem

MOUNTS = "/proc/self/mountinfo"
OVERLAY = "overlay"
DOT_GIT = ".git"
MOST_LAYERED = 50  # each is a mount; the rest stays read-only
WITHOUT = "without it, changes reach this host at once: --review off"


def decide(facts: Facts, draft: Draft) -> Contribution:
    said = facts.settings.review
    if keeps_namespaces_from_us(facts.tree, facts.host.person.uid):
        raise Problem(
            f"{said.origin.shown}: a layer needs a namespace that claudebox makes, and AppArmor forbids it here",
            "to allow it: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        )
    state = facts.claude.all_projects
    if facts.state is None:
        raise Problem(f"{said.origin.shown}: {state.directory} cannot be used", f"ls -ld {state.directory}")
    mounted = read_mounts(facts.tree)
    if kind_at(mounted, facts.tree.resolve(state.home) or state.home) == OVERLAY:
        raise Problem(
            f"{said.origin.shown}: {state.directory} is on an overlay itself, as in a container: no layer can be there",
            f"give the container a volume for {state.directory}\n      {WITHOUT}",
        )
    layered = [] if facts.is_reviewed else guarded_directories(facts.project, draft.mounts)
    if not facts.is_reviewed and not layered:
        return Contribution()
    outside = next((one.source for one in draft.mounts if one.kind == LAYER and one.source != facts.project), "")
    roots = [mount.source for mount in layered] or [facts.project, *([outside] if outside else [])]
    review = Review(
        origin=said.origin,
        land=facts.settings.land.text,
        place=facts.state.layers,
        project=facts.project,
        covered=tuple(Covered(root, identity(facts.tree, root)) for root in roots),
        git=outside,
    )
    return Contribution(
        mounts=tuple(mount.replace(kind=LAYER) for mount in layered),
        findings=tuple(find_gaps(facts, draft, mounted)) if facts.is_reviewed else (),
        steps=(Step(Step.BESIDE, "review"), Step(Step.MOUNT, "review"), Step(Step.AFTER, "review")),
        decided=(("review", review),),
    )


def guarded_directories(project: str, mounts: list[Mount]) -> list[Mount]:
    """The directories of the project that are read-only because the host runs what is in them.

    Git's own stay so: of those nothing would ever land.
    """
    found = [
        mount
        for mount in mounts
        if mount.kind == RO and mount.origin.is_rule("guard") and mount.is_dir and mount.path == mount.source
    ]
    inside = [one for one in found if is_below(one.path, project) and DOT_GIT not in one.path.lower().split("/")]
    return inside[:MOST_LAYERED]


def identity(tree: Tree, path: str) -> tuple[int, int]:
    status = tree.lstat(path)
    assert status is not None, "a mount that was decided has a source"
    return status.st_dev, status.st_ino


def find_gaps(facts: Facts, draft: Draft, mounted: list[tuple[str, str]]) -> list[Finding]:
    """What a layer does not cover."""
    found = [
        Finding(Finding.NOTE, path, "is mounted in the project on this host: a layer does not show it")
        for path, _ in mounted
        if is_below(path, facts.project)
    ]
    found += [
        Finding(Finding.NOTE, wish.source, "is writable and not in the layer: changes there reach this host at once")
        for wish in draft.wished
        if wish.kind == RW and not is_inside(wish.source, facts.project)
    ]
    return found


def read_mounts(tree: Tree) -> list[tuple[str, str]]:
    """Each mount of this host: its path and the kind of its file system."""
    found = []
    for line in (tree.text(MOUNTS) or "").splitlines():
        words = line.split(" ")
        if "-" in words and len(words) > words.index("-") + 1:
            found.append((_plain(words[4]), words[words.index("-") + 1]))
    return found


def _plain(path: str) -> str:
    for character in " \t\n\\":
        path = path.replace(f"\\{ord(character):03o}", character)
    return path


def kind_at(mounted: list[tuple[str, str]], path: str) -> str:
    """The kind of the file system that holds a path. Of several mounts at one place, the last one is on top."""
    holding = [(len(place), number, kind) for number, (place, kind) in enumerate(mounted) if is_inside(path, place)]
    return max(holding)[2] if holding else ""
