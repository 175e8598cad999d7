"""The features, in the order in which they decide: what grants comes first, then what covers it.

Each row names a module of a feature's folder and says, cheaply, whether it applies to this box. A module that does not
apply is not imported: `load` is the one place where that is decided at run time.

The order is also that of the mounts, of which a later one wins over an earlier one at the same path.
"""

from __future__ import annotations

from claudebox.facts import Facts
from claudebox.host.system import NIX_STORE
from claudebox.record import Record
from claudebox.settings.table import AUTO, BROKER, FULL, OFF, PASSTHROUGH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Row(Record):
    """A function of a feature's module, and whether it has something to say about a box."""

    module: str
    function: str
    applies: Callable[[Facts], bool]


def _always(_: Facts) -> bool:
    return True


def _has_claude(facts: Facts) -> bool:
    return facts.install is not None


def _shares_login(facts: Facts) -> bool:
    return facts.install is not None and facts.settings.auth == PASSTHROUGH


def _has_broker(facts: Facts) -> bool:
    return facts.install is not None and facts.settings.auth == BROKER


def _shares_network(facts: Facts) -> bool:
    return facts.settings.network.tier == FULL


def _has_own_network(facts: Facts) -> bool:
    return facts.settings.network.tier != FULL


def _has_nix(facts: Facts) -> bool:
    settings = facts.settings
    return settings.nix.path not in (AUTO, OFF) or bool(settings.packages) or facts.tree.is_dir(NIX_STORE)


def _has_arguments(facts: Facts) -> bool:
    return facts.runs_claude and bool(facts.request.claude or facts.settings.claude_args)


def _is_limited(facts: Facts) -> bool:
    settings = facts.settings
    return bool(settings.memory or settings.pids or settings.cpu)


# Each takes the Facts and the Draft so far, and returns a Contribution.
DECIDING = (
    Row("program", "decide", _always),
    Row("system", "decide", _always),
    Row("nix.decide", "decide", _has_nix),
    Row("system", "decide_etc", _always),
    Row("network.decide", "decide", _shares_network),
    Row("network.uplink", "decide", _has_own_network),
    Row("system", "decide_identity", _always),
    Row("claude.decide", "decide", _has_claude),
    Row("login.decide", "decide", _shares_login),
    Row("broker.decide", "decide", _has_broker),
    Row("git", "decide", _always),
    Row("project", "decide", _always),
    Row("system", "decide_certificates", _always),
    Row("claude.options", "decide", _has_arguments),
    Row("wishes", "decide", _always),
    Row("guard.decide", "decide", _always),
    Row("secrets.decide", "decide", _always),
    Row("wishes", "decide_hides", _always),
    Row("kernel.decide", "decide", _always),
    Row("limits.decide", "decide", _is_limited),
    Row("environment.decide", "decide", _always),
)

# Each takes the Facts, the Draft and the Plan, and returns the Plan with what can be decided only when the rest is.
COMPLETING = (
    Row("program", "complete", _always),
    Row("network.uplink", "complete", _has_own_network),
    Row("claude.seed", "complete", _has_claude),
    Row("login.decide", "complete", _shares_login),
    Row("project", "complete", _always),
    Row("nix.decide", "complete", _has_nix),
)


def load(module: str, function: str) -> Any:
    """A function of a feature. This is where a feature is imported, if it applies."""
    return getattr(__import__(f"claudebox.features.{module}", fromlist=("",)), function)


def act(feature: str, deed: str, *arguments: Any) -> Any:
    """Have a feature do something: only a launch, or what prepares one, calls this."""
    return load(f"{feature}.act", deed)(*arguments)
