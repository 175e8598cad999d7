"""Asks Nix what a box depends on, before it starts: packages, whether builds are in a sandbox, what programs need."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile

from claudebox.facts import Facts
from claudebox.features.nix.closure import keeping_closure, registered_paths
from claudebox.features.nix.fetch import fetch_packages
from claudebox.features.nix.packages import give_up, plan_errand, strict_problem, to_resolve
from claudebox.features.nix.program import find_nix, nix_environment
from claudebox.features.nix.trial import NOT_SEEN, PUBLIC_FILE, copying, copying_its_own, judge, keeping_outcome
from claudebox.host import Host
from claudebox.model import Plan
from claudebox.prepare import prepare
from claudebox.problem import Problem


def find_out(facts: Facts, plan: Plan) -> Facts:
    """What Nix says is kept where the next plan finds it. Packages that cannot be had are given up, with a note."""
    if plan.nix is not None and plan.nix.needs_trial:
        try_builds(facts.host)
    if plan.nix is not None and plan.nix.roots:
        look_up_closure(facts.host, plan.nix.roots)
    missing = tuple(package for package in to_resolve(plan.packages) if package.reference not in facts.answered)
    if not missing:
        return facts
    failures = fetch_packages(plan_errand(facts.host, missing))
    if failures and facts.request.strict:
        raise strict_problem(failures)
    return facts.replace(
        settings=give_up(facts.host, facts.settings, failures),
        answered=(*facts.answered, *(package.reference for package in missing)),
    )


ANSWER_PATIENCE_SECONDS = 60


def look_up_closure(host: Host, roots: tuple[str, ...]) -> None:
    """What Nix says is kept, so that it is asked only once for the same roots."""
    closure = _ask(host, "--query", "--requisites", *roots).decode(errors="replace").split()
    registration = _ask(host, "--dump-db", *closure)
    if not set(roots) <= set(registered_paths(registration)):
        raise _problem("it did not say what these paths need")
    prepare(keeping_closure(host, roots, registration))


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
            timeout=ANSWER_PATIENCE_SECONDS,
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


# Everybody may ask the daemon for that. Of another machine nothing would be learnt about this one.
HERE = ("--option", "substitute", "false", "--option", "builders", "", "--max-jobs", "1")
BUILD_PATIENCE_SECONDS = 60  # other builds may have to end first


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
    prepare(keeping_outcome(host, outcome))


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
            timeout=BUILD_PATIENCE_SECONDS,
            start_new_session=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode == 0:
        return True
    return False if NOT_SEEN in done.stderr.decode(errors="replace") else None
