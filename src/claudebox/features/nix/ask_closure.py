"""Asks Nix which paths of the store others need."""

from __future__ import annotations

import os
import subprocess

from claudebox.features.nix.closure import (
    keeping_closure,
    registered_paths,
)
from claudebox.features.nix.program import (
    find_nix,
    nix_environment,
)
from claudebox.host import Host
from claudebox.prepare import prepare
from claudebox.problem import Problem

PATIENCE = 60


def look_up_closure(host: Host, roots: tuple[str, ...]) -> None:
    """What Nix says is kept, so that it is asked only once for the same roots."""
    closure = _ask(host, "--query", "--requisites", *roots).decode(errors="replace").split()
    registration = _ask(host, "--dump-db", *closure)
    if not set(roots) <= set(registered_paths(registration)):
        raise _problem("it did not say what these paths need")
    prepare(keeping_closure(host, roots, registration), "")


def _ask(host: Host, *words: str) -> bytes:
    nix = find_nix(host)
    program = os.path.join(os.path.dirname(nix), "nix-store")
    if not nix or not os.path.exists(program):
        raise _problem("it is not installed")
    try:
        done = subprocess.run(
            [program, *words],
            cwd="/",
            env=nix_environment(host, nix),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            start_new_session=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _problem(str(error)) from None
    if done.returncode != 0:
        raise _problem((done.stderr.decode(errors="replace").strip().splitlines() or ["it failed"])[-1])
    return done.stdout


def _problem(reason: str) -> Problem:
    return Problem(
        f"--nix private: Nix cannot be asked what the box needs of the host's store: {reason}", "--nix store shows all"
    )
