"""Asks Nix what a box depends on, before it starts: packages, whether builds are in a sandbox, what programs need."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile

from claudebox.errors import Problem
from claudebox.facts import Facts
from claudebox.features.nix import Nix, packages_of
from claudebox.features.nix.closure import keeping_closure, registered_paths
from claudebox.features.nix.decide import (
    NOT_SEEN,
    PUBLIC_FILE,
    copying,
    copying_its_own,
    judge,
    keeping_outcome,
)
from claudebox.features.nix.fetch import fetch_packages
from claudebox.features.nix.packages import find_nix, give_up, nix_environment, plan_inquiry, to_resolve
from claudebox.files import prepare
from claudebox.host import Host
from claudebox.model import Plan

ANSWER_PATIENCE_SECONDS = 60  # for a build, other builds may have to end first
# Everybody may ask the daemon for these. A build on another machine would tell nothing about this one.
HERE = ("--option", "substitute", "false", "--option", "builders", "", "--max-jobs", "1")


def find_out(facts: Facts, plan: Plan) -> Facts:
    """Ask Nix what the plan needs, and keep the answers where the next plan finds them.

    A package that is not available is given up, with a note.
    """
    nix = plan.get(Nix)
    if nix is not None and nix.needs_trial:
        try_builds(facts.host)
    if nix is not None and nix.roots:
        look_up_closure(facts.host, nix.roots)
    missing = tuple(package for package in to_resolve(packages_of(plan)) if package.reference not in facts.answered)
    if not missing:
        return facts
    failures = fetch_packages(plan_inquiry(facts.host, missing))
    return facts.replace(
        settings=give_up(facts.settings, failures),
        answered=(*facts.answered, *(package.reference for package in missing)),
    )


def look_up_closure(host: Host, roots: tuple[str, ...]) -> None:
    """Ask what these paths need, and keep the answer, so that Nix is asked only once for the same roots."""
    closure = _ask_store(host, "--query", "--requisites", *roots).decode(errors="replace").split()
    registration = _ask_store(host, "--dump-db", *closure)
    if not set(roots) <= set(registered_paths(registration)):
        raise _closure_problem("it did not say what these paths need")
    prepare(keeping_closure(host, roots, registration))


def _ask_store(host: Host, *words: str) -> bytes:
    nix = find_nix(host)
    program = os.path.join(os.path.dirname(nix), "nix-store")
    if not nix or not os.path.exists(program):
        raise _closure_problem("it is not installed")
    try:
        done = _run([program, *words], nix_environment(host, nix))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _closure_problem(str(error)) from None
    if done.returncode != 0:
        raise _closure_problem((done.stderr.decode(errors="replace").strip().splitlines() or ["it failed"])[-1])
    return done.stdout


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command,
        cwd="/",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=ANSWER_PATIENCE_SECONDS,
        start_new_session=True,
        check=False,
    )


def _closure_problem(reason: str) -> Problem:
    return Problem(
        f"--nix private: Nix cannot be asked what the box needs of the host's store: {reason}", "--nix store shows all"
    )


def try_builds(host: Host) -> None:
    """Try whether builds of the daemon see files of this host, and keep the outcome."""
    nonce = secrets.token_hex(8)
    # The accounts that build are others, so the file is where everybody may read.
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
    prepare(keeping_outcome(host, outcome))


def _builds(host: Host, expression: str) -> bool | None:
    """Whether a build succeeds. False if it did not see what it should copy, None if it failed otherwise."""
    nix = find_nix(host)
    if not nix:
        return None
    words = ("build", "--no-link", "--impure", *HERE, "--expr", expression)
    environment = {**nix_environment(host, nix), "NIX_REMOTE": "daemon"}
    try:
        done = _run([nix, "--extra-experimental-features", "nix-command", *words], environment)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode == 0:
        return True
    return False if NOT_SEEN in done.stderr.decode(errors="replace") else None
