"""Looks for secrets in the project's files."""

from __future__ import annotations

from claudebox.features.secrets import table
from claudebox.host import Host
from claudebox.host.git.repository import Repository
from claudebox.host.walk import DIRECTORY, Entry
from claudebox.model import Secrets, State
from claudebox.paths import is_inside
from claudebox.settings.values import Settings


def find_secrets(
    host: Host, settings: Settings, repository: Repository, state: State | None, entries: tuple[Entry, ...]
) -> Secrets | None:
    """Most projects have no file that could hold one: then this is all that is read."""
    tree, project = host.tree, host.cwd
    git_dirs = [entry.path for entry in entries if entry.kind == DIRECTORY and entry.name == ".git"]
    git_dirs += [repository.outside] if repository.outside else []
    found = [*table.candidates(entries), *table.git_files(tree, git_dirs)]
    has_known = state is not None and tree.lstat(f"{state.directory}/{table.MEMORY}") is not None
    if not (found or has_known or settings.reveals):
        return None
    from claudebox.features.secrets import masks, memory

    known = memory.recall(tree, state, host.person.uid)
    found += memory.still_there(tree, project, known, settings.reveals)
    search = masks.Search(tree, project, repository.git_dir, host.person.home, settings)
    secrets = masks.judge(search, found)
    kept = {path: one for path, one in known.items() if search.is_hidden(path) or not is_inside(path, project)}
    return secrets.replace(preparations=memory.remembering(state, known, kept, secrets.masked))
