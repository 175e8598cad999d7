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

PATIENCE = 60  # seconds: other builds may have to end first


def try_builds(host: Host) -> None:
    """What came of it is kept."""
    # Where everybody looks into: the users that build are others.
    descriptor, canary = tempfile.mkstemp(prefix="claudebox-canary-", dir="/var/tmp")
    try:
        os.fchmod(descriptor, 0o644)
        outcome = _build(host, trial_expression(canary, secrets.token_hex(8)))
    finally:
        os.close(descriptor)
        os.unlink(canary)
    prepare(keeping_outcome(host, outcome), "")


def _build(host: Host, expression: str) -> str:
    nix = find_nix(host)
    if not nix:
        return UNKNOWN
    words = ("build", "--no-link", "--json", "--impure", "--option", "substitute", "false", "--expr", expression)
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
