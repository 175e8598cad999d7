"""Asks Nix for packages before the box starts. This is the only part of a launch that waits for other programs.

It is rare, so it may import what it likes: Nix's answers are kept, and most launches find them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from claudebox.errors import Problem
from claudebox.features.nix.packages import FORM, Inquiry, record_lines
from claudebox.features.nix.references import is_store_path, short_name
from claudebox.files import prepare
from claudebox.model import Preparation
from claudebox.output.terminal import errors_style, say
from claudebox.process.companion import die_with_parent
from claudebox.state.memory import note_with_directory
from claudebox.text import cut, escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GLANCE_SECONDS = 0.1  # between two looks at what is going on
LAST_WORDS = 1 << 16  # bytes
ERASE = "\r\x1b[K"
PREFIX = "claudebox: "

FEATURES = ("--extra-experimental-features", "nix-command flakes")
# A flake may say how it wants to be built, which the user did not; and a lock file is not ours to write.
CAUTION = ("--option", "accept-flake-config", "false", "--no-write-lock-file")


class Failure(Exception):
    """A package that cannot be had. The message says why."""


def fetch_packages(inquiry: Inquiry) -> dict[str, str]:
    """Fetch one after the other. Returns the reason for each that is not available."""
    prepare((Preparation(Preparation.DIRECTORY, inquiry.state.packages),))
    failures: dict[str, str] = {}
    for number, reference in enumerate(inquiry.references, 1):
        name = escape(short_name(reference))
        say(f"{PREFIX}asking Nix for {name} ({number} of {len(inquiry.references)})\n")
        try:
            _fetch(inquiry, reference)
        except Failure as failure:
            failures[reference] = str(failure)
            say(f"{PREFIX}warning: {name} is not in the box: {escape(str(failure))}\n")
    return failures


def _fetch(inquiry: Inquiry, reference: str) -> None:
    """Have Nix build or copy a package, and list its closure. Raises a Failure."""
    link = inquiry.state.package_root(reference)
    paths = read_paths(_ask(inquiry, "build", *CAUTION, "--out-link", link, "--json", "--", reference))
    if not paths or not all(is_store_path(path) and os.path.lexists(path) for path in paths):
        raise Failure("Nix did not say where in the store it is")
    said = _ask(inquiry, "path-info", "--recursive", "--", *paths).decode(errors="replace")
    closure = [line for line in said.split("\n") if line]
    if not set(paths) <= set(closure) or not all(map(is_store_path, closure)):
        raise Failure("Nix did not say what it needs")
    lines = record_lines(reference, inquiry.meaning, paths, closure)
    prepare(note_with_directory(inquiry.state.package(reference), FORM, lines))


def _ask(inquiry: Inquiry, *words: str) -> bytes:
    """What Nix prints. A terminal shows what it says meanwhile. Whatever happens, it does not outlive this process."""
    # Files, since a pipe may be too small for it.
    with open(os.memfd_create("output"), "w+b") as output, open(os.memfd_create("errors"), "w+b") as errors:
        try:
            # It has a session of its own: it cannot ask on the terminal.
            program = subprocess.Popen(
                [inquiry.nix, *FEATURES, *words],
                cwd="/",
                env=inquiry.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        except OSError as error:
            raise Problem(
                f"{inquiry.nix} cannot be started: {error.strerror}", "do without packages, or reinstall Nix"
            ) from None
        try:
            while program.poll() is None:
                time.sleep(GLANCE_SECONDS)
                _show((_last_words(errors.fileno()) or [""])[-1])
        finally:
            program.kill()
            program.wait()
            _show("")
        if program.returncode != 0:
            raise Failure(find_reason(_last_words(errors.fileno())))
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


LONGEST_REASON = 300
SILENT = "Nix failed without a word"

# What Nix says, and what it means here.
MEANINGS = (
    (
        ("cannot connect to socket", "Permission denied"),
        "you may not use the Nix daemon: your account has to be in its group (nix-users), or in allowed-users",
    ),
    (("cannot connect to socket",), "the Nix daemon does not answer: sudo systemctl start nix-daemon"),
    (("unrecognised flag",), "this Nix is too old: 2.4 is the first with flakes"),
    (
        ("experimental", "disabled"),
        "the flakes of Nix are disabled on this host: see nix.conf",
    ),
)


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
    last, after = next((error for error in reversed(errors) if error[0]), (lines[-1] if lines else SILENT, ""))
    for needles, meaning in MEANINGS:
        if all(needle in last for needle in needles):
            return meaning
    reason = f"{last} {after}" if after.startswith("Reason:") else last
    return reason.rstrip(";:")[:LONGEST_REASON]
