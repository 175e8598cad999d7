"""flake.lock: it belongs to flake.nix, and says exactly which sources are meant."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from conftest import CHECKOUT
from flake.machine import Flake

LOCK = json.loads((CHECKOUT / "flake.lock").read_text())


def inputs_of(flake: Flake) -> Any:
    """The inputs as flake.nix has them."""
    done = flake.machine.nix("eval", "--impure", "--json", "--expr", f"(import {flake.checkout}/flake.nix).inputs")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.req("NIX-02")
def test_lock_has_the_inputs_and_no_others(flake: Flake) -> None:
    nodes = LOCK["nodes"]
    inputs = inputs_of(flake)
    assert (LOCK["version"], LOCK["root"], nodes["root"]) == (7, "root", {"inputs": {name: name for name in inputs}})
    assert nodes.keys() == {"root", *inputs}
    for name, declared in inputs.items():
        original = nodes[name]["original"]
        url = "/".join(original[part] for part in ("owner", "repo", "ref") if part in original)
        assert f"{original['type']}:{url}" == declared["url"]
        follows = {inner: [value["follows"]] for inner, value in declared.get("inputs", {}).items()}
        assert nodes[name].get("inputs", {}) == follows


@pytest.mark.req("NIX-02")
@pytest.mark.parametrize("name", sorted(LOCK["nodes"].keys() - {"root"}))
def test_source_is_pinned(name: str) -> None:
    locked, original = LOCK["nodes"][name]["locked"], LOCK["nodes"][name]["original"]
    assert {part: original[part] for part in ("type", "owner", "repo")}.items() <= locked.items()
    assert re.fullmatch(r"[0-9a-f]{40}", locked["rev"])
    assert re.fullmatch(r"sha256-[A-Za-z0-9+/]{43}=", locked["narHash"])
    assert isinstance(locked["lastModified"], int)


@pytest.mark.req("NIX-02")
def test_nix_finds_nothing_to_change(flake_of_each_nix: Flake) -> None:
    assert locks(flake_of_each_nix)


def locks(flake: Flake) -> bool:
    """Whether Nix takes the lock as it is. For any other it would have to fetch something, and cannot."""
    done = flake.machine.nix("flake", "metadata", "--offline", "--no-update-lock-file", flake.url)
    assert done.returncode == 0 or "error:" in done.stderr
    return done.returncode == 0


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("flake.nix", "nixpkgs/nixos-unstable", "nixpkgs/nixos-26.05"),
        ("flake.nix", 'inputs.nixpkgs.follows = "nixpkgs";', ""),
        ("flake.lock", '"nix-index-database": "nix-index-database",', ""),
        ("flake.lock", '"ref": "nixos-unstable",', ""),
        ("flake.lock", '"owner": "nix-community"', '"owner": "somebody"'),
    ],
)
def test_lock_of_other_inputs_is_found(flake: Flake, file: str, old: str, new: str) -> None:
    spoiled = flake.copy("spoiled")
    spoiled.replace(file, old, new)
    assert not locks(spoiled)
