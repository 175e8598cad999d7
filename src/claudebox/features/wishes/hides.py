"""What shall not be seen, whatever shows it: secret places, and what somebody hides."""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.hiding import hides_asked_for, named_path
from claudebox.host.tree import Tree
from claudebox.model import (
    HIDE,
    Finding,
    Mount,
    Origin,
    SecretPlace,
)
from claudebox.mounts import (
    appearances,
)
from claudebox.settings.values import (
    Named,
)


def hides_inside(tree: Tree, mounts: list[Mount], places: tuple[SecretPlace, ...]) -> list[Mount]:
    """Secret places that a broader mount would show."""
    hides: list[Mount] = []
    for place in places:
        if place.exists and (paths := appearances(place.path, mounts)):
            origin, is_dir = Origin("secret", place.reason), tree.is_dir(place.path)
            hides += [Mount(HIDE, path, origin, is_dir=is_dir) for path in paths]
    return hides


def hide_findings(tree: Tree, hides: tuple[Named, ...], cwd: str, home: str) -> list[Finding]:
    return [
        Finding(Finding.NOTE, hide.path, f"{hide.origin.rule} would hide it, but it does not exist yet")
        for hide in hides
        if not tree.exists(named_path(hide.path, cwd, home))
    ]


def decide(facts: Facts, draft: Draft) -> Contribution:
    tree, hides = facts.tree, facts.settings.hides
    return Contribution(
        hides=(
            *hides_inside(tree, draft.mounts, draft.hidden_places(facts.places)),
            *hides_asked_for(tree, hides, facts.project, facts.home, draft.mounts),
        ),
        findings=tuple(hide_findings(tree, hides, facts.project, facts.home)),
    )
