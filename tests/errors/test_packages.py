"""What is said of packages from Nix."""

from __future__ import annotations

from claudebox.errors import FAILED
from claudebox.features.nix.asking import fetch_packages
from claudebox.host import pinned
from errors.scene import Problems, Scene


def with_nix(scene: Scene) -> Scene:
    return scene.planted("/usr/bin/nix*\n/nix/store/x")


def registry_leads_to_the_project(scene: Scene) -> None:
    entry = '{"from": {"type": "indirect", "id": "nixpkgs"}, "to": {"type": "path", "path": "/home/alice/shop"}}'
    scene.planted(f'~/.config/nix/registry.json: {{"flakes": [{entry}]}}')
    with_nix(scene).plan("--package", "hello")


def nix_gone_at_the_last_moment(scene: Scene) -> None:
    host = scene.machine.host()
    scene.monkeypatch.setitem(pinned.PROGRAMS, "nix", "/nonexistent/nix")
    fetch_packages(host.replace(person=host.person.replace(home=str(scene.machine.root))), ["nixpkgs#hello"])


PROBLEMS: Problems = {
    "package-looks-like-an-option": (lambda scene: with_nix(scene).plan("--package=--impure"), FAILED),
    "package-of-an-unknown-scheme": (lambda scene: with_nix(scene).plan("--package", "ext::sh#x"), FAILED),
    "package-in-the-project": (lambda scene: with_nix(scene).plan("--package", ".#hello"), FAILED),
    "package-registered-in-the-project": (registry_leads_to_the_project, FAILED),
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
