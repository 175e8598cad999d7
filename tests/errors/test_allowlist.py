"""What is said of the allowlist."""

from __future__ import annotations

import os

from claudebox.errors import FAILED
from claudebox.features.allowlist import act
from claudebox.model import Launch
from claudebox.process import isolation
from errors.scene import Problems, Scene, old_kernel, with_file
from saying import parse


def allowed(scene: Scene, *hosts: str, option: str = "--allow") -> None:
    scene.planted("/usr/sbin/nft*")
    scene.plan("--network", "allowlist", *(word for host in hosts for word in (option, host)))


def no_device(scene: Scene) -> None:
    def refuse(_: str) -> int:
        raise OSError(19, os.strerror(19))

    scene.monkeypatch.setattr(act, "enter_network_namespace", lambda *_: None)
    scene.monkeypatch.setattr(isolation, "apparmor_forbids", lambda: False)
    scene.monkeypatch.setattr("claudebox.features.allowlist.act.socket.if_nametoindex", refuse)
    act.make_network("/usr/sbin/nft", ())


def process_ended(_: Scene) -> None:
    raise act.ended()


def on_old_kernel(scene: Scene) -> None:
    old_kernel(scene.planted("/usr/sbin/nft*"))
    act.beside(Launch(scene.machine.plan("--network", "allowlist")))


PROBLEMS: Problems = {
    "allowlist-old-kernel": (on_old_kernel, FAILED),
    "allowlist-port-of-dns": (lambda scene: allowed(scene, "example.org:53"), FAILED),
    "allowlist-no-host": (lambda scene: allowed(scene, "-x.example"), FAILED),
    "allowlist-a-single-word": (lambda scene: allowed(scene, "nas"), FAILED),
    "allowlist-not-ascii": (lambda scene: allowed(scene, "пример.example"), FAILED),
    "allowlist-everything": (lambda scene: allowed(scene, "*"), FAILED),
    "allowlist-a-whole-domain": (lambda scene: allowed(scene, "*.com"), FAILED),
    "allowlist-localhost": (lambda scene: allowed(scene, "localhost:5432"), FAILED),
    "allowlist-no-port": (lambda scene: allowed(scene, "example.org:https"), FAILED),
    "allowlist-no-address": (lambda scene: allowed(scene, "1.2.3"), FAILED),
    "allowlist-private-address": (lambda scene: allowed(scene, "192.168.1.5:5432"), FAILED),
    "allowlist-unknown-group": (lambda scene: allowed(scene, "@nmp"), FAILED),
    "allowlist-by-file": (lambda scene: allowed(with_file(scene, "allow = ['a b']")), FAILED),
    "allowlist-with-another-tier": (lambda scene: scene.plan("--network", "none", "--allow", "example.org"), FAILED),
    "allowlist-nobody-to-ask": (lambda scene: allowed(scene, "desktop", option="--ask"), FAILED),
    "allowlist-nobody-to-ask-on-a-bus": (
        lambda scene: allowed(scene.planted("/usr/bin/notify-send*"), "desktop", option="--ask"),
        FAILED,
    ),
    "allowlist-old-name": (lambda scene: scene.plan("--network", "names"), FAILED),
    "allowlist-old-name-in-a-file": (lambda scene: with_file(scene, "network = 'names'").plan(), FAILED),
    "allowlist-without-nft": (lambda scene: scene.plan("--network", "allowlist"), FAILED),
    "allowlist-without-a-device": (no_device, FAILED),
    "allowlist-process-ended": (process_ended, FAILED),
    "allowlist-suggest-alone": (lambda _: parse(["--suggest"]), FAILED),
    "allowlist-log-for-claude": (lambda _: parse(["--network-log", "please"]), FAILED),
}
