"""What of a project the host runs or believes, as it is now: for those who bring changes there without a box."""

from __future__ import annotations

from claudebox.features.guard.decide import find_guarded, with_ways
from claudebox.features.guard.git import Account
from claudebox.features.guard.table import WANTED
from claudebox.features.guard.ways import find_ways
from claudebox.host import Host
from claudebox.host.git.config import host_configs
from claudebox.host.walk import walk_project
from claudebox.model import Guarded


def find_held(host: Host, project: str) -> list[Guarded]:
    """Every place that a box without a layer could not change, or would report afterwards."""
    home = host.person.home
    account = Account(home, host_configs(host.environ, home))
    entries = walk_project(host.tree, project, WANTED)
    ways = find_ways(host, (project,))
    return [*with_ways(find_guarded(host.tree, (project,), entries, account), ways.guarded), *ways.made]
