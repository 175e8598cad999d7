"""What is said of the project, of the home, and of what claudebox keeps there."""

import errno
import os
from collections.abc import Callable

from claudebox.commands import history, kept
from claudebox.files import prepare
from claudebox.host import find_person, read_host
from claudebox.host.tree import Tree
from claudebox.model import Preparation
from claudebox.state import Instance, State
from errors.scene import STATE_OF_SHOP, Problems, Scene
from saying import parse


def state_with(scene: Scene, name: str) -> None:
    """The state of the project holds this, and belongs to the user."""
    scene.machine.uid = os.getuid()
    scene.planted(f"{STATE_OF_SHOP}/{name}").plan()


def of_another(scene: Scene, name: str) -> None:
    lstat = Tree.lstat

    def belongs_to_bob(tree: Tree, path: str) -> os.stat_result | None:
        status = lstat(tree, path)
        return status and os.stat_result((*status[:4], 1001 if name in path else status[4], *status[5:]))

    scene.monkeypatch.setattr(Tree, "lstat", belongs_to_bob)
    scene.planted(f"{STATE_OF_SHOP}/claude/").plan()


def state_that_others_can_write(scene: Scene) -> None:
    scene.planted("~/.claudebox/")
    (scene.machine.root / "home/alice/.claudebox").chmod(0o707)
    scene.plan()


def state_cannot_be_written(scene: Scene) -> None:
    prepare((Preparation(Preparation.FILE, "/dev/null/state"),))


def refused_to_remove(scene: Scene) -> None:
    gone = kept.Listed(Instance("/x", ""), "/home/alice/gone", 0.0, kept.Size(0), True)
    scene.monkeypatch.setattr(kept, "find_instances", lambda _: [gone])
    scene.monkeypatch.setattr(kept, "show", lambda _: None)
    scene.monkeypatch.setattr(kept, "says_yes", lambda _: False)
    kept.tend_instances(parse(["--instances", "gc"]))


def failed_to_remove(scene: Scene) -> None:
    def refuse(_: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    scene.monkeypatch.setattr(kept, "remove_path", refuse)
    kept.remove("/nonexistent/instance")


KEPT = "/home/alice/.claudebox"


def refused_to_drop(scene: Scene) -> None:
    full = kept.Listed(Instance("/x", ""), "/home/alice/shop", 0.0, kept.Size(0), False, cache=kept.Size(1 << 30))
    scene.monkeypatch.setattr(kept, "find_instances", lambda _: [full])
    scene.monkeypatch.setattr(kept, "show", lambda _: None)
    scene.monkeypatch.setattr(kept, "says_yes", lambda _: False)
    kept.tend_instances(parse(["--instances", "drop-caches"]))


def old_bwrap(scene: Scene) -> None:
    scene.planted("/opt/bwrap*: \x7fELF bwrap without that option").with_environ(CLAUDEBOX_BWRAP="/opt/bwrap")
    scene.plan("--tmp-size", "1G")


def uninstalled(scene: Scene, kind: str, *, is_running: bool = False) -> None:
    """What is looked at in the place of Alice's state is something of this test."""
    stand_in = scene.machine.root / "stand-in"
    stand_in.symlink_to("/nowhere") if kind == "link" else stand_in.touch() if kind == "file" else stand_in.mkdir()
    host, lstat = scene.machine.host(), os.lstat
    own = host.replace(person=host.person.replace(uid=os.getuid()))
    scene.monkeypatch.setattr(os, "lstat", lambda path, **how: lstat(stand_in if path == KEPT else path, **how))
    scene.monkeypatch.setattr(os.path, "realpath", lambda _: "/home/alice/elsewhere")
    scene.monkeypatch.setattr(kept, "read_host", lambda: own)
    shop = kept.Listed(Instance(str(scene.machine.root), ""), "/home/alice/shop", 0.0, kept.Size(0), False)
    (scene.machine.root / "masks").mkdir()
    scene.monkeypatch.setattr(kept, "take_lock", lambda _: not is_running)
    scene.monkeypatch.setattr(kept, "find_instances", lambda _: [shop])
    scene.monkeypatch.setattr(kept, "show", lambda _: None)
    scene.monkeypatch.setattr(kept, "says_yes", lambda _: False)
    kept.uninstall(parse(["--uninstall"]))


def cannot_be_uninstalled(scene: Scene) -> None:
    def refuse(_: int) -> list[str]:
        raise OSError(13, os.strerror(13))

    scene.monkeypatch.setattr(os, "listdir", refuse)
    kept.remove(State("/home/alice").directory, from_within=True)


def working_directory_gone(scene: Scene) -> None:
    gone = scene.machine.root / "gone"
    gone.mkdir()
    scene.monkeypatch.chdir(gone)
    gone.rmdir()
    read_host()


def history_from_where_agents_work(scene: Scene) -> None:
    host = scene.planted("~/shop/claude/projects/\n~/.claude/projects -> ~/shop/claude/projects").machine.host()
    scene.monkeypatch.setattr(history, "read_host", lambda: host)
    history.import_history()


def history_cannot_be_copied(scene: Scene) -> None:
    history._copy("/nowhere/x.jsonl", State("/home/alice").instance_called("0123456789abcdef"))


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
    "history-from-where-agents-work": history_from_where_agents_work,
    "history-not-copied": history_cannot_be_copied,
    "instance-stays": failed_to_remove,
    "instances-not-removed": refused_to_remove,
    "state-of-0.2.0": lambda scene: scene.planted("~/.local/state/claudebox/places").plan(),
    "settings-of-0.2.0": lambda scene: scene.planted("~/.config/claudebox/config.toml").plan(),
    "state-damaged": lambda scene: state_with(scene, 'claude/.claude.json: {"half":'),
    "state-nested": lambda scene: state_with(scene, 'claude/.claude.json: {"a":' + "[" * 9000 + "}"),
    "state-note-damaged": lambda scene: state_with(scene, "writable-x: /home/ali"),
    "state-no-directory": lambda scene: scene.planted("~/.claudebox: a file").plan(),
    "state-behind-a-symlink": lambda scene: scene.planted("~/.claudebox -> /data\n/data/").plan(),
    "state-of-another": lambda scene: of_another(scene, "/instances"),
    "settings-of-another": lambda scene: of_another(scene, "/.claudebox"),
    "state-open": state_that_others_can_write,
    "state-unreadable": lambda scene: state_with(scene, "claude/.claude.json/"),
    "state-unwritable": state_cannot_be_written,
    "uninstall-without-permission": cannot_be_uninstalled,
    "uninstall-of-a-link": lambda scene: uninstalled(scene, "link"),
    "uninstall-of-a-file": lambda scene: uninstalled(scene, "file"),
    "uninstall-of-a-running-box": lambda scene: uninstalled(scene, "directory", is_running=True),
    "uninstall-refused": lambda scene: uninstalled(scene, "directory"),
    "json-of-what-prints-none": lambda _: parse(["--uninstall", "--json"]),
    "cache-without-state": lambda scene: scene.planted("~/.claudebox: a file").plan(
        "--cache", "project", "--run", "true"
    ),
    "cache-not-dropped": refused_to_drop,
    "tmp-size-with-an-old-bwrap": old_bwrap,
    "git-config-not-readable": config_that_fails(errno.EACCES),
    "git-config-with-a-lease": config_that_fails(errno.EAGAIN),
    "git-config-on-a-broken-disk": config_that_fails(errno.EIO),
    "git-config-in-a-circle": lambda scene: scene.planted("~/shop/lib/.git/config -> config").plan(),
    "git-config-is-no-file": lambda scene: scene.planted("~/shop/lib/.git/config/").plan(),
    "home-relative": lambda scene: find_person(scene.machine.host().tree, 4242, 4242, "somewhere"),
    "home-is-root": lambda scene: scene.with_environ(HOME="/").plan(),
    "project-home": lambda scene: scene.in_directory("/home/alice").plan(),
    "project-root": lambda scene: scene.in_directory("/").plan(),
    "project-above-home": lambda scene: scene.in_directory("/home").plan(),
    "project-broad": lambda scene: scene.in_directory("/srv").plan(),
    "project-system": lambda scene: scene.in_directory("/usr/lib").plan(),
    "project-secret": lambda scene: scene.in_directory("/home/alice/.ssh").plan(),
    "project-contains-secret": lambda scene: scene.in_directory("/home/alice/.config").plan(),
    "project-too-long": lambda scene: scene.in_directory("/home/alice" + "/d" * 2000).plan(),
    "project-control-characters": lambda scene: scene.in_directory("/home/alice/a\x1b[2Jb").plan(),
    "project-of-another-account": of_another_account,
    "working-directory-gone": working_directory_gone,
}
