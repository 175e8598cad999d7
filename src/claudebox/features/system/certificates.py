"""The certificate bundle, wherever this host keeps it."""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.model import (
    RO,
    RW,
    SYMLINK,
    Mount,
    Origin,
)
from claudebox.paths import is_inside


def certificate_mounts(bundle: str, mounts: list[Mount]) -> list[Mount]:
    """The bundle itself, unless a mount already shows it."""
    shown = any(is_inside(bundle, mount.path) for mount in mounts if mount.kind in (RO, RW, SYMLINK))
    if not bundle or shown:
        return []
    return [Mount(RO, bundle, Origin("certificates", "to verify TLS connections"), source=bundle)]


def decide(facts: Facts, draft: Draft) -> Contribution:
    return Contribution(mounts=tuple(certificate_mounts(facts.certificates, draft.mounts)))
