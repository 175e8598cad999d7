"""Understands what Nix says. It is other people's text: whoever shows it has to escape it."""

from __future__ import annotations

from claudebox.host.system import NIX_STORE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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


def read_version(text: str) -> tuple[int, int]:
    """The version in a text such as `nix (Nix) 2.18.1`; (0, 0) if there is none."""
    major, _, minor = (text.split() or [""])[-1].partition(".")
    digits = minor[: len(minor) - len(minor.lstrip("0123456789"))]
    return (int(major), int(digits)) if major.isdecimal() and digits else (0, 0)


def read_paths(output: bytes, *, is_json: bool) -> list[str]:
    import json

    text = output.decode(errors="replace")
    if not is_json:
        return [line for line in text.split("\n") if line]
    try:
        return [path for result in json.loads(text) for path in _paths_of(result)]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return []


def _paths_of(result: Any) -> list[str]:
    """The paths of what was built. A store path that was asked for by name is its own result."""
    if isinstance(result, str):
        return [result]
    return [str(path) for path in (result.get("outputs") or {"": result.get("path")}).values()]


def find_reason(lines: list[str]) -> str:
    """Why Nix failed, in one line: its last error."""
    errors = [(line.partition("error:")[2].strip(), after) for line, after in _followed(lines) if "error:" in line]
    last, after = next((error for error in reversed(errors) if error[0]), (lines[-1] if lines else SILENT, ""))
    for needles, meaning in MEANINGS:
        if all(needle in last for needle in needles):
            return meaning
    reason = f"{last} {after}" if after.startswith("Reason:") else last
    return reason.rstrip(";:")[:LONGEST_REASON]


def _followed(lines: list[str]) -> list[tuple[str, str]]:
    """Each line with the one after it."""
    return list(zip(lines, [*lines[1:], ""], strict=False))


_HASH = frozenset("0123456789abcdfghijklmnpqrsvwxyz")
HASH_LENGTH = 32
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._?=")


def is_store_path(path: str) -> bool:
    """Whether it is a whole store path, and no file in one."""
    directory, _, name = path.rpartition("/")
    digest, dash, title = name[:HASH_LENGTH], name[HASH_LENGTH : HASH_LENGTH + 1], name[HASH_LENGTH + 1 :]
    is_hash = len(digest) == HASH_LENGTH and _HASH.issuperset(digest)
    return directory == NIX_STORE and is_hash and dash == "-" and bool(title) and _NAME.issuperset(title)


def store_paths(text: str) -> list[str]:
    """Every store path that a text names, even if it names a file in one."""
    found = []
    for rest in text.split(f"{NIX_STORE}/")[1:]:
        end = next((at for at, letter in enumerate(rest) if letter not in _NAME), len(rest))
        path = f"{NIX_STORE}/{rest[:end]}"
        found += [path] if is_store_path(path) else []
    return found
