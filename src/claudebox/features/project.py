"""Shows the project, writable at its own path, and reports what in it could not be looked at."""

from __future__ import annotations

import stat

from claudebox.errors import Problem, quote
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host import account_name
from claudebox.host.walk import UNREAD
from claudebox.model import COVER, LAYER, RW, Finding, Mount, Origin, Plan, Preparation
from claudebox.paths import is_inside, parents
from claudebox.settings import PROJECT_FILE
from claudebox.state.memory import path_note

PROJECT = Origin.of_rule("project", "what the agent works on")
REVIEWED = Origin.of_rule("project", "what the agent works on; the host has it when you land it")
SETTINGS_FILE = Origin.of_rule("project", "read-only: its settings")

ROOT_FINDING = Finding(
    Finding.NOTE, "root", "what the agent makes belongs to root on the host, too; an ordinary account is safer"
)
SELF_FINDING = Finding(
    Finding.RISK, "claudebox", "runs from this very project: the agent can change what you start next time"
)

LONGEST_SHOWN = 200


class Project(Feature):
    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        kind, origin = (LAYER, REVIEWED) if facts.is_reviewed else (RW, PROJECT)
        project = Mount(kind, facts.project, origin, source=facts.project)
        # Its settings were judged before the start: the agent must not change them meanwhile.
        path = f"{facts.project}/{PROJECT_FILE}"
        content = facts.tree.read_plain(path)
        file = [] if content is None else [Mount(COVER, path, SETTINGS_FILE, content=content, mode=0o444)]
        return Contribution(
            mounts=(project, *file),
            findings=(
                *([ROOT_FINDING, *_foreign(facts)] if facts.is_root else []),
                *([SELF_FINDING] if is_inside(facts.host.own_source, facts.project) else []),
                *_unseen(facts),
            ),
        )


class Reach(Feature):
    """Remembers what this box can write: later launches follow no symlink that an agent may have put there."""

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        state = facts.state
        if state is None:
            return plan
        wished = [wish.source for wish in draft.wished if wish.kind == RW]
        paths = (*(mount.source for mount in plan.mounts), *(one.path for one in plan.preparations))
        # Without files of claudebox on this host, no symlink could ever lead to them. What a box can write beyond its
        # project is noted all the same: settings that are written later may name it.
        is_needed = (
            facts.install is not None
            or facts.starts_agent
            or plan.review is not None
            or any(is_inside(path, state.directory) for path in paths)
            or (wished and facts.tree.is_writable(facts.home))
            or facts.tree.lstat(facts.claude.all_projects.directory) is not None
        )
        if not is_needed:
            return plan
        git = filter(None, (facts.repository.outside,))
        writable = [facts.project, *git, *wished]
        notes = [path_note(state.writable(path), path) for path in writable]
        return plan.replace(
            preparations=(
                *plan.preparations,
                Preparation(Preparation.DIRECTORY, state.directory),
                *notes,
                path_note(state.project, state.root),
            )
        )


def _foreign(facts: Facts) -> list[Finding]:
    """Keep root out of somebody else's project, or warn: in a box, root has the rights of an account like any other."""
    status = facts.tree.lstat(facts.project)
    if status is None or status.st_uid == 0:
        return []
    owner = account_name(facts.tree, status.st_uid) or f"#{status.st_uid}"
    for path in (*parents(facts.project), facts.project):
        at = facts.tree.lstat(path)
        if at is not None and at.st_uid != 0 and not at.st_mode & (stat.S_IXGRP if at.st_gid == 0 else stat.S_IXOTH):
            what = f"root cannot enter {path} in a box: it belongs to {owner}, and lets in nobody else"
            raise Problem(what, f"start it as that account: sudo -u {quote(owner)} claudebox")
    text = f"belongs to {owner}, and root has no special rights in the box: sudo -u {quote(owner)} claudebox"
    return [Finding(Finding.NOTE, "project", text)]


def _unseen(facts: Facts) -> list[Finding]:
    """Report directories that could not be listed. The agent cannot list those of somebody else either."""
    findings = []
    for entry in facts.entries:
        name = entry.path.removeprefix(facts.project + "/")
        if entry.kind == UNREAD:
            status = facts.tree.lstat(entry.path)
            if status is None or status.st_uid == facts.host.person.uid:
                text = "too deep, or cannot be listed: the box does not see what is in there, since an agent could look"
                findings.append(Finding(Finding.NOTE, name[:LONGEST_SHOWN], text))
    return findings
