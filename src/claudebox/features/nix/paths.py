"""Paths in the Nix store."""

from __future__ import annotations

from claudebox.host.system import NIX_STORE

_HASH = frozenset("0123456789abcdfghijklmnpqrsvwxyz")
_HASH_LENGTH = 32
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._?=")


def is_store_path(path: str) -> bool:
    """The whole of one: no file in it."""
    directory, _, name = path.rpartition("/")
    digest, dash, title = name[:_HASH_LENGTH], name[_HASH_LENGTH : _HASH_LENGTH + 1], name[_HASH_LENGTH + 1 :]
    is_hash = len(digest) == _HASH_LENGTH and _HASH.issuperset(digest)
    return directory == NIX_STORE and is_hash and dash == "-" and bool(title) and _NAME.issuperset(title)


def store_paths(text: str) -> list[str]:
    """Every store path that a text names, also by a file in it."""
    found = []
    for rest in text.split(f"{NIX_STORE}/")[1:]:
        end = next((at for at, letter in enumerate(rest) if letter not in _NAME), len(rest))
        path = f"{NIX_STORE}/{rest[:end]}"
        found += [path] if is_store_path(path) else []
    return found
