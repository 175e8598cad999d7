"""What is said of packages from Nix."""

from __future__ import annotations

import pytest

from claudebox.features.nix import fetch as packages
from claudebox.features.nix.packages import Inquiry
from claudebox.problem import FAILED
from claudebox.state import State
from errors.scene import Problems, Scene, Stage


def with_nix(scene: Scene) -> Scene:
    return scene.planted("/usr/bin/nix*\n/nix/store/x")


def flake_in_another_project(scene: Scene) -> None:
    scene.planted("~/.claudebox/instances/x/project: ~/other\\n\n~/other/flake.nix\n~/tools -> other")
    with_nix(scene).plan("--package", "~/tools#hello")


def flake_around_the_project(scene: Scene) -> None:
    scene.planted("~/code/flake.nix\n~/code/shop/").in_directory("/home/alice/code/shop")
    with_nix(scene).plan("--package", "git+file:///home/alice/code#hello")


def registry_leads_to_the_project(scene: Scene) -> None:
    entry = '{"from": {"type": "indirect", "id": "nixpkgs"}, "to": {"type": "path", "path": "/home/alice/shop"}}'
    scene.planted(f'~/.config/nix/registry.json: {{"flakes": [{entry}]}}')
    with_nix(scene).plan("--package", "hello")


def nix_gone_at_the_last_moment(scene: Scene) -> None:
    packages.Resolution(Inquiry("/nonexistent/nix", {}, ("nixpkgs#hello",), State("/nonexistent"), ""), "nixpkgs#hello")


PROBLEMS: Problems = {
    "package-looks-like-an-option": (lambda scene: with_nix(scene).plan("--package=--impure"), FAILED),
    "package-of-an-unknown-scheme": (lambda scene: with_nix(scene).plan("--package", "ext::sh#x"), FAILED),
    "package-on-another-host": (lambda scene: with_nix(scene).plan("--package", "git+file://host/x"), FAILED),
    "package-path-with-escapes": (lambda scene: with_nix(scene).plan("--package", "path:/srv/%73hop"), FAILED),
    "package-in-the-project": (lambda scene: with_nix(scene).plan("--package", ".#hello"), FAILED),
    "package-in-another-project": (flake_in_another_project, FAILED),
    "package-around-the-project": (flake_around_the_project, FAILED),
    "package-registered-in-the-project": (registry_leads_to_the_project, FAILED),
    "package-missing-place": (lambda scene: with_nix(scene).plan("--package", "/srv/gone#hello"), FAILED),
    "package-without-nix": (lambda scene: scene.plan("--package", "hello"), FAILED),
    "package-without-nix-on-arch": (
        lambda scene: scene.without("/etc/os-release").planted("/etc/os-release: ID=arch").plan("--package", "hello"),
        FAILED,
    ),
    "package-without-nix-elsewhere": (
        lambda scene: scene.without("/etc/os-release").planted("/etc/os-release: ID=x").plan("--package", "hello"),
        FAILED,
    ),
    "package-without-store": (lambda scene: scene.planted("/usr/bin/nix*").plan("--package", "hello"), FAILED),
    "package-with-nix-off": (lambda scene: with_nix(scene).plan("--package", "hello", "--nix", "off"), FAILED),
    "package-nix-gone": (nix_gone_at_the_last_moment, FAILED),
}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_says_exactly_this(name: str, stage: Stage) -> None:
    stage.check("packages", name, *PROBLEMS[name])
