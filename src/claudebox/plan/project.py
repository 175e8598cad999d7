"""What lies in the project: looked for once, before anything is decided about it."""

from __future__ import annotations

from claudebox.features.guard import table as guard_table
from claudebox.features.secrets import table as project_secrets
from claudebox.host.walk import (
    BEYOND,
    DIRECTORY,
    UNREAD,
    Entry,
    walk_project,
)
from claudebox.model import Finding
from claudebox.paths import is_inside
from claudebox.plan.ground import Ground

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features.secrets.masks import Secrets
    from claudebox.state import Instance


def look_through(ground: Ground) -> tuple[Entry, ...]:
    return walk_project(ground.host.tree, ground.project, project_secrets.WANTED | guard_table.WANTED)


def walk_findings(ground: Ground, entries: tuple[Entry, ...]) -> list[Finding]:
    """What could not be looked at. What belongs to somebody else the agent cannot look at either."""
    findings = []
    for entry in entries:
        name = entry.path.removeprefix(ground.project + "/")
        if entry.kind == BEYOND:
            text = "the project is too large or too deep: secrets there and further on are not looked for"
            findings.append(Finding(Finding.RISK, name, text))
        elif entry.kind == UNREAD:
            status = ground.host.tree.lstat(entry.path)
            if status is None or status.st_uid == ground.host.person.uid:
                text = "cannot be listed, so secrets in there are not looked for: the agent can change that"
                findings.append(Finding(Finding.RISK, name, text))
    return findings


def find_secrets(ground: Ground, entries: tuple[Entry, ...], state: Instance | None) -> Secrets | None:
    """Most projects have no file that could hold one: then this is all that is read."""
    tree, project = ground.host.tree, ground.project
    git_dirs = [entry.path for entry in entries if entry.kind == DIRECTORY and entry.name == ".git"]
    git_dirs += [ground.repository.outside] if ground.repository.outside else []
    found = [*project_secrets.candidates(entries), *project_secrets.git_files(tree, git_dirs)]
    has_known = state is not None and tree.lstat(state.masked) is not None
    if not (found or has_known or ground.settings.reveals):
        return None
    from claudebox.features.secrets import masks, memory

    known = memory.recall(tree, state, ground.host.person.uid)
    found += memory.still_there(tree, project, known, ground.settings.reveals)
    search = masks.Search(tree, project, ground.repository.git_dir, ground.host.person.home, ground.settings)
    secrets = masks.find_secrets(search, found)
    kept = {path: one for path, one in known.items() if search.is_hidden(path) or not is_inside(path, project)}
    return secrets.replace(preparations=memory.remembering(state, known, kept, secrets.masked))
