"""`--auth-log`: what the boxes of this project asked of the broker."""

from __future__ import annotations

from claudebox.features.broker.decide import JOURNAL
from claudebox.features.broker.log import auth_log_text
from claudebox.features.broker.server.journal import read_journal
from claudebox.host import read_host
from claudebox.host.git.repository import find_repository
from claudebox.settings.words import Request
from claudebox.state import canonical_root, instance_directory
from claudebox.terminal import show


def serve(_: Request) -> int:
    host = read_host()
    repository = find_repository(host.tree, host.cwd)
    directory = instance_directory(host.person.home, canonical_root(host.cwd, repository))
    show(auth_log_text(read_journal(f"{directory}/{JOURNAL}")))
    return 0
