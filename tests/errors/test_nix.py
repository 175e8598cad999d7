"""What is said of the Nix store, its daemon and packages."""

from claudebox import start
from claudebox.features.nix import NIX_FEATURE
from claudebox.features.nix import asking as asking_nix
from claudebox.features.nix.asking import fetch_packages
from claudebox.host import pinned
from claudebox.model import Question
from errors.scene import Problems, Scene
from hosts.machine import EVERYONE, Machine


def box_that_is_never_known(scene: Scene) -> None:
    """What Nix is asked about changes each time."""
    plan = scene.machine.plan().replace(unknown=(Question(NIX_FEATURE, "always the same"),))
    scene.monkeypatch.setattr(start, "decide", lambda _: plan)
    scene.monkeypatch.setattr(asking_nix, "find_out", lambda facts, _: facts)
    start.plan_until_known(scene.machine.facts())


def store_without_nix(scene: Scene) -> None:
    scene.without("/usr/bin/git").with_environ(PATH="/opt/nothing")
    asking_nix.look_up_closure(scene.machine.host(), ("/nix/store/x",))


def nix_without_programs(scene: Scene) -> None:
    machine = Machine(scene.machine.root / "nix-host", environ={"PATH": "/opt/bin"})
    machine.plant("/nix/store/x/\n/opt/bin/bwrap*\n/usr/bin/env*").plant(EVERYONE.read_text()).plan()


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
    "nix-closure-without-nix": store_without_nix,
    "nix-always-changes": box_that_is_never_known,
    "nix-no-daemon": lambda scene: scene.planted("/nix/store/x/").plan("--nix", "daemon"),
    "nix-no-store": lambda scene: scene.plan("--nix", "store"),
    "nix-without-programs": nix_without_programs,
    "package-looks-like-an-option": lambda scene: with_nix(scene).plan("--package=--impure"),
    "package-of-an-unknown-scheme": lambda scene: with_nix(scene).plan("--package", "ext::sh#x"),
    "package-in-the-project": lambda scene: with_nix(scene).plan("--package", ".#hello"),
    "package-registered-in-the-project": registry_leads_to_the_project,
    "package-without-nix": lambda scene: scene.plan("--package", "hello"),
    "package-without-store": lambda scene: scene.planted("/usr/bin/nix*").plan("--package", "hello"),
    "package-with-nix-off": lambda scene: with_nix(scene).plan("--package", "hello", "--nix", "off"),
    "package-nix-gone": nix_gone_at_the_last_moment,
}
