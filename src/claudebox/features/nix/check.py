"""Checks whether Nix can be used in the box, and whether its daemon would be a way out."""

from __future__ import annotations

from claudebox.features.nix.decide import plan_nix
from claudebox.features.nix.program import find_nix
from claudebox.host import Host
from claudebox.host.system import NIX_STORE, find_system
from claudebox.problem import Problem
from claudebox.settings.table import AUTO, DAEMON, OFF
from claudebox.settings.values import Settings
from claudebox.state import find_state
from claudebox.trial import NOTE, OK, CheckRow, program_version

ALTERNATIVES = "builds in the box: --nix private; tools from outside: --package NAME"


def nix_rows(host: Host, settings: Settings) -> list[CheckRow]:
    if settings.nix.text in (AUTO, OFF) and not host.tree.is_dir(NIX_STORE):
        return []
    nix = find_nix(host)
    if not nix:
        program = CheckRow(NOTE, "nix", "not found", "the store is there, but no nix that is not an agent's")
    else:
        program = CheckRow(OK, "nix", f"{program_version(nix)}, {nix}")
    try:
        is_nix_host = find_system(host.tree, host.environ.get("PATH", "")).is_nix
        plan = plan_nix(host, settings, find_state(host).instance(host.cwd), is_nix_host=is_nix_host)
    except Problem as problem:
        return [program, CheckRow.of_problem("Nix in the box", problem)]
    why = "; ".join(plan.holes)
    if plan.mode == DAEMON and plan.holes:
        return [program, CheckRow(NOTE, "Nix in the box", "the daemon, although it is a way out of the box", why)]
    if plan.holes:
        return [program, CheckRow(NOTE, "Nix in the box", f"{plan.meaning}: {ALTERNATIVES}", f"the daemon: {why}")]
    untried = " (if a build that is tried at the first start sees nothing of this host)" if plan.needs_trial else ""
    return [program, CheckRow(OK, "Nix in the box", plan.meaning + untried)]
