"""Has the daemon of Nix build something, to see whether that is done in a sandbox."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile

from claudebox.features.nix.program import (
    find_nix,
    nix_environment,
)
from claudebox.features.nix.trial import (
    NOT_SEEN,
    PUBLIC_FILE,
    copying,
    copying_its_own,
    judge,
    keeping_outcome,
)
from claudebox.host import Host
from claudebox.prepare import prepare

# Everybody may ask the daemon for that. Of another machine nothing would be learnt about this one.
HERE = ("--option", "substitute", "false", "--option", "builders", "", "--max-jobs", "1")
PATIENCE = 60  # seconds: other builds may have to end first


def try_builds(host: Host) -> None:
    """What came of it is kept."""
    nonce = secrets.token_hex(8)
    # Where everybody looks into: the users that build are others.
    descriptor, canary = tempfile.mkstemp(prefix="claudebox-canary-", dir="/var/tmp")
    try:
        os.fchmod(descriptor, 0o644)
        os.write(descriptor, nonce.encode())
        files = {canary: nonce.encode(), PUBLIC_FILE: host.tree.read(PUBLIC_FILE)}
        copied = [_builds(host, copying(file, content, nonce)) for file, content in files.items() if content]
    finally:
        os.close(descriptor)
        os.unlink(canary)
    outcome = judge(copied, _builds(host, copying_its_own(nonce)))
    prepare(keeping_outcome(host, outcome), "")


def _builds(host: Host, expression: str) -> bool | None:
    """False if it did not see what it should copy, None if it failed otherwise."""
    nix = find_nix(host)
    if not nix:
        return None
    words = ("build", "--no-link", "--impure", *HERE, "--expr", expression)
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
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode == 0:
        return True
    return False if NOT_SEEN in done.stderr.decode(errors="replace") else None
