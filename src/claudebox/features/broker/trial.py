"""Whether a Claude can talk to a socket with a name: known for some versions, else asked once, and remembered."""

from __future__ import annotations

import posixpath

from claudebox import remembered
from claudebox.host import Host
from claudebox.host.claude import ClaudeInstall
from claudebox.host.digest import sha256
from claudebox.host.tree import Tree
from claudebox.model import (
    ClaudeTrial,
    Preparation,
)
from claudebox.remembered import Form
from claudebox.state import State

FORM = Form("Which Claude Code can use a socket. claudebox asks them again when this file is gone.")
SPEAKS = "socket"
DOES_NOT = "port"
MOST = 20  # programs that are remembered

# Tried with the real ones. Nothing is concluded from one version to the next: the variable is not documented.
KNOWN: dict[tuple[int, ...], bool] = {(2, 1, 197): True, (2, 1, 325): True}
NEVER = (2, 0)
PACKAGE = "@anthropic-ai/claude-code"
DEEPEST = 3  # below the directory of the package
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


def speaks_socket(host: Host, install: ClaudeInstall) -> bool | None:
    """None if nobody has asked it yet."""
    version = find_version(host.tree, install)
    if version is not None and (version in KNOWN or version[:2] == NEVER):
        return KNOWN.get(version, False)
    said = _recall(host).get(_identity(host.tree, install))
    return None if said is None else said == SPEAKS


def needed_trial(host: Host, install: ClaudeInstall) -> ClaudeTrial | None:
    if speaks_socket(host, install) is not None:
        return None
    interpreter = posixpath.dirname(install.interpreter)
    path = f"{interpreter}:{SYSTEM_PATH}" if interpreter else SYSTEM_PATH
    return ClaudeTrial(install.real, install.files, path, _identity(host.tree, install))


def keeping_answer(host: Host, trial: ClaudeTrial, *, speaks: bool) -> tuple[Preparation, ...]:
    answers = {**_recall(host), trial.identity: SPEAKS if speaks else DOES_NOT}
    lines = [f"{identity} {answer}" for identity, answer in answers.items()][-MOST:]
    return remembered.keeping(State(host.person.home).claude_trial, FORM, lines)


def _recall(host: Host) -> dict[str, str]:
    memory = remembered.recall(host.tree, State(host.person.home).claude_trial, FORM, host.person.uid)
    words = [line.split() for line in memory.lines]
    return {pair[0]: pair[1] for pair in words if len(pair) == 2 and pair[1] in (SPEAKS, DOES_NOT)}


def _identity(tree: Tree, install: ClaudeInstall) -> str:
    status = tree.lstat(install.real)
    file = (status.st_ino, status.st_mtime_ns, status.st_size) if status is not None else ()
    return sha256(repr((install.real, install.interpreter, file)).encode(errors="surrogateescape"))


def find_version(tree: Tree, install: ClaudeInstall) -> tuple[int, ...] | None:
    """Of an installation whose place tells it. None: it may be any."""
    head, mark, tail = install.real.partition("/claude/versions/")
    if mark and head:
        return _numbers(tail.partition("/")[0])
    directory = install.real
    for _ in range(DEEPEST):
        directory = posixpath.dirname(directory)
        if (text := tree.text(f"{directory}/package.json")) is not None:
            return _of_package(text)
    return None


def _of_package(text: str) -> tuple[int, ...] | None:
    import json

    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return None
    # The program itself may be in a package of its own, for one kind of machine.
    if not isinstance(package, dict) or not str(package.get("name", "")).startswith(PACKAGE):
        return None
    return _numbers(str(package.get("version", "")))


def _numbers(version: str) -> tuple[int, ...] | None:
    parts = version.split(".")
    are_numbers = all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts)
    return tuple(map(int, parts)) if are_numbers else None
