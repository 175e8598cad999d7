"""Files of the project that hold secrets are covered by made-up ones."""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.features.secrets.table import (
    RULE,
)
from claudebox.model import (
    HIDE,
    MASK,
    Masked,
    Mount,
    Origin,
    Secrets,
)
from claudebox.mounts import appearances

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


def mask_mounts(secrets: Secrets, mounts: list[Mount], wished: list[Mount]) -> list[Mount]:
    """At every place where the box would show such a file, but for where somebody asked for that very file."""
    named = {mount.path for mount in wished if any(mount.source == masked.path for masked in secrets.masked)}
    return [
        _mount(masked, path)
        for masked in secrets.masked
        for path in appearances(masked.path, mounts)
        if path not in named
    ]


def _mount(masked: Masked, path: str) -> Mount:
    origin = Origin(RULE, masked.reason)
    if masked.decoy is None:
        return Mount(HIDE, path, origin, is_dir=False)
    return Mount(MASK, path, origin, content=masked.decoy, mode=masked.mode)


def decide(facts: Facts, draft: Draft) -> Contribution:
    if facts.secrets is None:
        return Contribution()
    return Contribution(
        mounts=tuple(mask_mounts(facts.secrets, draft.mounts, draft.wished)),
        findings=facts.secrets.findings,
        preparations=facts.secrets.preparations,
    )
