"""Notes what a box can write, so that later ones trust no symlink in there."""

from __future__ import annotations

from claudebox.contribution import Draft
from claudebox.facts import Facts
from claudebox.model import RW, Plan, Preparation
from claudebox.state import STATE, instance_name


def complete(facts: Facts, draft: Draft, plan: Plan) -> Plan:
    if facts.state is None or (facts.install is None and _keeps_nothing(facts, plan)):
        return plan
    directory = facts.state.directory
    writable = [facts.project, *(wish.source for wish in draft.wished if wish.kind == RW)]
    notes = [
        Preparation(Preparation.FILE, f"{directory}/writable-{instance_name(path)}", _line(path)) for path in writable
    ]
    return plan.replace(
        preparations=(
            *plan.preparations,
            Preparation(Preparation.DIRECTORY, directory),
            *notes,
            Preparation(Preparation.FILE, f"{directory}/project", _line(facts.state.root)),
        )
    )


def _keeps_nothing(facts: Facts, plan: Plan) -> bool:
    """Without files of claudebox's own on this host, there is no symlink of theirs to trust."""
    has_store = plan.nix is not None and bool(plan.nix.directory)
    return not has_store and facts.tree.lstat(f"{facts.host.person.home}/{STATE}") is None


def _line(path: str) -> bytes:
    return path.encode(errors="surrogateescape") + b"\n"
