"""The features, in the order in which they decide: what grants comes first, then what covers it.

Each row names a module of a feature's folder and says, cheaply, whether it applies to this box. A module that does not
apply is not imported: `load` is the one place where that is decided at run time.

The order is also that of the mounts, of which a later one wins over an earlier one at the same path.
"""

from __future__ import annotations

from claudebox.facts import Facts
from claudebox.host.system import NIX_STORE
from claudebox.model import Plan
from claudebox.record import Record
from claudebox.settings.table import AUTO, BROKER, OFF, PASSTHROUGH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Row(Record):
    """A module of a feature, and whether it has something to say about a box."""

    module: str
    applies: Callable[[Facts], bool]


def _always(_: Facts) -> bool:
    return True


def _has_claude(facts: Facts) -> bool:
    return facts.install is not None


def _shares_login(facts: Facts) -> bool:
    return facts.install is not None and facts.settings.auth == PASSTHROUGH


def _has_broker(facts: Facts) -> bool:
    return facts.install is not None and facts.settings.auth == BROKER


def _has_nix(facts: Facts) -> bool:
    settings = facts.settings
    return settings.nix.path not in (AUTO, OFF) or bool(settings.packages) or facts.tree.is_dir(NIX_STORE)


def _has_arguments(facts: Facts) -> bool:
    return facts.runs_claude and bool(facts.request.claude or facts.settings.claude_args)


def _is_limited(facts: Facts) -> bool:
    settings = facts.settings
    return bool(settings.memory or settings.pids or settings.cpu)


# Modules with `decide(facts, draft) -> Contribution`.
DECIDING = (
    Row("program.decide", _always),
    Row("system.decide", _always),
    Row("nix.decide", _has_nix),
    Row("system.etc", _always),
    Row("network.decide", _always),
    Row("system.identity", _always),
    Row("claude.decide", _has_claude),
    Row("login.decide", _shares_login),
    Row("broker.decide", _has_broker),
    Row("git.decide", _always),
    Row("project.decide", _always),
    Row("system.certificates", _always),
    Row("claude.options", _has_arguments),
    Row("wishes.decide", _always),
    Row("guard.decide", _always),
    Row("secrets.decide", _always),
    Row("wishes.hides", _always),
    Row("kernel.decide", _always),
    Row("limits.decide", _is_limited),
    Row("environment.decide", _always),
)

# Modules with `complete(facts, draft, plan) -> Plan`: what can be decided only when the rest is.
COMPLETING = (
    Row("program.decide", _always),
    Row("network.decide", _always),
    Row("claude.seed", _has_claude),
    Row("login.decide", _shares_login),
    Row("project.register", _always),
    Row("nix.decide", _has_nix),
)


def load(module: str) -> Any:
    """A module of a feature, by its name below `features`."""
    return __import__(f"claudebox.features.{module}", fromlist=("",))


def act(feature: str, deed: str, *arguments: Any) -> Any:
    """Have a feature do something: only a launch, or who prepares one, calls this."""
    return getattr(load(f"{feature}.act"), deed)(*arguments)


def answer_unknown(plan: Plan, facts: Facts) -> Facts:
    """Have each feature ask what it does not know yet. The host is looked at anew: what they learn is kept there."""
    for feature in dict.fromkeys(plan.unknown):
        facts = act(feature, "find_out", facts, plan)
    return facts
