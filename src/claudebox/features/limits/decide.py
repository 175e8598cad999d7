"""How much memory, how many processes and processors the box may use.

systemd puts them into force: it makes a control group for the box, which no ordinary account can do by itself. A limit
that would not hold is a Problem.
"""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features.limits import LIMITS, Limits
from claudebox.host.tree import Tree
from claudebox.model import Finding, Step
from claudebox.settings.values import Amount

AMOUNTS = ("memory", "pids", "cpu")  # systemd and the kernel use the same names
PLACES = ("/usr/bin", "/bin", "/run/current-system/sw/bin")
GROUPS = "/sys/fs/cgroup"
DELEGATE = "/etc/systemd/system/user@.service.d"


def decide(facts: Facts, _: Draft) -> Contribution:
    said = {name: value for name in AMOUNTS if (value := getattr(facts.settings, name)) is not None}
    limits = plan_limits(facts.tree, said, facts.host.person.uid)
    return Contribution(
        findings=tuple(
            Finding(Finding.NOTE, limit.origin.shown, f"{name} of the box is limited to {limit.text}")
            for name, limit in said.items()
        ),
        steps=(Step(Step.BEFORE, LIMITS),),
        records=(limits,),
    )


def plan_limits(tree: Tree, said: dict[str, Amount], uid: int) -> Limits:
    first = next(iter(said.values())).origin.shown
    busctl = next((f"{place}/busctl" for place in PLACES if tree.is_executable(f"{place}/busctl")), "")
    if not busctl or not tree.exists(f"{manager(uid)}/systemd") or not tree.exists(bus(uid)):
        raise Problem(
            f"{first} needs systemd, which does not manage your processes here: there is no "
            f"{'busctl' if not busctl else bus(uid)}",
            "start claudebox from a login that systemd manages\n"
            "      (on Debian: sudo apt install dbus-user-session), or without limits",
        )
    _check_controllers(tree, said, uid)
    return Limits(busctl, *(said[name].number if name in said else 0 for name in AMOUNTS))


def manager(uid: int) -> str:
    """Where the systemd that manages this account's processes keeps its files."""
    return f"/run/user/{uid}" if uid else "/run"


def bus(uid: int) -> str:
    return f"/run/user/{uid}/bus" if uid else "/run/dbus/system_bus_socket"


def _check_controllers(tree: Tree, said: dict[str, Amount], uid: int) -> None:
    """Raise a Problem unless the kernel can limit all of this, and the administrator lets this account do so."""
    if not tree.exists(f"{GROUPS}/cgroup.controllers"):
        raise Problem(
            f"{next(iter(said.values())).origin.shown} needs control groups of version 2, which this host does not use",
            "add systemd.unified_cgroup_hierarchy=1 to the kernel's command line",
        )
    group = f"/user.slice/user-{uid}.slice/user@{uid}.service" if uid else ""
    known = (tree.text(f"{GROUPS}{group}/cgroup.controllers") or "").split()
    for name, value in said.items():
        if name not in known:
            raise Problem(
                f"{value.origin.shown}: the administrator of this host lets nobody limit it (no `{name}` in "
                f"cgroup.controllers of {group or GROUPS})",
                f"sudo mkdir -p {DELEGATE}\n"
                "      printf '[Service]\\nDelegate=cpu memory pids\\n' |\n"
                f"        sudo tee {DELEGATE}/delegate.conf\n"
                "      sudo systemctl daemon-reload\n"
                "      and log in again",
            )
