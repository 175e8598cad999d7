"""What is said of mounts, of places that are kept out, and of secrets that cannot be masked."""

import os

from claudebox import files
from claudebox.features.secrets import Judging, decoys, finding, keeper
from claudebox.host import walk
from claudebox.model import RW, Launch, Mount, Origin
from claudebox.sandbox import gate, judge, parent
from errors.scene import Problems, Scene, with_file, with_project_file


def bwrap_failed(_: Scene) -> None:
    raise parent.not_made()


def what_the_law_does_not_allow(_: Scene) -> None:
    shown = [f"/opt/{name} shows /home/alice/.{name}: secret" for name in ("ssh", "gnupg", "aws", "kube", "age", "op")]
    raise judge.refusal(*shown)


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


def too_many_in_the_root(scene: Scene) -> None:
    scene.monkeypatch.setattr(finding, "MOST_MASKS", 1)
    scene.planted("~/shop/.env: KEY=hunter2one\n~/shop/prod.env: KEY=hunter2two").plan()


def no_value_of_that_name(scene: Scene) -> None:
    scene.planted("~/shop/.env: PORT=1\\nDB_PASSWORD=hunter2one\\n").plan("--reveal", ".env:DB_PASS")


def no_value_in_a_key_file(scene: Scene) -> None:
    scene.planted("~/shop/.netrc: machine x password hunter2one").plan("--reveal", ".netrc:other")


def no_place_for_decoys(scene: Scene) -> None:
    plan = scene.planted("~/shop/.env: KEY=hunter2one").machine.plan()
    assert plan.state is not None
    decoys.beside(Launch(plan.replace(state=plan.state.replace(directory="/proc/self"))))


def reveal_through_a_link(scene: Scene) -> None:
    scene.planted("~/shop/.env: DB_PASSWORD=hunter2one\\n\n~/shop/dev.env -> .env").plan("--reveal", "dev.env")


def another_name_not_found(scene: Scene) -> None:
    scene.planted("~/shop/.env: KEY=hunter2one")
    env = scene.machine.root / "home/alice/shop/.env"
    os.link(env, env.parent / "notes.txt")
    scene.monkeypatch.setattr(walk, "MOST_ENTRIES_SEARCHED", 0)
    scene.plan()


def too_many_directories(scene: Scene) -> None:
    scene.monkeypatch.setattr(walk, "MOST_DIRECTORIES", 2)
    scene.planted("~/shop/data/1/2/3/x: 1").plan()


def too_many_closed(scene: Scene) -> None:
    scene.monkeypatch.setattr(walk, "DEEPEST", 2)
    scene.monkeypatch.setattr(finding, "MOST_MASKS", 0)
    scene.planted("~/shop/1/2/x: 1").plan()


def keeping(scene: Scene) -> decoys.Keeping:
    judging = scene.machine.plan().get(Judging)
    assert judging is not None
    return decoys.Keeping(str(scene.machine.root), "/", "/", {}, (), judging, 2, False)


def no_inotify(scene: Scene) -> None:
    given = keeping(scene)
    scene.monkeypatch.setattr(keeper, "c_call", lambda *_: -1)
    keeper.Hand(given, 2)


def no_watch(scene: Scene) -> None:
    given, call = keeping(scene).replace(project="/tmp"), files.c_call
    refusing = lambda name, *words: -1 if name == "inotify_add_watch" else call(name, *words)  # noqa: E731
    scene.monkeypatch.setattr(keeper, "c_call", refusing)
    keeper.Hand(given, 2)


def no_way_into_the_box(scene: Scene) -> None:
    box = keeper.Box(keeping(scene), os.open("/", os.O_PATH))
    scene.monkeypatch.setattr(keeper, "enter_as_owner", lambda *_: False)
    box.enter("/proc/self/ns/mnt")


def no_mask(scene: Scene) -> None:
    box = keeper.Box(keeping(scene), os.open("/", os.O_PATH))
    box.decoys = os.open(scene.machine.root, os.O_PATH)
    (scene.machine.root / "0").touch()
    scene.monkeypatch.setattr(keeper, "c_call", lambda *_: -1)
    scene.monkeypatch.setattr(box, "places_of", lambda _: [box.decoys])
    (scene.machine.root / ".env").touch()
    box.cover("/home/.env", 0)


def keeper_says(scene: Scene, said: bytes) -> None:
    plan = scene.planted("~/shop/.env: KEY=hunter2one").machine.plan()
    scene.monkeypatch.setattr(os, "write", lambda *_: 0)
    scene.monkeypatch.setattr(os, "read", lambda *_: said)
    launch = Launch(plan)
    launch.keep(decoys.Kept("/", 2))
    decoys.made(launch, "/proc/1/root")


def keeper_ended(scene: Scene) -> None:
    keeper_says(scene, b"")


def keeper_failed(scene: Scene) -> None:
    keeper_says(scene, b"the kernel does not\0claudebox --check")


PROBLEMS: Problems = {
    "mount-drawer": lambda scene: drawer(scene).plan("--mount-ro", "~/.config"),
    "mount-drawer-through-symlink": lambda scene: drawer(scene).plan("--", "--add-dir", "~/cfg"),
    "mount-drawer-by-file": lambda scene: with_file(drawer(scene), "mounts = [{ host = '~/cfg' }]").plan(),
    "mount-above-a-drawer": lambda scene: (
        drawer(scene).with_environ(XDG_CONFIG_HOME="/data/config/").plan("--mount-ro", "/data")
    ),
    "git-led-elsewhere": git_led_elsewhere,
    "guard-too-much": too_much_to_guard,
    "source-replaced": source_replaced,
    "hide-all-programs": lambda scene: scene.plan("--hide", "/usr"),
    "hide-all-libraries": lambda scene: scene.planted("/lib64/ld-linux.so.2").plan("--hide", "/lib64"),
    "hide-all-programs-by-the-project": lambda scene: with_project_file(scene, "hide = ['/bin']").plan(),
    "hide-project": lambda scene: scene.plan("--hide", "."),
    "hide-above-project-by-file": lambda scene: with_file(scene, "hide = ['~']").plan(),
    "mount-that-bwrap-cannot-make": bwrap_failed,
    "what-the-law-does-not-allow": what_the_law_does_not_allow,
    "mount-missing": lambda scene: scene.plan("--mount-ro", "/srv/gone"),
    "mount-missing-by-file": lambda scene: with_file(scene, "mounts = [{ host = '~/gone' }]").plan(),
    "mount-secret-by-file": lambda scene: with_file(scene, "mounts = [{ host = '~/.ssh' }]").plan(),
    "mount-turned-by-an-agent": mount_turned_by_an_agent,
    "mount-without-path": lambda scene: scene.plan("--mount-ro", ":/srv"),
    "mount-home": lambda scene: scene.plan("--mount-ro", "~"),
    "mount-root": lambda scene: scene.plan("--mount-ro", "/"),
    "mount-secret": lambda scene: scene.plan("--mount-ro", "~/.ssh"),
    "mount-inside-secret": lambda scene: scene.plan("--mount-ro", "~/.ssh/id_ed25519"),
    "mount-secret-through-symlink": lambda scene: scene.planted("~/keys -> .ssh").plan("--mount-ro", "~/keys"),
    "mount-system-writable": lambda scene: scene.plan("--mount-rw", "/usr/lib"),
    "mount-over-passwd": lambda scene: scene.plan("--mount-ro", "~/other/notes.txt:/etc/passwd"),
    "mount-over-passwd-in-another-spelling": lambda scene: scene.plan("--mount-ro", "~/other/notes.txt://etc/passwd"),
    "mount-destination-missing": lambda scene: scene.plan("--mount-ro", "~/other:/usr/gone"),
    "mount-file-over-directory": lambda scene: scene.plan("--mount-ro", "~/other/notes.txt:/usr/lib"),
    "project-secrets-keeper-inotify": no_inotify,
    "project-secrets-keeper-watch": no_watch,
    "project-secrets-keeper-box": no_way_into_the_box,
    "project-secrets-keeper-mask": no_mask,
    "project-secrets-keeper-ended": keeper_ended,
    "project-secrets-keeper-failed": keeper_failed,
    "project-secrets-another-name": another_name_not_found,
    "project-secrets-directories": too_many_directories,
    "project-secrets-deep": too_many_closed,
    "project-secrets-behind-a-link": reveal_through_a_link,
    "project-secrets-no-place": no_place_for_decoys,
    "project-secrets-no-such-value": no_value_of_that_name,
    "project-secrets-no-values": no_value_in_a_key_file,
    "project-secrets-masks": too_many_in_the_root,
}
