"""`--network-log`: what the boxes of this project reached by name, and what was refused."""

from __future__ import annotations

from claudebox.features.names.suggest import log_text, suggestion
from claudebox.host import read_host
from claudebox.journal import read_journal
from claudebox.settings.words import Request
from claudebox.state import find_state
from claudebox.terminal import show
from claudebox.trust.reach import find_own_repository, reach_of
from claudebox.view.as_json import dump


def show_network_log(request: Request) -> int:
    host = read_host()
    root = find_own_repository(reach_of(host)).canonical_root(host.cwd)
    entries = read_journal(find_state(host).instance(root).network_journal)
    if request.suggest:
        show(suggestion(entries))
    else:
        show(dump({"network_log": entries}) if request.json else log_text(entries))
    return 0
