"""What is kept on the host, and has to be there before the box starts."""

from __future__ import annotations

from claudebox.features.claude import home as claude_home
from claudebox.features.claude.seed import (
    Seed,
    seed_state,
)
from claudebox.model import (
    RW,
    Preparation,
)
from claudebox.plan.ground import Ground
from claudebox.plan.layout import Layout
from claudebox.problem import Problem
from claudebox.remembered import path_note
from claudebox.state import (
    Instance,
    State,
)


def plan_seed(ground: Ground, layout: Layout) -> Seed:
    """What has to be written before the box starts."""
    if ground.install is None:
        return Seed((*layout.preparations, *_registration_without_claude(ground, layout)), ())
    tree, claude, home = ground.host.tree, ground.claude, ground.host.person.home
    claude_home.check_state(tree, claude, ground.host.person.uid)
    directories = [
        *claude_home.home_preparations(claude, layout.mounts, with_login=ground.shares_login),
        *_registration(ground, layout),
    ]

    def can_run(command: str) -> bool:
        from claudebox.features.claude.runnable import Runnable

        return Runnable(tree, layout.mounts, ground.path, home).can_run(command)

    # Claude remembers the end of a key: with a broker not even that enters.
    key = ground.host.environ.get("ANTHROPIC_API_KEY", "") if ground.broker is None else ""
    seed = seed_state(ground.trusted, claude, ground.host.person.uid, ground.project, key, can_run)
    return seed.replace(preparations=(*layout.preparations, *directories, *seed.preparations))


def find_state(ground: Ground) -> Instance | None:
    """None where nothing can be kept, which only a box without claude can do without."""
    try:
        claude_home.check_state(ground.host.tree, ground.claude, ground.host.person.uid)
    except Problem:
        return None
    return ground.claude.instance


def _registration_without_claude(ground: Ground, layout: Layout) -> list[Preparation]:
    """Only where claudebox keeps anything at all: without files of its own, there is no symlink of theirs to trust."""
    state = find_state(ground)
    keeps_nothing = not (ground.nix and ground.nix.directory)
    if state is None or (keeps_nothing and ground.host.tree.lstat(State(ground.host.person.home).directory) is None):
        return []
    return [*_registration(ground, layout), path_note(state.project, state.root)]


def _registration(ground: Ground, layout: Layout) -> list[Preparation]:
    """Note what this box can write, so that later ones trust no symlink in there."""
    writable = [ground.project, *(wish.source for wish in layout.wished if wish.kind == RW)]
    instance = ground.claude.instance
    notes = [path_note(instance.writable(path), path) for path in writable]
    return [Preparation(Preparation.DIRECTORY, instance.directory), *notes]
