"""What is said of the directory to work in, and of the home."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from claudebox.errors import FAILED
from claudebox.host import find_person, read_host
from claudebox.host.tree import Tree
from errors.scene import Problems, Scene


def working_directory_gone(scene: Scene) -> None:
    gone = scene.machine.root / "gone"
    gone.mkdir()
    scene.monkeypatch.chdir(gone)
    gone.rmdir()
    read_host()


def of_another_account(scene: Scene) -> None:
    scene.machine.uid = 0
    scene.machine.owners |= {"/home/alice": 1000, "/home/alice/shop": 1000}
    (scene.machine.root / "home/alice").chmod(0o700)
    scene.plan()


def config_that_fails(number: int) -> Callable[[Scene], None]:
    """Root can read everything, so that the failure is made up."""

    def how(scene: Scene) -> None:
        read = Tree._read

        def refuse(tree: Tree, path: str, limit: int, inode: int = 0) -> bytes | None:
            if path.endswith("/.git/config"):
                raise OSError(number, os.strerror(number))
            return read(tree, path, limit, inode)

        scene.monkeypatch.setattr(Tree, "_read", refuse)
        scene.planted("~/shop/.git/config: [core]").plan()

    return how


PROBLEMS: Problems = {
    "git-config-not-readable": (config_that_fails(errno.EACCES), FAILED),
    "git-config-with-a-lease": (config_that_fails(errno.EAGAIN), FAILED),
    "git-config-on-a-broken-disk": (config_that_fails(errno.EIO), FAILED),
    "git-config-in-a-circle": (lambda scene: scene.planted("~/shop/lib/.git/config -> config").plan(), FAILED),
    "git-config-is-no-file": (lambda scene: scene.planted("~/shop/lib/.git/config/").plan(), FAILED),
    "home-relative": (
        lambda scene: find_person(scene.machine.host().tree, 4242, 4242, "somewhere"),
        FAILED,
    ),
    "home-is-root": (lambda scene: scene.with_environ(HOME="/").plan(), FAILED),
    "project-home": (lambda scene: scene.in_directory("/home/alice").plan(), FAILED),
    "project-root": (lambda scene: scene.in_directory("/").plan(), FAILED),
    "project-above-home": (lambda scene: scene.in_directory("/home").plan(), FAILED),
    "project-broad": (lambda scene: scene.in_directory("/srv").plan(), FAILED),
    "project-system": (lambda scene: scene.in_directory("/usr/lib").plan(), FAILED),
    "project-secret": (lambda scene: scene.in_directory("/home/alice/.ssh").plan(), FAILED),
    "project-contains-secret": (lambda scene: scene.in_directory("/home/alice/.config").plan(), FAILED),
    "project-too-long": (lambda scene: scene.in_directory("/home/alice" + "/d" * 2000).plan(), FAILED),
    "project-control-characters": (lambda scene: scene.in_directory("/home/alice/a\x1b[2Jb").plan(), FAILED),
    "project-of-another-account": (of_another_account, FAILED),
    "working-directory-gone": (working_directory_gone, FAILED),
}
