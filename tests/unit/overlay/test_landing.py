"""A landing is whole or nothing, whenever and however it is ended."""

import contextlib
import itertools
import os
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from claudebox import files
from claudebox.commands.review import _discard
from claudebox.errors import Problem
from claudebox.overlay import landing, store
from claudebox.overlay.landing import Operation, _Landing, land
from conftest import CHECKOUT
from unit.overlay.world import World, make_world, picture, wait_for_the_clock

pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.attributes]

PROJECT = {
    "a.txt": "a\n",
    "b.txt": "b\n",
    "gone.txt": "gone\n",
    "old/one": "1\n",
    "old/deep/two": "2\n",
    "swap": "a file\n",
    "dir/x": "x\n",
    "replaced/y": "y\n",
    "replaced/z": "z\n",
    "tool.sh": "#!/bin/sh\n",
}


def with_every_kind(tmp_path: Path) -> World:
    """A layer with a change of every kind."""
    world = make_world(tmp_path, PROJECT)
    world.write("a.txt", "changed\n")
    world.whiteout("gone.txt")
    world.whiteout("old")
    world.opaque("swap")  # a file that became a directory
    world.write("swap/inner", "inner\n")
    world.write("new/deep/file", "new\n", 0o600)
    os.symlink("deep/file", world.upper / "new/link")
    os.symlink("a.txt", world.upper / "link")
    world.write("dir", "a directory that became a file\n")
    world.opaque("replaced")
    world.write("replaced/z", "Z\n")
    world.write("tool.sh", PROJECT["tool.sh"], 0o755)
    return world


def is_effect(event: str) -> bool:
    return event.startswith("os.") or event in ("open", "ctypes.call_function")


def killed_at(moment: int, deed: Callable[[], None]) -> bool:
    """Do it in another process, which the kernel kills at a moment: before its n-th effect. False if it was done."""
    child = os.fork()
    if child == 0:
        count = 0

        def watch(event: str, _: object) -> None:
            nonlocal count
            if is_effect(event):
                count += 1
                if count == moment:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(watch)
            deed()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status != 0


def without_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system that cannot exchange two names."""
    monkeypatch.setattr(files, "c_call", lambda *_: -1)


def on_two_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the project were on another file system than the state, so that the stage is in the project."""
    numbers = itertools.count()
    monkeypatch.setattr(files, "mount_number", lambda _: str(next(numbers)))


def usual(_: pytest.MonkeyPatch) -> None:
    """The state and the project are on one file system, which can exchange two names."""


def test_every_kind_of_change_lands(tmp_path: Path) -> None:
    world = with_every_kind(tmp_path)
    assert world.kinds() == {
        "a.txt": "changed",
        "dir": "changed",
        "gone.txt": "deleted",
        "link": "added",
        "new": "added",
        "new/deep": "added",
        "new/deep/file": "added",
        "new/link": "added",
        "old": "deleted",
        "replaced/y": "deleted",
        "replaced/z": "changed",
        "swap": "added",
        "swap/inner": "added",
        "tool.sh": "changed",
    }
    world.land()
    found = {name: content for name, (mode, content) in picture(world.project).items() if content}
    assert found == {
        "a.txt": "changed\n",
        "b.txt": "b\n",
        "dir": "a directory that became a file\n",
        "link": "a.txt",
        "new/deep/file": "new\n",
        "new/link": "deep/file",
        "replaced/z": "Z\n",
        "swap/inner": "inner\n",
        "tool.sh": "#!/bin/sh\n",
    }
    assert (world.project / "tool.sh").stat().st_mode & 0o777 == 0o755
    assert (world.project / "new/deep/file").stat().st_mode & 0o777 == 0o600
    assert world.again().changes() == []
    assert sorted(os.listdir(world.layer.directory)) == ["note", "upper", "work"]


@pytest.mark.long
@pytest.mark.slow("a process for each moment")
@pytest.mark.parametrize(
    ("ground", "step"),
    [
        (usual, 3),
        pytest.param(usual, 1, marks=pytest.mark.exhaustive("the moments in between")),
        pytest.param(without_exchange, 1, marks=pytest.mark.exhaustive("the same on old file systems")),
        pytest.param(on_two_disks, 1, marks=pytest.mark.exhaustive("the same if the state is on another disk")),
    ],
)
def test_killed_at_any_moment_it_is_whole_or_nothing(
    tmp_path: Path, ground: Callable[[pytest.MonkeyPatch], None], step: int
) -> None:
    """In a small process: of a worker with thousands of tests, each of the hundreds of forks takes a while."""
    arguments = f"it.{ground.__name__}, {str(tmp_path)!r}, {step}"
    words = f"from unit.overlay import test_landing as it; it.try_each_moment({arguments})"
    path = f"{CHECKOUT}/src:{CHECKOUT}/tests"
    done = subprocess.run(
        [sys.executable, "-c", words], env={"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def try_each_moment(ground: Callable[[pytest.MonkeyPatch], None], place: str, step: int) -> None:
    ground(pytest.MonkeyPatch())
    tmp_path = Path(place)
    (tmp_path / "model").mkdir()
    model = with_every_kind(tmp_path / "model")
    before = picture(model.project)
    model.land()
    after = picture(model.project)
    moment, outcomes = 0, set()
    while True:
        moment += step
        (tmp_path / str(moment)).mkdir()
        world = with_every_kind(tmp_path / str(moment))
        if not killed_at(moment, world.land):
            break
        # The one who recovers is killed, too: at a moment that is another one each time.
        killed_at(1 + moment % 23, world.recover)
        world = world.again()
        world.recover()
        found = picture(world.project)
        assert found in (before, after), moment
        outcomes.add(found == after)
        assert not os.path.lexists(world.layer.journal)
        world.land()  # nothing looks like a conflict, and nothing of the layer is lost
        assert picture(world.project) == after, moment
    assert moment > 60
    assert outcomes == {True, False}


def test_file_too_large_lands_nothing(tmp_path: Path) -> None:
    """A full disk, a quota and a limit look the same from here."""
    world = with_every_kind(tmp_path)
    world.write("z-large", "x" * 4096 * 16)
    before = picture(world.project)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096 * 8, limit[1]))
    try:
        with pytest.raises(Problem, match="nothing has landed: z-large: File too large"):
            world.land()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert picture(world.project) == before
    world.again().land()


def test_change_between_look_and_landing_lands_nothing(tmp_path: Path) -> None:
    world = with_every_kind(tmp_path)
    chosen = world.changes()
    (world.project / "tool.sh").write_text("the host's\n")
    before = picture(world.project)
    with pytest.raises(Problem, match=r"nothing has landed: tool\.sh: it was changed on this host a moment ago"):
        land(world.layer, chosen, 2**62)
    assert picture(world.project) == before
    assert [change.path for change in world.again().changes() if change.is_conflict] == ["tool.sh"]


def test_what_the_user_does_while_it_lands_is_not_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was ended half-way. Until it is put back, people go on with what they find, for days if nobody comes back."""
    world = with_every_kind(tmp_path)
    world.write("z-last", "last\n")
    move = _Landing.move

    def stop_at_the_last(self: _Landing, number: int, operation: Operation) -> None:
        if operation.change.path != "z-last":
            return move(self, number, operation)
        for path in ("a.txt", "new/deep/file"):
            with (world.project / path).open("a") as file:
                file.write("the user's\n")
        for path in ("gone.txt", "swap/own", "old"):
            (world.project / path).write_text("the user's\n")
        (tmp_path / "saved").write_text("the user's\n")
        (tmp_path / "saved").rename(world.project / "tool.sh")
        raise OSError(5, "it failed")

    monkeypatch.setattr(_Landing, "move", stop_at_the_last)
    with pytest.raises(Problem, match="it failed"):
        world.land()
    found = {path: text for path, (_, text) in picture(world.project).items()}
    users = {path for path, text in found.items() if text.endswith("the user's\n")}
    assert users == {"a.txt", "new/deep/file", "gone.txt", "swap/own", "old", "tool.sh"}
    for path in ("a.txt", "gone.txt", "swap", "tool.sh"):
        assert found[f"{path}.before-landing"] == PROJECT[path]
    assert found["old.before-landing/deep/two"] == "2\n"
    assert found["dir/x"] == "x\n"
    assert "link" not in found
    monkeypatch.undo()
    assert not os.path.lexists(world.layer.journal)
    assert {"a.txt", "new/deep/file"} < {change.path for change in world.again().changes() if change.is_conflict}


@pytest.mark.parametrize("change", ["old/deep/two", "old/deep/three"])
def test_directory_that_got_something_meanwhile_is_not_deleted(tmp_path: Path, change: str) -> None:
    world = with_every_kind(tmp_path)
    (world.project / change).write_text("the host's\n")
    assert [one.path for one in world.changes() if one.is_conflict] == ["old"]


def test_directory_that_the_user_has_put_there_meanwhile_is_not_deleted(tmp_path: Path) -> None:
    """What is in it is older than the layer. Only the directory itself tells that it is another one."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/precious").write_text("the host's\n")
    world = with_every_kind(tmp_path)
    (world.project / "old").rename(tmp_path / "moved")
    (tmp_path / "mine").rename(world.project / "old")
    assert [one.path for one in world.changes() if one.is_conflict] == ["old"]


def test_file_in_a_directory_that_the_user_has_put_there_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    world = make_world(tmp_path, {"sub/f": "f\n", "mine/f": "the host's\n", "other/f": "f\n"})
    for path in ("sub/f", "sub/g", "other/f"):
        world.write(path, "the box's\n")
    (world.project / "sub").rename(tmp_path / "moved")
    (world.project / "mine").rename(world.project / "sub")
    (world.project / "new").touch()  # that is no reason to doubt what is beside it
    (world.project / "other/new").touch()
    found = {change.path: change.is_conflict for change in world.changes()}
    assert found == {"sub/f": True, "sub/g": True, "other/f": False}


@pytest.mark.parametrize("name", ["mine", "moved"])
def test_project_that_the_user_has_put_there_meanwhile_is_not_overwritten(tmp_path: Path, name: str) -> None:
    """All that is in it is older than the layer. But a project that was away for a while is the same."""
    for path in ("a.txt", "gone.txt", "old/one"):
        (tmp_path / "mine" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / path).write_text("the host's\n")
    world = with_every_kind(tmp_path)
    world.project.rename(tmp_path / "moved")
    (tmp_path / name).rename(world.project)
    (world.project / "own").touch()
    changes = world.again().changes()
    assert {"a.txt", "gone.txt", "old", "new"} < {one.path for one in changes}
    assert {one.is_conflict for one in changes} == {name == "mine"}


def test_mode_of_a_directory_that_only_leads_to_a_layer_is_the_hosts(tmp_path: Path) -> None:
    """An ordinary box changes it on the host itself. The layer has it as it was, and must not bring that back."""
    project = make_world(tmp_path, {"sub/.github/f": "f\n"}).project
    layer = store.make_layer(str(tmp_path / "layers"), str(project), "", ("sub/.github",))
    world = World(project, str(tmp_path / "layers"), layer)
    (project / "sub").chmod(0o700)
    assert world.kinds() == {}
    (world.upper / "sub/.github").chmod(0o700)
    assert world.kinds() == {"sub/.github": "mode"}


@pytest.mark.parametrize("is_hosts", [False, True])
def test_directory_in_which_something_landed_has_no_conflict_with_itself(tmp_path: Path, is_hosts: bool) -> None:
    """A layer that is kept goes on. What the landing did to the directories around it nobody else has done."""
    world = make_world(tmp_path, {"gone/deep/f": "f\n", "gone/g": "g\n", "gone/old": "o\n", "mode/f": "f\n"})
    world.write("gone/deep/f", "one\n")
    world.write("gone/g", "one\n")
    world.whiteout("gone/old")
    world.write("mode/new", "one\n")
    if is_hosts:
        for path in ("gone/deep", "mode"):
            (world.project / path / "tried").touch()
            (world.project / path / "tried").unlink()
    wait_for_the_clock()
    world.land()
    wait_for_the_clock()
    for path in ("gone/deep", "gone"):
        (world.upper / path).rmdir()
    world.whiteout("gone")
    (world.upper / "mode").chmod(0o700)
    found = {change.path: (change.kind, change.is_conflict) for change in world.again().changes()}
    assert found == {"gone": ("deleted", is_hosts), "mode": ("mode", is_hosts)}


def test_symlink_on_the_way_is_not_followed(tmp_path: Path) -> None:
    """Another box puts a symlink in the place of a directory while this one lands."""
    world = make_world(tmp_path, {"sub/f": "f\n"})
    outside = tmp_path / "outside"
    outside.mkdir()
    world.write("sub/f", "evil\n")
    world.write("sub/g", "evil\n")
    chosen = world.changes()
    (world.project / "sub").rename(world.project / "moved")
    (world.project / "sub").symlink_to(outside)
    with pytest.raises(Problem, match="nothing has landed"):
        land(world.layer, chosen, 2**62)
    assert os.listdir(outside) == []
    assert {change.path: change.is_conflict for change in world.again().changes()} == {
        "sub": True,
        "sub/f": True,
        "sub/g": True,
    }


def ended_half_way(world: World) -> None:
    """Land in another process, which ends when some of it is there."""
    child = os.fork()
    if child == 0:
        move, count = _Landing.move, 0

        def move_some(self: _Landing, number: int, operation: Operation) -> None:
            nonlocal count
            count += 1
            if count == 5:
                os._exit(0)
            move(self, number, operation)

        _Landing.move = move_some  # type: ignore[method-assign]
        world.land()
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_discarding_half_a_landing_gives_back_what_was_there(tmp_path: Path) -> None:
    """What the project had is in the stage then, which goes with the layer."""
    world = with_every_kind(tmp_path)
    before = picture(world.project)
    ended_half_way(world)
    assert picture(world.project) != before
    _discard(world.again().layer, yes=True)
    assert picture(world.project) == before
    assert store.list_layers(world.place) == []


def test_layer_whose_landing_is_not_undone_is_not_discarded(tmp_path: Path) -> None:
    """Whoever is asked in spite of it may say so. Files of the project would go with it."""
    world = with_every_kind(tmp_path)
    before = picture(world.project)
    ended_half_way(world)
    with pytest.raises(Problem, match="its landing is not undone"):
        store.discard(world.layer)
    world.again().recover()
    assert picture(world.project) == before
    store.discard(world.layer)
    assert store.list_layers(world.place) == []


def test_full_disk_while_it_is_put_back_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = with_every_kind(tmp_path)
    before = picture(world.project)
    ended_half_way(world)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_whole", full)
    with pytest.raises(Problem, match="cannot be brought in order: No space left on device"):
        world.again().recover()
    monkeypatch.undo()
    world.again().recover()
    assert picture(world.project) == before


def test_full_disk_after_everything_has_landed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = with_every_kind(tmp_path / "model")
    model.land()
    world = with_every_kind(tmp_path / "world")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(landing, "note", full)
    with pytest.raises(Problem, match="everything has landed, but the layer is not emptied yet: No space left"):
        world.land()
    assert picture(world.project) == picture(model.project)
    monkeypatch.undo()
    # Until somebody comes back, the user goes on. What they write is theirs when the box changes it again.
    (world.project / "a.txt").write_text("the user's\n")
    world.again().recover()
    assert world.again().changes() == []
    wait_for_the_clock()
    for name in ("a.txt", "tool.sh"):
        world.write(name, "the box's\n")
    assert {one.path: one.is_conflict for one in world.again().changes()} == {"a.txt": True, "tool.sh": False}


def test_directories_that_are_swapped_meanwhile_lead_nowhere(tmp_path: Path) -> None:
    """Another box moves directories away and puts symlinks in their place, as fast as it can."""
    names = [f"d{number}" for number in range(30)]
    world = make_world(tmp_path, {f"{name}/sub/old": "old\n" for name in names})
    for name in names:
        world.write(f"{name}/sub/{'old' if name.endswith('5') else 'new'}", "landed\n")
    outside = tmp_path / "outside"
    outside.mkdir()  # and nothing in it, or whoever swaps would go through the links and change that
    beyond, before, chosen = picture(outside), picture(world.project), world.changes()
    child = os.fork()
    if child == 0:
        swap_for_ever([world.project / f"{name}{end}" for name in names for end in ("", "/sub")], outside)
    time.sleep(0.02)
    try:
        with contextlib.suppress(Problem):  # nothing has landed, or it is not undone yet
            land(world.layer, chosen, 2**62)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert picture(outside) == beyond
    for away in sorted(world.project.rglob("*.away"), reverse=True):
        place = away.with_suffix("")
        if place.is_symlink():
            place.unlink()
        away.rename(place)
    world.again().recover()
    found = picture(world.project)
    assert found == before or sum(text == "landed\n" for _, text in found.values()) == len(names)


def swap_for_ever(places: list[Path], outside: Path) -> NoReturn:
    chance = random.Random(0)
    while True:
        some = chance.sample(places, 8)
        for place in some:
            with contextlib.suppress(OSError):
                place.rename(f"{place}.away")
                place.symlink_to(outside)
        time.sleep(chance.random() / 1000)
        for place in some:
            with contextlib.suppress(OSError):
                place.unlink()
                Path(f"{place}.away").rename(place)
        time.sleep(chance.random() / 200)


@pytest.mark.parametrize("directory", ["", "sub/", "new/"])
def test_what_changed_in_the_layer_since_it_was_shown_does_not_land(tmp_path: Path, directory: str) -> None:
    """A box can give a descriptor of a file in its layer to another box, which writes when the first one has ended."""
    world = make_world(tmp_path, {"sub/old": "old\n"})
    path = world.write(f"{directory}file", "as shown\n")
    world.write("a-first", "first\n")
    chosen, before = world.changes(), picture(world.project)
    times = path.stat()
    wait_for_the_clock()
    path.write_text("evil now\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(Problem, match=f"nothing has landed: {directory}file: it was changed in the layer a moment ago"):
        land(world.layer, chosen, 2**62)
    assert picture(world.project) == before
    world.land()
    assert (world.project / directory / "file").read_text() == "evil now\n"


def test_another_file_of_the_same_age_does_not_land(tmp_path: Path) -> None:
    """Whoever has a descriptor of a directory in the layer renames directories there, and their files are as before."""
    world = make_world(tmp_path, {})
    hidden, shown = world.write(".git/evil/file", "evil\n"), world.write("new/file", "mild\n")
    # As if both had been written within one tick of the clock.
    chosen = [change.replace(written=hidden.stat().st_ctime_ns) for change in world.changes()]
    assert [change.path for change in chosen] == ["new", "new/file"]
    shown.parent.rename(world.upper / ".git/away")
    hidden.parent.rename(world.upper / "new")
    with pytest.raises(Problem, match="nothing has landed: new/file: it was changed in the layer a moment ago"):
        land(world.layer, chosen, 2**62)
    assert picture(world.project) == {}


def test_what_lands_is_another_file_than_that_of_the_layer(tmp_path: Path) -> None:
    """Whoever still has a descriptor of the layer's file writes into that one, and not into the project."""
    world = make_world(tmp_path, {})
    path = world.write("new/file", "as shown\n")
    with path.open("r+") as kept:
        world.land()
        kept.write("evil now\n")
    assert (world.project / "new/file").read_text() == "as shown\n"
