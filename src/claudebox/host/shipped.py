"""The profiles that come with claudebox."""

from __future__ import annotations

import os

DIRECTORY = os.path.join(os.path.dirname(os.path.dirname(__file__)), "profiles")
SUFFIX = ".toml"


def shipped_names() -> list[str]:
    return sorted(name.removesuffix(SUFFIX) for name in os.listdir(DIRECTORY) if name.endswith(SUFFIX))


def shipped_profile(name: str) -> bytes | None:
    if name not in shipped_names():
        return None
    with open(os.path.join(DIRECTORY, name + SUFFIX), "rb") as file:
        return file.read()
