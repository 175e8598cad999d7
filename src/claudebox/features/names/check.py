"""Checks whether a box can go by names: makes such a network for real, and looks where a connection arrives."""

from __future__ import annotations

import json

from claudebox.archive import own_command
from claudebox.process import trial
from claudebox.process.trial import FAIL, NOTE, OK, CheckRow
from claudebox.settings.table import NAMES
from claudebox.settings.values import Settings

NAME = "network names"
MODULES = "sudo modprobe -a nf_tables nft_nat nft_redir nft_chain_nat nft_reject_inet"


def names_rows(settings: Settings, nft: str) -> list[CheckRow]:
    """A row about tier `names`, which is a failure only if the user's settings need it. `nft` is "" without one."""
    lacking = FAIL if settings.network.text == NAMES else NOTE
    if not nft:
        return [CheckRow(lacking, NAME, "not tried: it needs nft")]
    outcome = trial.run(*own_command("features.names.trial"), text=json.dumps(nft))
    try:
        answer = json.loads(outcome.stdout)
    except ValueError:
        last = (outcome.stderr.strip().splitlines() or [f"exit status {outcome.status}"])[-1]
        answer = {"problem": f"the trial failed: {last}"}
    if "problem" in answer:
        is_filters = "filter cannot be loaded" in answer["problem"]
        why = "the kernel needs nf_tables with connection tracking, redirection and reject" if is_filters else ""
        return [CheckRow(lacking, NAME, answer["problem"], why, (MODULES,) if is_filters else ())]
    if answer["lost"]:
        why = "connections of the box would be refused; nothing leaves it"
        return [CheckRow(lacking, NAME, f"nft did not lead here: {' and '.join(answer['lost'])}", why)]
    return [CheckRow(OK, NAME, "nft led a connection to where the list is known, with its address")]
