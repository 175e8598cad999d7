"""Covers the files of the project that hold secrets with made-up ones."""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts, Masked, Secrets
from claudebox.features.secrets import table
from claudebox.features.secrets.table import RULE
from claudebox.host import Host
from claudebox.host.git.repository import Repository
from claudebox.host.walk import DIRECTORY, Entry
from claudebox.model import HIDE, MASK, Mount, Origin
from claudebox.mounts import find_appearances
from claudebox.paths import is_inside
from claudebox.settings.values import Settings
from claudebox.state import Instance


def decide(facts: Facts, draft: Draft) -> Contribution:
    if facts.secrets is None:
        return Contribution()
    return Contribution(
        mounts=tuple(mask_mounts(facts.secrets, draft.mounts, draft.wished)),
        findings=facts.secrets.findings,
        preparations=facts.secrets.preparations,
    )


def mask_mounts(secrets: Secrets, mounts: list[Mount], wished: list[Mount]) -> list[Mount]:
    """Cover such a file at every place where the box would show it, except where somebody asked for that very file."""
    named = {mount.path for mount in wished if any(mount.source == masked.path for masked in secrets.masked)}
    return [
        _mount(masked, path)
        for masked in secrets.masked
        for path in find_appearances(masked.path, mounts)
        if path not in named
    ]


def _mount(masked: Masked, path: str) -> Mount:
    origin = Origin.of_rule(RULE, masked.reason)
    if masked.decoy is None:
        return Mount(HIDE, path, origin, is_dir=False)
    return Mount(MASK, path, origin, content=masked.decoy, mode=masked.mode)


def find_secrets(
    host: Host, settings: Settings, repository: Repository, state: Instance | None, entries: tuple[Entry, ...]
) -> Secrets | None:
    """Find the files that hold secrets, and make their decoys; None if nothing can hold one.

    Most projects have no file whose name is in the table. Then no more than the table is loaded.
    """
    tree, project = host.tree, host.cwd
    git_dirs = [entry.path for entry in entries if entry.kind == DIRECTORY and entry.name == ".git"]
    git_dirs += [repository.outside] if repository.outside else []
    found = [*table.find(tree, project, entries), *table.git_files(tree, git_dirs)]
    has_known = state is not None and tree.lstat(state.masked) is not None
    if not (found or has_known or settings.reveals):
        return None
    from claudebox.features.secrets import masks, memory

    known = memory.recall(tree, state, host.person.uid)
    found += memory.still_there(tree, project, known, settings.reveals)
    search = masks.Search(tree, project, repository.git_dir, host.person.home, settings)
    secrets = masks.judge(search, found)
    elsewhere = {path: one for path, one in known.items() if search.is_hidden(path) or not is_inside(path, project)}
    return secrets.replace(preparations=memory.remembering(state, known, elsewhere, secrets.masked))
