"""Checks tier `allowlist`: makes such a network for real, and looks where a connection arrives."""

from __future__ import annotations

import socket

from claudebox.features.allowlist.namespace import CONNECTIONS, make_network
from claudebox.features.allowlist.server.relay import original_destination
from claudebox.problem import Problem
from claudebox.process import trial
from claudebox.process.trial import FAIL, NOTE, OK, CheckRow
from claudebox.settings.table import ALLOWLIST
from claudebox.settings.values import Settings

NAME = "network allowlist"
MODULES = "sudo modprobe -a nf_tables nft_nat nft_redir nft_chain_nat nft_reject_inet"
ADDRESSES = (("198.51.100.1", 443), ("2001:db8::1", 9))
PATIENCE_SECONDS = 3


def allowlist_rows(settings: Settings, nft: str) -> list[CheckRow]:
    """A row about tier `allowlist`, which is a failure only if the user's settings need it. `nft` is "" without one."""
    lacking = FAIL if settings.network.text == ALLOWLIST else NOTE
    if not nft:
        return [CheckRow(lacking, NAME, "not tried: it needs nft")]
    try:
        lost = trial.run_in_namespaces("features.allowlist.check", nft)
    except Problem as problem:
        is_filters = "filter cannot be loaded" in problem.message
        why = "the kernel needs nf_tables with connection tracking, redirection and reject" if is_filters else ""
        return [CheckRow(lacking, NAME, problem.message, why, (MODULES,) if is_filters else ())]
    if lost:
        why = "connections of the box would be refused; nothing leaves it"
        return [CheckRow(lacking, NAME, f"nft did not lead here: {' and '.join(lost)}", why)]
    return [CheckRow(OK, NAME, "nft led a connection to where the list is known, with its address")]


def main() -> None:
    """Make the network of tier `allowlist` around this process, and try what it has to do."""
    trial.answer_in_namespaces(_lost_addresses)


def _lost_addresses(nft: str) -> list[str]:
    """The addresses to which a connection does not arrive here."""
    listeners = [own for words, own in make_network(nft, ()) if words == CONNECTIONS]
    tried = zip(ADDRESSES, listeners, strict=False)  # a kernel may have no IPv6
    return [address for (address, port), own in tried if not _arrives(own, address, port)]


def _arrives(listener: socket.socket, address: str, port: int) -> bool:
    """Whether a connection to this address arrives here, and is known for what it is."""
    listener.settimeout(PATIENCE_SECONDS)
    try:
        with socket.create_connection((address, port), PATIENCE_SECONDS):
            packed, seen = original_destination(listener.accept()[0])
    except OSError:
        return False
    return (socket.inet_ntop(listener.family, packed), seen) == (address, port)
