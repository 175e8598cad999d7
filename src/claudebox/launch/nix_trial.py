"""Has the daemon of Nix build something, to see whether that is done in a sandbox."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import tempfile

from claudebox.host import Host
from claudebox.launch.state import prepare
from claudebox.rules.nix_program import find_nix, nix_environment
from claudebox.rules.nix_trial import OUTCOMES, UNKNOWN, keeping_outcome, trial_expression

# Everybody may ask the daemon for that. Of another machine nothing would be learnt about this one.
HERE = ("--option", "substitute", "false", "--option", "builders", "", "--max-jobs", "1")
PATIENCE = 60  # seconds: other builds may have to end first


def try_builds(host: Host) -> None:
    """What came of it is kept."""
    # Where everybody looks into: the users that build are others.
    descriptor, canary = tempfile.mkstemp(prefix="claudebox-canary-", dir="/var/tmp")
    try:
        os.fchmod(descriptor, 0o644)
        # A sandbox that is `relaxed` is one only for those who do not ask for none. A closed one refuses to build that.
        outcome = _build(host, canary, asks_for_no_sandbox=True)
        if outcome == UNKNOWN:
            outcome = _build(host, canary, asks_for_no_sandbox=False)
    finally:
        os.close(descriptor)
        os.unlink(canary)
    prepare(keeping_outcome(host, outcome), "")


def _build(host: Host, canary: str, *, asks_for_no_sandbox: bool) -> str:
    nix = find_nix(host)
    if not nix:
        return UNKNOWN
    expression = trial_expression(canary, secrets.token_hex(8), asks_for_no_sandbox=asks_for_no_sandbox)
    words = ("build", "--no-link", "--json", "--impure", *HERE, "--expr", expression)
    try:
        done = subprocess.run(
            [nix, "--extra-experimental-features", "nix-command", *words],
            cwd="/",
            env={**nix_environment(host, nix), "NIX_REMOTE": "daemon"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            start_new_session=True,
            check=False,
        )
        with open(json.loads(done.stdout)[0]["outputs"]["out"]) as file:
            said = file.read().strip()
    except (OSError, subprocess.TimeoutExpired, ValueError, LookupError, TypeError):
        return UNKNOWN
    return said if said in OUTCOMES else UNKNOWN
