"""What is said of mounts, and of places that are kept out."""

from __future__ import annotations

import os

from claudebox.errors import FAILED
from claudebox.model import RW, Mount, Origin
from claudebox.sandbox import gate
from errors.scene import Problems, Scene, with_file, with_project_file


def source_replaced(scene: Scene) -> None:
    directory = scene.machine.root / "real"
    directory.mkdir()
    (scene.machine.root / "link").symlink_to(directory)
    path = "/home/alice/shop"
    scene.monkeypatch.setattr(
        gate, "open_without_symlinks", lambda _: os.open(scene.machine.root / "link", os.O_PATH | os.O_NOFOLLOW)
    )
    status = os.stat(directory)
    mount = Mount(RW, path, Origin.of_rule("project"), source=path, identity=(status.st_dev, status.st_ino))
    gate.expect((mount,), None)


def mount_turned_by_an_agent(scene: Scene) -> None:
    scene.planted("~/shop/data -> ~/other")
    with_file(scene, "mounts = [{ host = 'data' }]").plan()


def too_much_to_guard(scene: Scene) -> None:
    scene.planted("\n".join(f"~/shop/{number}/.envrc" for number in range(1001))).plan()


def git_led_elsewhere(scene: Scene) -> None:
    scene.planted("~/shop/.git/logs/HEAD -> ~/.bashrc\n~/shop/.git/index -> ~/.profile").plan()


def drawer(scene: Scene) -> Scene:
    return scene.planted("~/.config/gh/hosts.yml\n~/.config/nvim/init.lua\n~/cfg -> .config\n/data/config/x")


PROBLEMS: Problems = {
    "mount-drawer": (lambda scene: drawer(scene).plan("--mount-ro", "~/.config"), FAILED),
    "mount-drawer-through-symlink": (lambda scene: drawer(scene).plan("--", "--add-dir", "~/cfg"), FAILED),
    "mount-drawer-by-file": (lambda scene: with_file(drawer(scene), "mounts = [{ host = '~/cfg' }]").plan(), FAILED),
    "mount-above-a-drawer": (
        lambda scene: drawer(scene).with_environ(XDG_CONFIG_HOME="/data/config/").plan("--mount-ro", "/data"),
        FAILED,
    ),
    "writable-without-a-path": (lambda scene: scene.plan("--writable", ""), FAILED),
    "git-led-elsewhere": (git_led_elsewhere, FAILED),
    "guard-too-much": (too_much_to_guard, FAILED),
    "source-replaced": (source_replaced, FAILED),
    "hide-project": (lambda scene: scene.plan("--hide", "."), FAILED),
    "hide-all-programs": (lambda scene: scene.plan("--hide", "/usr"), FAILED),
    "hide-all-libraries": (lambda scene: scene.planted("/lib64/ld-linux.so.2").plan("--hide", "/lib64"), FAILED),
    "hide-all-programs-by-the-project": (lambda scene: with_project_file(scene, "hide = ['/bin']").plan(), FAILED),
    "hide-above-project-by-file": (lambda scene: with_file(scene, "hide = ['~']").plan(), FAILED),
    "mount-missing": (lambda scene: scene.plan("--mount-ro", "/srv/gone"), FAILED),
    "mount-missing-by-file": (lambda scene: with_file(scene, "mounts = [{ host = '~/gone' }]").plan(), FAILED),
    "mount-secret-by-file": (lambda scene: with_file(scene, "mounts = [{ host = '~/.ssh' }]").plan(), FAILED),
    "mount-turned-by-an-agent": (mount_turned_by_an_agent, FAILED),
    "mount-without-path": (lambda scene: scene.plan("--mount-ro", ""), FAILED),
    "mount-home": (lambda scene: scene.plan("--mount-ro", "~"), FAILED),
    "mount-root": (lambda scene: scene.plan("--mount-ro", "/"), FAILED),
    "mount-secret": (lambda scene: scene.plan("--mount-ro", "~/.ssh"), FAILED),
    "mount-inside-secret": (lambda scene: scene.plan("--mount-ro", "~/.ssh/id_ed25519"), FAILED),
    "mount-secret-through-symlink": (
        lambda scene: scene.planted("~/keys -> .ssh").plan("--mount-ro", "~/keys"),
        FAILED,
    ),
    "mount-system-writable": (lambda scene: scene.plan("--mount-rw", "/usr/lib"), FAILED),
    "mount-over-passwd": (lambda scene: scene.plan("--mount-ro", "~/other/notes.txt:/etc/passwd"), FAILED),
    "mount-over-passwd-in-another-spelling": (
        lambda scene: scene.plan("--mount-ro", "~/other/notes.txt://etc/passwd"),
        FAILED,
    ),
    "mount-destination-missing": (lambda scene: scene.plan("--mount-ro", "~/other:/usr/gone"), FAILED),
    "mount-file-over-directory": (lambda scene: scene.plan("--mount-ro", "~/other/notes.txt:/usr/lib"), FAILED),
}
