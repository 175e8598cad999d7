"""Asks Nix before a box starts: for packages, what programs need of the store, and whether builds are in a sandbox.

This is the only part of a launch that waits for other programs. It is rare, so it may import what it likes: Nix's
answers are kept where the next plan finds them, and most launches find them.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time

from claudebox.errors import Problem
from claudebox.facts import Facts
from claudebox.features.nix import Nix, packages_of
from claudebox.features.nix.packages import (
    PACKAGE,
    find_meaning,
    find_nix,
    give_up,
    is_store_path,
    nix_environment,
    short_name,
    to_resolve,
)
from claudebox.features.nix.store import (
    NOT_SEEN,
    PUBLIC_FILE,
    copying,
    copying_its_own,
    judge,
    keeping_closure,
    keeping_outcome,
    registered_paths,
)
from claudebox.files import prepare
from claudebox.host import Host
from claudebox.model import Plan, Preparation
from claudebox.output.terminal import errors_style, say
from claudebox.process.companion import die_with_parent
from claudebox.state import find_state
from claudebox.state.memory import note_with_directory
from claudebox.text import cut, escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANSWER_PATIENCE_SECONDS = 60  # for a build, other builds may have to end first
GLANCE_SECONDS = 0.1  # between two looks at what is going on
LAST_WORDS = 1 << 16  # bytes
LONGEST_REASON = 300
ERASE = "\r\x1b[K"
PREFIX = "claudebox: "

FEATURES = ("--extra-experimental-features", "nix-command flakes")
# A flake may say how it wants to be built, which the user did not; and a lock file is not ours to write.
CAUTION = ("--option", "accept-flake-config", "false", "--no-write-lock-file")
# Everybody may ask the daemon for these. A build on another machine would tell nothing about this one.
HERE = ("--option", "substitute", "false", "--option", "builders", "", "--max-jobs", "1")

# What Nix says, and what it means here.
MEANINGS = (
    (
        ("cannot connect to socket", "Permission denied"),
        "you may not use the Nix daemon: your account has to be in its group (nix-users), or in allowed-users",
    ),
    (("cannot connect to socket",), "the Nix daemon does not answer: sudo systemctl start nix-daemon"),
    (("unrecognised flag",), "this Nix is too old: 2.4 is the first with flakes"),
    (("experimental", "disabled"), "the flakes of Nix are disabled on this host: see nix.conf"),
)


class Failure(Exception):
    """What was asked for cannot be had. The arguments are what Nix said last, by lines."""


def find_out(facts: Facts, plan: Plan) -> Facts:
    """Ask Nix what the plan needs. A package that is not available is given up, with a note."""
    nix = plan.get(Nix)
    if nix is not None and nix.needs_trial:
        try_builds(facts.host)
    if nix is not None and nix.roots:
        look_up_closure(facts.host, nix.roots)
    missing = [one.reference for one in to_resolve(packages_of(plan)) if one.reference not in facts.answered]
    if not missing:
        return facts
    failures = fetch_packages(facts.host, missing)
    return facts.replace(settings=give_up(facts.settings, failures), answered=(*facts.answered, *missing))


# Packages


def fetch_packages(host: Host, references: list[str]) -> dict[str, str]:
    """Fetch one after the other. Returns the reason for each that is not available."""
    prepare((Preparation(Preparation.DIRECTORY, find_state(host).packages),))
    failures: dict[str, str] = {}
    for number, reference in enumerate(references, 1):
        name = escape(short_name(reference))
        say(f"{PREFIX}asking Nix for {name} ({number} of {len(references)})\n")
        try:
            _fetch(host, reference)
        except Failure as failure:
            failures[reference] = find_reason(list(failure.args))
            say(f"{PREFIX}warning: {name} is not in the box: {escape(failures[reference])}\n")
    return failures


def _fetch(host: Host, reference: str) -> None:
    """Have Nix build or copy a package. Raises a Failure."""
    state, nix = find_state(host), find_nix(host)
    words = ("build", *CAUTION, "--out-link", state.package_root(reference), "--json", "--", reference)
    try:
        paths = read_paths(_ask(host, nix, *FEATURES, *words))
    except OSError as error:
        raise Problem(f"{nix} cannot be started: {error.strerror}", "do without packages, or reinstall Nix") from None
    if not paths or not all(is_store_path(path) and os.path.lexists(path) for path in paths):
        raise Failure("Nix did not say where in the store it is")
    prepare(note_with_directory(state.package(reference), PACKAGE, (find_meaning(host), reference, *paths)))


def read_paths(output: bytes) -> list[str]:
    """The paths of what was built. A store path that was asked for by name is its own result."""
    try:
        said = json.loads(output.decode(errors="replace"))
        results: list[Any] = [{"path": one} if isinstance(one, str) else one for one in said]
        return [str(path) for one in results for path in (one.get("outputs") or {"": one.get("path")}).values()]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return []


def find_reason(lines: list[str]) -> str:
    """Why Nix failed, in one line: its last error."""
    errors = [
        (line.partition("error:")[2].strip(), after)
        for line, after in zip(lines, [*lines[1:], ""], strict=False)
        if "error:" in line
    ]
    silent = "Nix failed without a word"
    last, after = next((error for error in reversed(errors) if error[0]), (lines[-1] if lines else silent, ""))
    for needles, meaning in MEANINGS:
        if all(needle in last for needle in needles):
            return meaning
    reason = f"{last} {after}" if after.startswith("Reason:") else last
    return reason.rstrip(";:")[:LONGEST_REASON]


# What programs of the box need of the host's store


def look_up_closure(host: Host, roots: tuple[str, ...]) -> None:
    """Ask what these paths need, and keep the answer, so that Nix is asked only once for the same roots."""
    program = os.path.join(os.path.dirname(find_nix(host)), "nix-store")
    try:
        if not os.path.isabs(program) or not os.path.exists(program):
            raise Failure("it is not installed")
        said = _ask(host, program, "--query", "--requisites", *roots, patience=ANSWER_PATIENCE_SECONDS)
        closure = said.decode(errors="replace").split()
        registration = _ask(host, program, "--dump-db", *closure, patience=ANSWER_PATIENCE_SECONDS)
        if not set(roots) <= set(registered_paths(registration)):
            raise Failure("it did not say what these paths need")
    except (OSError, Failure) as error:
        reason = ("it failed", *error.args)[-1]
        what = f"--nix private: Nix cannot be asked what the box needs of the host's store: {reason}"
        raise Problem(what, "--nix store shows all") from None
    prepare(keeping_closure(host, roots, registration))


# Whether builds of the daemon see this host


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
    prepare(keeping_outcome(host, judge(copied, _builds(host, copying_its_own(nonce)))))


def _builds(host: Host, expression: str) -> bool | None:
    """Whether a build succeeds. False if it did not see what it should copy, None if it failed otherwise."""
    words = ("build", "--no-link", "--impure", *HERE, "--expr", expression)
    try:
        _ask(host, find_nix(host), *FEATURES, *words, patience=ANSWER_PATIENCE_SECONDS, NIX_REMOTE="daemon")
    except Failure as failure:
        return False if NOT_SEEN in "\n".join(failure.args) else None
    except OSError:
        return None
    return True


# How it is asked


def _ask(host: Host, program: str, *words: str, patience: float = float("inf"), **variables: str) -> bytes:
    """What Nix prints. A terminal shows what it says meanwhile. Whatever happens, it does not outlive this process.

    Raises OSError if it cannot be started, and a Failure if it fails.
    """
    # Files, since a pipe may be too small for it.
    with open(os.memfd_create("output"), "w+b") as output, open(os.memfd_create("errors"), "w+b") as errors:
        # It has a session of its own: it cannot ask on the terminal.
        asked = subprocess.Popen(
            [program, *words],
            cwd="/",
            env={**nix_environment(host, find_nix(host)), **variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        end = time.monotonic() + patience
        try:
            while asked.poll() is None:
                time.sleep(GLANCE_SECONDS)
                _show((_last_words(errors.fileno()) or [""])[-1])
                if time.monotonic() > end:
                    raise Failure(f"it did not answer within {patience:.0f} seconds")
        finally:
            asked.kill()
            asked.wait()
            _show("")
        if asked.returncode != 0:
            raise Failure(*_last_words(errors.fileno()))
        output.seek(0)
        return output.read()


def _last_words(errors: int) -> list[str]:
    end = os.fstat(errors).st_size
    said = os.pread(errors, LAST_WORDS, max(0, end - LAST_WORDS)).decode(errors="replace")
    return [line.strip() for line in said.split("\n") if line.strip()]


def _show(words: str) -> None:
    """Show this on the line of the terminal where something was shown before."""
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        say(ERASE + cut(escape(words), errors_style().width - 1))
