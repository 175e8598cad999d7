"""Adds what a box with a store of its own needs of the host's store: all that its plan names, and all that these need.

The box sees it path by path, read-only. Nix in the box is told that these are there, or it would try to make them.
"""

from __future__ import annotations

from claudebox.features.nix import NIX, Nix
from claudebox.features.nix.decide import RULE
from claudebox.features.nix.references import is_store_path, store_paths
from claudebox.host import Host
from claudebox.host.system import NIX_STORE
from claudebox.host.tree import Tree, sha256
from claudebox.model import FILE, RO, Finding, Mount, Origin, Plan, Preparation, Question
from claudebox.mounts import arrange, find_hides
from claudebox.paths import is_below
from claudebox.settings.values import Word
from claudebox.state import find_state, memory
from claudebox.state.memory import Form

FORM = Form("What Nix says about paths of its store. claudebox asks again when this file is gone.", largest=16 << 20)
REGISTRATION = "/etc/nix/claudebox-registration"
SHOWN = Origin.of_rule(RULE, "programs from the host's store")
# Nix is told once for each set of paths: a mark in the store itself remembers that.
TELL_NIX = (
    'mark=/nix/var/nix/claudebox-$0; [ -e "$mark" ] || { nix-store --load-db < '
    + REGISTRATION
    + ' && touch "$mark"; }; '
    'exec "$@"'
)


def roots_of(plan: Plan) -> tuple[str, ...]:
    """Every store path that the plan names anywhere."""
    words = [
        *(mount.source for mount in plan.mounts),
        *(mount.content.decode(errors="replace") for mount in plan.mounts if mount.origin.is_rule(RULE)),
        *(variable.value for variable in plan.environment if not variable.secret),
        *plan.program.argv,
        *plan.wrapper,
    ]
    return tuple(sorted({path for word in words if NIX_STORE in word for path in store_paths(word)}))


def with_closure(plan: Plan, nix: Nix, host: Host, hides: tuple[Word, ...]) -> Plan:
    """The same box with what it needs of the host's store, or with a note of what has to be asked first."""
    roots = tuple(root for root in roots_of(plan) if host.tree.lstat(root) is not None)
    if not roots:
        return plan
    registration = recall_closure(host, roots)
    paths = registered_paths(registration)
    if not set(roots) <= set(paths) or not all(map(host.tree.lstat, paths)):
        note = Finding(Finding.NOTE, "nix", "what the box needs of the host's store is looked up at the start")
        return plan.having(nix.replace(roots=roots)).replace(
            unknown=(*plan.unknown, Question(NIX, " ".join(roots))),
            findings=(*plan.findings, note),
        )
    # A symlink is not mounted: bwrap would show what it leads to, and whoever built it has chosen that.
    shown = [Mount(RO, path, SHOWN, source=path) for path in paths if not host.tree.is_link(path)]
    mounts = [
        *(mount for mount in plan.mounts if not is_below(mount.path, NIX_STORE)),
        *shown,
        Mount(FILE, REGISTRATION, SHOWN, content=registration, mode=0o444),
    ]
    name = sha256(registration)[:32]
    return plan.replace(
        mounts=arrange(mounts, find_hides(host.tree, hides, plan.project, host.person.home, shown)),
        preparations=(*plan.preparations, *(_place_for(host.tree, nix, path) for path in paths)),
        wrapper=(*plan.wrapper, "/bin/sh", "-c", TELL_NIX, name),
    )


def _place_for(tree: Tree, nix: Nix, path: str) -> Preparation:
    """Make something to mount on. bwrap must not make it: it would follow a symlink that the agent has put there."""
    place = nix.directory + path.removeprefix("/nix")
    if tree.is_link(path):
        return Preparation(Preparation.LINK, place, tree.link_target(path).encode(errors="surrogateescape"))
    return Preparation(Preparation.DIRECTORY if tree.is_dir(path) else Preparation.EMPTY_FILE, place)


def recall_closure(host: Host, roots: tuple[str, ...]) -> bytes:
    """What Nix said about these paths and all that they need; empty if it has to be asked again."""
    recalled = memory.recall(host.tree, find_state(host).closure(roots), FORM, host.person.uid)
    return "".join(f"{line}\n" for line in recalled.lines).encode()


def keeping_closure(host: Host, roots: tuple[str, ...], registration: bytes) -> tuple[Preparation, ...]:
    lines = registration.decode(errors="replace").removesuffix("\n").split("\n")
    return memory.note_with_directory(find_state(host).closure(roots), FORM, lines)


def registered_paths(registration: bytes) -> tuple[str, ...]:
    """The paths in what `nix-store --dump-db` prints; none if that is not whole.

    It prints for each: path, hash, size, deriver, number of references, references.
    """
    lines = registration.decode(errors="replace").split("\n")
    paths = []
    at = 0
    while at + 5 < len(lines) and is_store_path(lines[at]) and lines[at + 4].isdigit():
        paths.append(lines[at])
        at += 5 + int(lines[at + 4])
    return tuple(paths) if lines[at:] in ([""], []) else ()
