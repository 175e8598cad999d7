"""What is said of a list of names."""

from __future__ import annotations

import os

from claudebox.errors import FAILED
from claudebox.features.names import act as names
from claudebox.features.names import namespace
from claudebox.model import Launch
from claudebox.process import isolation
from claudebox.settings.words import parse
from errors.scene import Problems, Scene, old_kernel, with_file


def allowed(scene: Scene, *hosts: str, option: str = "--allow") -> None:
    scene.planted("/usr/sbin/nft*")
    scene.plan("--network", "names", *(word for host in hosts for word in (option, host)))


def no_device(scene: Scene) -> None:
    def refuse(_: str) -> int:
        raise OSError(19, os.strerror(19))

    scene.monkeypatch.setattr(namespace, "enter_network_namespace", lambda *_: None)
    scene.monkeypatch.setattr(isolation, "apparmor_forbids", lambda: False)
    scene.monkeypatch.setattr("claudebox.features.names.namespace.socket.if_nametoindex", refuse)
    namespace.make_network("/usr/sbin/nft", ())


def process_ended(_: Scene) -> None:
    raise names.ended()


def names_on_old_kernel(scene: Scene) -> None:
    old_kernel(scene.planted("/usr/sbin/nft*"))
    names.beside(Launch(scene.machine.plan("--network", "names")))


PROBLEMS: Problems = {
    "names-old-kernel": (names_on_old_kernel, FAILED),
    "names-port-of-dns": (lambda scene: allowed(scene, "example.org:53"), FAILED),
    "names-no-host": (lambda scene: allowed(scene, "-x.example"), FAILED),
    "names-a-single-word": (lambda scene: allowed(scene, "nas"), FAILED),
    "names-not-ascii": (lambda scene: allowed(scene, "пример.example"), FAILED),
    "names-everything": (lambda scene: allowed(scene, "*"), FAILED),
    "names-a-whole-domain": (lambda scene: allowed(scene, "*.com"), FAILED),
    "names-localhost": (lambda scene: allowed(scene, "localhost:5432"), FAILED),
    "names-no-port": (lambda scene: allowed(scene, "example.org:https"), FAILED),
    "names-no-address": (lambda scene: allowed(scene, "1.2.3"), FAILED),
    "names-private-address": (lambda scene: allowed(scene, "192.168.1.5:5432"), FAILED),
    "names-unknown-group": (lambda scene: allowed(scene, "@nmp"), FAILED),
    "names-by-file": (lambda scene: allowed(with_file(scene, "allow = ['a b']")), FAILED),
    "names-with-another-tier": (lambda scene: scene.plan("--network", "none", "--allow", "example.org"), FAILED),
    "names-nobody-to-ask": (lambda scene: allowed(scene, "desktop", option="--ask"), FAILED),
    "names-nobody-to-ask-on-a-bus": (
        lambda scene: allowed(scene.planted("/usr/bin/notify-send*"), "desktop", option="--ask"),
        FAILED,
    ),
    "names-without-nft": (lambda scene: scene.plan("--network", "names"), FAILED),
    "names-without-a-device": (no_device, FAILED),
    "names-process-ended": (process_ended, FAILED),
    "names-suggest-alone": (lambda _: parse(["--suggest"]), FAILED),
    "names-log-for-claude": (lambda _: parse(["--network-log", "please"]), FAILED),
}
