"""The profiles that come with claudebox."""

from __future__ import annotations

from claudebox.host.tree import Tree

DIRECTORY = __file__.rpartition("/files/")[0] + "/profiles"
SUFFIX = ".toml"


def shipped_names() -> list[str]:
    return [name.removesuffix(SUFFIX) for name in Tree().entries(DIRECTORY) if name.endswith(SUFFIX)]


def shipped_profile(name: str) -> bytes | None:
    return Tree().read(f"{DIRECTORY}/{name}{SUFFIX}") if name in shipped_names() else None
