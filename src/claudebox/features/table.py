"""The features, in the order in which they decide: what grants comes first, then what covers it.

Each row names a module of a feature and says, cheaply, whether it applies to this box. A module that does not apply is
not imported: `load` is the one place where an import is decided at run time.

The mounts are in the same order: at the same path, a later one wins over an earlier one.
"""

from __future__ import annotations

from claudebox.facts import Draft, Facts
from claudebox.host.system import NIX_STORE, PLAIN_PATH
from claudebox.model import LAYER, RO, RW
from claudebox.record import Record
from claudebox.settings.table import ALLOWLIST, AUTO, BROKER, CLAUDE, FULL, NONE, OFF, PASSTHROUGH
from claudebox.trust.claude_settings import PROJECT_SETTINGS
from claudebox.trust.variables import JUDGED, LEADING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Decision(Record):
    """A function of a feature that decides something, and whether it has anything to decide for this box."""

    module: str
    function: str
    applies: Callable[[Facts], bool]
    finds: Callable[[Draft], bool] = lambda _: True  # whether what others have given leaves something to decide


def _always(_: Facts) -> bool:
    return True


def _has_claude(facts: Facts) -> bool:
    return facts.install is not None


def _shares_login(facts: Facts) -> bool:
    return facts.install is not None and facts.settings.auth.text == PASSTHROUGH


def _has_own_network(facts: Facts) -> bool:
    return facts.settings.network.text != FULL


def _has_allowlist(facts: Facts) -> bool:
    return facts.settings.network.text == ALLOWLIST


def _has_idle_list(facts: Facts) -> bool:
    settings = facts.settings
    return settings.network.text != ALLOWLIST and bool(settings.allow or settings.ask.text != OFF)


def _has_nix(facts: Facts) -> bool:
    settings = facts.settings
    return settings.nix.text not in (AUTO, OFF) or bool(settings.packages) or facts.tree.is_dir(NIX_STORE)


def _leads_somewhere(facts: Facts) -> bool:
    """Whether a variable says where requests go or whom to believe, or holds a credential that has to be judged."""
    users, names = facts.users, (*facts.host.environ, *(wish.name for wish in facts.settings.env))
    return bool(users.leading or users.foreign or users.holds) or not (JUDGED | LEADING).isdisjoint(names)


def _has_project_settings(facts: Facts) -> bool:
    return any(facts.tree.lstat(f"{facts.project}/{name}") is not None for name in PROJECT_SETTINGS)


def _may_have_toolchains(facts: Facts) -> bool:
    """Whether the host's PATH has a directory of the home, or one that may lead there, as fnm makes it, or one below
    /usr/local that not every PATH has."""
    starts = (f"{facts.home}/", "/run/user/", "/usr/local/", *(f"{home}/" for home in facts.host.person.homes))
    entries = set(facts.host.environ.get("PATH", "").split(":")).difference(PLAIN_PATH)
    return facts.settings.toolchains.text != OFF and any(entry.startswith(starts) for entry in entries)


def _keeps_cache(facts: Facts) -> bool:
    """A box without Claude on a host without any state leaves none behind, unless somebody asks for it."""
    said, state = facts.settings.cache, facts.claude.all_projects.directory
    is_wanted = facts.install is not None or said.origin.is_said or facts.tree.lstat(state) is not None
    return said.text != NONE and is_wanted


def _has_hooks(facts: Facts) -> bool:
    """Whether git would run a hook: there is one beside the samples, or the configuration names another place."""
    tree, git_dir = facts.tree, facts.repository.git_dir
    if not git_dir:
        return False
    config = tree.text(f"{git_dir}/config")  # a worktree has none of its own
    is_elsewhere = config is None or "hookspath" in config.lower()
    return is_elsewhere or any(not name.endswith(".sample") for name in tree.entries(f"{git_dir}/hooks"))


def _has_directory_for_layer(draft: Draft) -> bool:
    """Whether the project is a layer, or something in it is guarded that can be one: git's own never is."""
    return any(
        mount.kind == LAYER
        or (mount.kind == RO and mount.is_dir and mount.origin.is_rule("guard") and "/.git/" not in mount.path)
        for mount in draft.mounts
    )


def _is_limited(facts: Facts) -> bool:
    settings = facts.settings
    return bool(settings.memory or settings.pids or settings.cpu)


# Each takes the Facts and the Draft so far, and returns a Contribution.
DECIDING = (
    Decision("system", "decide_program", _always),
    Decision("system", "decide", _always),
    Decision("nix.decide", "decide", _has_nix),
    Decision("system", "decide_etc", _always),
    Decision("network.decide", "decide", lambda facts: facts.settings.network.text == FULL),
    Decision("network.uplink", "decide", _has_own_network),
    Decision("allowlist", "decide", _has_allowlist),
    Decision("allowlist", "refuse_without_effect", _has_idle_list),
    Decision("system", "decide_identity", _always),
    Decision("claude.decide", "decide", _has_claude),
    Decision("agents", "decide", lambda facts: facts.starts_agent and facts.settings.program.text != CLAUDE),
    Decision("login.decide", "decide", _shares_login),
    Decision("broker.decide", "decide", lambda facts: facts.install is not None and facts.settings.auth.text == BROKER),
    Decision("git.decide", "decide", _always),
    Decision("project", "decide", _always),
    Decision("system", "decide_certificates", _always),
    Decision("environment.ways", "decide", _leads_somewhere),
    Decision("claude.decide", "decide_project_settings", _has_project_settings),
    Decision("claude.options", "decide", lambda facts: facts.runs_claude and bool(facts.words)),
    Decision("toolchains.decide", "decide", _may_have_toolchains),
    Decision("wishes", "decide", _always),
    Decision("caches.decide", "decide", _keeps_cache),
    Decision("caches.decide", "decide_warnings", lambda facts: any(one.access == RW for one in facts.settings.mounts)),
    Decision("guard.decide", "decide", _always),
    Decision("secrets.decide", "decide", _always),
    Decision("wishes", "decide_hides", _always),
    Decision("secrets.mounted", "decide", _always, lambda draft: bool(draft.wished)),
    Decision("kernel.decide", "decide", _always),
    Decision("review.decide", "decide", lambda facts: facts.has_layer, _has_directory_for_layer),
    Decision("guard.decide", "decide_report", _always),
    Decision("git.hooks", "decide", _has_hooks),
    Decision("git.decide", "decide_shim", lambda facts: bool(facts.repository.git_dir)),
    Decision("limits.decide", "decide", _is_limited),
    Decision("environment.decide", "decide", _always),
)

# Each takes the Facts, the Draft and the Plan, and returns the Plan with what can be decided only when the rest is.
COMPLETING = (
    Decision("system", "complete", _always),
    Decision("network.uplink", "complete", _has_own_network),
    Decision("allowlist", "complete", _has_allowlist),
    Decision("project", "complete", _always),
    Decision("claude.seed", "complete", _has_claude),
    Decision("login.decide", "complete", _shares_login),
    Decision("nix.decide", "complete", _has_nix),
)


def load(module: str, function: str) -> Any:
    """Import a module of a feature, and return a function of it."""
    return getattr(__import__(f"claudebox.features.{module}", fromlist=("",)), function)


def act(feature: str, deed: str, *arguments: Any) -> Any:
    """Have a feature do something. Only a launch, or what prepares one, calls this."""
    return load(f"{feature}.act", deed)(*arguments)
