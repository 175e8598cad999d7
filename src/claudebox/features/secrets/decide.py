"""Covers the files of the project that hold secrets with made-up ones."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts, Masked, Secrets
from claudebox.features.secrets import table
from claudebox.features.secrets.table import RULE
from claudebox.host import Host
from claudebox.host.git.repository import Repository
from claudebox.host.walk import DIRECTORY, UNREAD, Entry
from claudebox.model import HIDE, MASK, Mount, Origin, Step
from claudebox.mounts import find_appearances
from claudebox.paths import absolute, is_inside
from claudebox.settings.values import Settings
from claudebox.state import Instance

CLOSED = "cannot be looked into"
LONGEST_PLACE = 3000  # bytes of a path at which something can be mounted


def decide(facts: Facts, draft: Draft) -> Contribution:
    if facts.secrets is None:
        return Contribution()
    closed = [path for place in facts.secrets.closed for path in find_appearances(place, draft.mounts)]
    masks = mask_mounts(facts.secrets, draft.mounts, draft.wished)
    is_laid_out = facts.state is not None and any(mount.kind == MASK for mount in masks)
    return Contribution(
        mounts=(
            *masks,
            *(Mount(HIDE, path, Origin.of_rule(RULE, CLOSED)) for path in closed),
        ),
        findings=facts.secrets.findings,
        preparations=facts.secrets.preparations,
        steps=(Step(Step.BESIDE, "secrets"),) if is_laid_out else (),
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
    identity = masked.device, masked.inode
    if masked.decoy is None:
        return Mount(HIDE, path, origin, is_dir=False, covers=masked.path, identity=identity)
    return Mount(MASK, path, origin, content=masked.decoy, mode=masked.mode, covers=masked.path, identity=identity)


def find_secrets(
    host: Host, settings: Settings, repository: Repository, state: Instance | None, entries: tuple[Entry, ...]
) -> Secrets | None:
    """Find the files that hold secrets, and make their decoys; None if nothing can hold one.

    Most projects have no file whose name is in the table. Then no more than the table is loaded.
    """
    tree, project = host.tree, host.cwd
    git_dirs = [entry.path for entry in entries if entry.kind == DIRECTORY and entry.name == ".git"]
    git_dirs += [f"{entry.path}/repo/store/git" for entry in entries if entry.name == ".jj"]
    git_dirs += [entry.path.rpartition("/")[0] for entry in entries if entry.name == "HEAD"]  # without a checkout
    git_dirs += [repository.outside] if repository.outside else []
    found = [*table.find(tree, project, entries), *table.git_files(tree, git_dirs)]
    closed = find_closed(host, settings, entries)
    has_known = state is not None and tree.lstat(state.masked) is not None
    if not (found or has_known or settings.reveal):
        return Secrets(closed=closed) if closed else None
    from claudebox.features.secrets import masks, memory

    known = memory.recall(tree, state, host.person.uid)
    found += memory.still_there(tree, project, known, settings.reveal)
    inventor, drawn_before = memory.recall_inventor(tree, state, host.person.uid)
    search = masks.Search(tree, project, repository.git_dir, host.person.home, settings, inventor)
    secrets = masks.judge(search, found)
    elsewhere = {path: one for path, one in known.items() if search.is_hidden(path) or not is_inside(path, project)}
    noted = memory.remembering(state, known, elsewhere, secrets.masked)
    if secrets.masked:
        noted += memory.remembering_inventor(state, inventor, drawn_before)
    return secrets.replace(closed=closed, preparations=noted)


def find_closed(host: Host, settings: Settings, entries: tuple[Entry, ...]) -> tuple[str, ...]:
    """Directories that cannot be listed now, but by the agent, who is their owner or goes there step by step."""
    found = []
    revealed = [absolute(reveal.text, host.cwd, host.person.home) for reveal in settings.reveal]
    for entry in entries:
        status = host.tree.lstat(entry.path) if entry.kind == UNREAD else None
        if entry.kind != UNREAD or (status is not None and status.st_uid != host.person.uid):
            continue
        place = entry.path
        while len(place.encode(errors="surrogateescape")) > LONGEST_PLACE:
            place = place.rpartition("/")[0]
        is_shown = place == host.cwd or any(is_inside(place, one) for one in revealed)
        found += [] if is_shown else [place]
    return tuple(dict.fromkeys(found))
