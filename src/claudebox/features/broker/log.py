"""`--auth-log`: what the boxes of this project asked of the broker."""

from __future__ import annotations

from claudebox.features.broker.server.journal import auth_log_text
from claudebox.host import read_host
from claudebox.journal import read_journal
from claudebox.settings.words import Request
from claudebox.state import find_state
from claudebox.terminal import show
from claudebox.trust.reach import find_own_repository, reach_of
from claudebox.view.as_json import dump


def show_auth_log(request: Request) -> int:
    host = read_host()
    root = find_own_repository(reach_of(host)).canonical_root(host.cwd)
    entries = read_journal(find_state(host).instance(root).journal)
    show(dump({"auth_log": entries}) if request.json else auth_log_text(entries))
    return 0
