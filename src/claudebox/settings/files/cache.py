"""Keeps what a settings file said the last time.

Parsing TOML takes a third of a launch, most of it for imports. So the result is kept beside the user's files, where no
box can write, together with the digest of the content that it was parsed from.
"""

from __future__ import annotations

import marshal

from claudebox import __version__
from claudebox.host.digest import sha256
from claudebox.model import Origin, Port
from claudebox.settings.values import EnvWish, MountWish, Statement, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KINDS: dict[str, Any] = {kind.__name__: kind for kind in (MountWish, EnvWish, Word, Port)}


def freeze(content: bytes, file: str, said: tuple[Statement, ...]) -> bytes:
    rows = [(one.name, type(one.value).__name__, _fields(one.value)) for one in said]
    return marshal.dumps((_key(content, file), rows))


def thaw(content: bytes, file: str, frozen: bytes | None) -> tuple[Statement, ...] | None:
    """The statements; None if they were parsed from other content, by another version, or not by claudebox."""
    try:
        key, rows = marshal.loads(frozen or b"")  # noqa: S302  (ours, and as safe as the settings themselves)
        if key != _key(content, file):
            return None
        return tuple(Statement(name, KINDS[kind](**_thawed(fields))) for name, kind, fields in rows)
    except (EOFError, ValueError, TypeError, KeyError):
        return None


def _key(content: bytes, file: str) -> str:
    return f"{__version__} {file} {sha256(content)}"


def _fields(value: Any) -> dict[str, Any]:
    return {**value.__dict__, "origin": value.origin.__dict__}


def _thawed(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "origin": Origin(**fields["origin"])}
