"""What of a project the host runs or believes, as it is now: for those who bring changes there without a box."""

from __future__ import annotations

import posixpath

from claudebox.features.guard.decide import find_guarded, judge_places, with_ways
from claudebox.features.guard.git import Account
from claudebox.features.guard.table import GIT, WANTED
from claudebox.features.guard.ways import find_ways
from claudebox.features.guard.whole import WHOLE
from claudebox.host import Host
from claudebox.host.git.config import host_configs
from claudebox.host.walk import walk_project
from claudebox.model import Guarded

RUN = "this host runs it"


def find_held(host: Host, project: str, layers: tuple[str, ...]) -> list[Guarded]:
    """Every place that a box without a layer could not change, or would report afterwards.

    `layers` are the directories of the project that a box had as layers. If one of them is not a tool's own, of which
    only parts matter, it was held as a whole, and is now, too, even if what led there is gone.
    """
    home = host.person.home
    account = Account(home, host_configs(host.environ, home))
    entries = walk_project(host.tree, project, WANTED)
    ways = find_ways(host, (project,))
    candidates = with_ways(find_guarded(host.tree, (project,), entries, account), ways.guarded)
    found = [place for _, place in judge_places(host.tree, candidates, [project], [])]
    known = {place.path for place in found}
    whole = (f"{project}/{layer}" for layer in layers if layer and posixpath.basename(layer) not in WHOLE)
    return [*found, *ways.made, *(Guarded(path, GIT, RUN) for path in whole if path not in known)]
