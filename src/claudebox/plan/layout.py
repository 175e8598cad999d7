"""Everything at every path of the box."""

from __future__ import annotations

from claudebox.features.claude import home as claude_home
from claudebox.features.claude import program as programs
from claudebox.features.git import decide as git
from claudebox.features.guard.decide import (
    find_guarded,
    find_others,
    guard_findings,
    guard_mounts,
    openings,
    pinned,
    plan_guard,
)
from claudebox.features.guard.git import Account
from claudebox.features.guard.table import WANTED
from claudebox.features.system import decide as system
from claudebox.features.wishes import decide as wishes
from claudebox.host.tree import Tree
from claudebox.host.walk import (
    Entry,
    list_directory,
)
from claudebox.model import (
    COVER,
    RW,
    TMPFS,
    Finding,
    Guard,
    Mount,
    Network,
    Origin,
    Preparation,
)
from claudebox.mounts import arrange
from claudebox.plan.ground import Ground
from claudebox.record import Record
from claudebox.settings.table import ON
from claudebox.settings.values import PROJECT_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features.secrets.masks import Secrets

PROJECT = Origin.of_rule("project", "what the agent works on")
SETTINGS_FILE = Origin.of_rule("project", "read-only: its settings")


class Layout(Record):
    """Everything at every path of the box."""

    mounts: tuple[Mount, ...]
    wished: list[Mount]  # those of them that somebody asked for
    preparations: tuple[Preparation, ...]  # without which they cannot be made
    guard: Guard
    findings: tuple[Finding, ...]


def _resolver_mounts(tree: Tree, network: Network) -> list[Mount]:
    if network.is_hosts:
        return system.resolver_mounts(tree)
    from claudebox.features.network.uplink import resolver_mounts

    return resolver_mounts(network.uplink)


def plan_layout(ground: Ground, network: Network, entries: tuple[Entry, ...], secrets: Secrets | None = None) -> Layout:
    tree, home, project, places = ground.host.tree, ground.home, ground.project, ground.places
    mounts = [
        Mount(TMPFS, "/", system.BOX),
        *system.empty_places(ground.person),
        *system.home_links(tree, ground.host.environ.get("HOME", "")),
        *system.system_mounts(tree, ground.base),
        *_nix_mounts(ground),
        *system.etc_mounts(tree, ground.as_root),
        *_resolver_mounts(tree, network),
        *system.identity_files(tree, ground.person, ground.base.shell, ground.host.hostname),
        *(programs.claude_mounts(ground.install, home, project) if ground.install else ()),
        *_home_mounts(ground),
        *git.repository_mounts(ground.repository, ground.person.homes, places),
        *git.config_files(
            *(ground.identity, home, project, ground.repository, secrets.ignored if secrets else b""),
            is_guarded=_guards_git(ground),
        ),
        Mount(RW, project, PROJECT, source=project),
        *_project_file(tree, project),
    ]
    mounts += system.certificate_mounts(ground.certificates, mounts)
    asked = ground.settings.mounts
    preparations = _nix_preparations(ground)
    if ground.words:
        from claudebox.features.claude.options import named_paths

        named = named_paths(tree, ground.words, project, home, mounts)
        asked, preparations = (*asked, *named.wishes), (*preparations, *named.preparations)
    wished = wishes.wished_mounts(ground.reach, asked, project, ground.person.homes, places)
    wished = wishes.settle(tree, wished, mounts)
    mounts += wished
    guard, guards, findings = _guard(ground, entries, mounts, wished)
    mounts += guards
    mounts += _masks(secrets, mounts, wished) if secrets else []
    hides = wishes.hides_inside(tree, mounts, places)
    hides += wishes.hides_asked_for(tree, ground.settings.hides, project, home, mounts)
    if ground.settings.userns.path != ON:
        mounts += system.kernel_covers(tree)  # with one in the way, the kernel would let no namespace have a /proc
    if ground.as_root:
        mounts += system.kernel_masks(tree)
        hides += system.root_only_hides(tree, mounts)
    return Layout(pinned(arrange(mounts, hides), guards), wished, preparations, guard, tuple(findings))


def _guards_git(ground: Ground) -> bool:
    git_dir = ground.repository.git_dir
    opened = openings(ground.settings.writable, ground.project, ground.home)
    return bool(git_dir) and not any(opening.opens(f"{git_dir}/config") for opening in opened)


def _guard(
    ground: Ground, entries: tuple[Entry, ...], mounts: list[Mount], wished: list[Mount]
) -> tuple[Guard, list[Mount], list[Finding]]:
    """What keeps the agent from changing what the host runs later."""
    tree, home, project = ground.host.tree, ground.host.person.home, ground.project
    account = Account(home, git.host_configs(ground.host.environ, home))
    others = [wish.source for wish in wished if wish.kind == RW and wish.is_dir]
    entries = (*entries, *(entry for directory in others for entry in list_directory(tree, directory, WANTED)))
    opened = openings(ground.settings.writable, project, home)
    candidates = find_guarded(tree, (project, *others), entries, account)
    guard = plan_guard(tree, candidates, mounts, opened).replace(
        others=find_others(entries, candidates),
        roots=tuple(dict.fromkeys((project, *others, *filter(None, (ground.repository.outside,))))),
        git_configs=account.configs,
    )
    guards = guard_mounts(tree, guard, list(arrange(mounts)), opened)
    return guard, guards, guard_findings(tree, guard, opened, project)


def _nix_mounts(ground: Ground) -> list[Mount]:
    if ground.nix is None:
        return []
    from claudebox.features.nix.decide import nix_mounts

    return nix_mounts(ground.host, ground.nix)


def _nix_preparations(ground: Ground) -> tuple[Preparation, ...]:
    if ground.nix is None:
        return ()
    from claudebox.features.nix.decide import nix_preparations

    return nix_preparations(ground.nix)


def _masks(secrets: Secrets, mounts: list[Mount], wished: list[Mount]) -> list[Mount]:
    from claudebox.features.secrets.masks import mask_mounts

    return mask_mounts(secrets, mounts, wished)


def _project_file(tree: Tree, project: str) -> list[Mount]:
    """What it says was judged before the start: the agent shall not change it meanwhile."""
    path = f"{project}/{PROJECT_FILE}"
    content = tree.read_plain(path)
    return [] if content is None else [Mount(COVER, path, SETTINGS_FILE, content=content, mode=0o444)]


def _home_mounts(ground: Ground) -> list[Mount]:
    if ground.install is None:
        return []
    tree, claude = ground.host.tree, ground.claude
    mounts = [*claude_home.home_mounts(claude, ground.trusted), *claude_home.managed_mounts(tree, claude)]
    if ground.broker is not None:
        from claudebox.features.broker.decide import broker_mounts

        return mounts + broker_mounts(ground.broker, claude, tree)
    return mounts + (claude_home.auth_mounts(claude) if ground.shares_login else [])
