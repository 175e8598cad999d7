"""`--places`: what is moved arrives whole, also if the move is ended at any moment, and comes back as it was."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from claudebox.host import read_host
from claudebox.layers import files
from claudebox.layers.copying import DEEPEST, Copying
from claudebox.moving import Move, _check, _note_move, _unfinished, as_apart, carry_out, in_home
from claudebox.problem import Problem
from claudebox.settling import _note_first, settle
from claudebox.state import Apart, State, find_state

ENDED = 9
INSTANCE = "instances/0123456789abcdef"
# Calls that change something of which a move consists.
STEPS = ("rename", "mkdir", "unlink", "rmdir", "link", "open")


def tree_of(root: Path) -> dict[str, object]:
    """All that is there, as far as a copy can have it."""
    found: dict[str, object] = {}
    for directory, names, others in os.walk(root):
        for name in (*names, *others):
            path = Path(directory) / name
            status = path.lstat()
            kind = stat.S_IFMT(status.st_mode)
            content: object = None
            if kind == stat.S_IFREG:
                content = (path.read_bytes(), status.st_mtime_ns, stat.S_IMODE(status.st_mode), _marks(path))
            elif kind == stat.S_IFLNK:
                content = os.readlink(path)
            elif kind == stat.S_IFDIR:
                content = (stat.S_IMODE(status.st_mode), _marks(path))
            found[str(path.relative_to(root))] = (kind, content)
    return found


def _marks(path: Path) -> dict[str, bytes]:
    return {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith("user.")}


def fill(state: State) -> None:
    """What claudebox keeps for somebody, with what agents leave in there."""
    instance = state.instance_called("0123456789abcdef")
    texts = {
        state.config: 'network = "inet"\n',
        f"{state.profiles}/aws.toml": "",
        state.login: "{}",
        state.decisions: "x",
        state.cached("x"): "x",
        state.nix_trial: "x",
        instance.project: "/p\n",
        instance.masked: "masked",
        instance.agreed: "agreed",
        f"{instance.claude}/projects/talk.jsonl": "talk" * 5000,
        f"{instance.layers}/1/upper/file": "changed",
        f"{instance.cache}/pip/wheel": "wheel",
        f"{instance.cache_layers}/npm.upper/x": "x",
        f"{state.directory}/notes-of-mine": "mine",
    }
    for path, text in texts.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    Path(state.directory).chmod(0o700)
    claude = Path(instance.claude)
    (claude / "link").symlink_to("/etc/passwd")
    os.link(instance.masked, claude / "second-name")
    (claude / "read-only").mkdir(0o555)
    (claude / "program").write_text("#!/bin/sh\n")
    (claude / "program").chmod(0o755)
    os.mkfifo(f"{state.directory}/masks.lock", 0o600)  # of claudebox 0.2.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / "shop").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "shop")
    fill(State(str(home)))
    return home


@pytest.fixture(params=["the same", "another"])
def after(home: Path, request: pytest.FixtureRequest) -> Iterator[Apart]:
    """Places on the same file system as the home, and on another one."""
    if request.param == "the same":
        yield Apart(*(f"{home}/{name}/claudebox" for name in (".config", ".local/state", ".cache")))
        return
    import shutil
    import tempfile

    other = tempfile.mkdtemp(prefix="claudebox-test-", dir="/dev/shm")
    assert os.stat(other).st_dev != home.stat().st_dev
    yield Apart(f"{home}/.config/claudebox", f"{other}/claudebox", f"{other}/cache/claudebox")
    shutil.rmtree(other)


def in_a_process(work: Callable[[], None], last_step: int = 0) -> int:
    """Do it in a process that ends, without a chance to tidy up, in place of a step with this number."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    count = 0

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def step(*values: object, **named: object) -> object:
            nonlocal count
            count += 1
            if count == last_step:
                os._exit(ENDED)
            return call(*values, **named)

        return step

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))
    for name in ("sync", "fsync"):
        setattr(os, name, lambda *_: None)  # what a process wrote is there, whoever ends it
    try:
        work()
        os._exit(0)
    except BaseException as error:
        os.write(2, repr(error).encode())
        os._exit(1)


def move_all(move: Move) -> None:
    _note_move(move)
    carry_out(move)


def go_on(word: str) -> None:
    host = read_host()
    move = _unfinished(host, word)
    if move is not None:
        move_all(move)


@pytest.mark.req("INST-01")
def test_what_was_moved_is_where_it_is_looked_for_and_comes_back(home: Path, after: Apart) -> None:
    was, kept = tree_of(home / ".claudebox"), State(str(home))
    assert in_a_process(lambda: move_all(Move(str(home), in_home(str(home)), after))) == 0
    assert not (home / ".claudebox").exists()
    state = find_state(read_host())
    assert state == State(str(home), after)
    instance = state.instance_called("0123456789abcdef")
    for path in (state.config, state.login, state.decisions, instance.masked, instance.cache, instance.cache_layers):
        assert os.path.exists(path)
    assert {Path(path).stat().st_mode & 0o777 for path in state.directories()} == {0o700}
    assert in_a_process(lambda: move_all(Move(str(home), as_apart(state), in_home(str(home))))) == 0
    assert find_state(read_host()) == kept
    assert tree_of(home / ".claudebox") == was
    assert not any(os.path.lexists(path) for path in state.directories())


EACH = pytest.param(1, marks=pytest.mark.exhaustive("it ends a move at each of its steps"))


@pytest.mark.parametrize("stride", [pytest.param(37, marks=pytest.mark.slow("each step is a process")), EACH])
@pytest.mark.parametrize("way", ["xdg", "home"])
def test_move_that_is_ended_at_any_step_loses_nothing(home: Path, after: Apart, way: str, stride: int) -> None:
    """Nothing starts until somebody goes on, or back."""
    was, name = tree_of(home / ".claudebox"), str(home)
    step, result = 0, ENDED
    while result == ENDED:
        step += stride
        result = in_a_process(lambda: move_all(Move(name, in_home(name), after)), step)
        if result == ENDED and os.path.lexists(f"{name}/.local/state/claudebox/places"):
            with pytest.raises(Problem, match="was moving its files"):
                find_state(read_host())
            assert in_a_process(lambda: go_on(way)) == 0
        state = find_state(read_host())
        if state.apart is not None:
            assert in_a_process(lambda: move_all(Move(name, after, in_home(name)))) == 0
        assert tree_of(home / ".claudebox") == was
    assert result == 0
    assert step > 20


@pytest.mark.parametrize("stride", [pytest.param(37, marks=pytest.mark.slow("each step is a process")), EACH])
def test_way_back_that_is_ended_loses_nothing(home: Path, after: Apart, stride: int) -> None:
    was, name = tree_of(home / ".claudebox"), str(home)
    step, result = 0, ENDED
    while result == ENDED:
        step += stride
        assert in_a_process(lambda: move_all(Move(name, in_home(name), after))) == 0
        result = in_a_process(lambda: move_all(Move(name, after, in_home(name))), step)
        for word in ("xdg", "home"):
            assert in_a_process(lambda word=word: go_on(word)) == 0  # type: ignore[misc]
        if find_state(read_host()).apart is not None:
            assert in_a_process(lambda: move_all(Move(name, after, in_home(name)))) == 0
        assert tree_of(home / ".claudebox") == was
    assert result == 0


def end_at(move: Move, part: str) -> None:
    """A move that is ended when all but one part is there."""
    _note_move(move)
    before, after = Path(move.before.state), Path(move.after.state)
    after.mkdir(parents=True, exist_ok=True)
    (after / part).mkdir()
    (after / part / "since").write_text("somebody's")
    assert (before / part).is_dir()


def test_move_goes_on_over_nothing_that_came_since(home: Path, after: Apart) -> None:
    """An older claudebox may have begun anew where the files were: neither of both states is removed for the other."""
    move = Move(str(home), in_home(str(home)), after)
    end_at(move, "instances")
    with pytest.raises(Problem, match="is there already"):
        carry_out(move)
    assert (home / ".claudebox" / INSTANCE / "masked").read_text() == "masked"
    assert Path(after.state, "instances/since").read_text() == "somebody's"


def test_file_of_the_user_whose_name_begins_like_the_note_moves_as_well(home: Path, after: Apart) -> None:
    (home / ".claudebox/places.txt").write_text("mine")
    assert in_a_process(lambda: move_all(Move(str(home), in_home(str(home)), after))) == 0
    assert Path(after.state, "places.txt").read_text() == "mine"


def test_file_of_the_user_that_is_called_like_the_note_is_not_replaced(home: Path) -> None:
    after = Apart(*(f"{home}/{name}/claudebox" for name in (".config", ".local/state", ".cache")))
    (home / ".claudebox/places").write_text("mine")
    with pytest.raises(Problem, match=r"\.claudebox/places is there already"):
        _check(Move(str(home), in_home(str(home)), after))


def first_start(home: Path, monkeypatch: pytest.MonkeyPatch) -> Apart:
    import shutil

    shutil.rmtree(home / ".claudebox")
    monkeypatch.setenv("XDG_STATE_HOME", f"{home}/elsewhere")
    apart = find_state(read_host()).apart
    assert apart is not None
    return apart


def test_first_start_notes_the_places_without_second_names(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems have none."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    apart = first_start(home, monkeypatch)
    assert find_state(settle(read_host())) == State(str(home), apart)
    assert os.listdir(home / ".local/state/claudebox") == ["places"]


def test_first_start_replaces_no_note_of_another(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = first_start(home, monkeypatch)
    host = read_host()
    settle(host)
    with pytest.raises(Problem, match="another claudebox starts"):
        _note_first(host, apart.replace(state="/elsewhere/claudebox"))
    assert find_state(read_host()) == State(str(home), apart)
    assert os.listdir(home / ".local/state/claudebox") == ["places"]


def copy_of(tmp_path: Path) -> dict[str, object]:
    source, target = os.open(tmp_path, files.DIRECTORY), os.open(tmp_path, files.DIRECTORY)
    Copying(target).copy(source, "from", target, "to")
    return tree_of(tmp_path / "to")


@pytest.mark.attributes
def test_copy_has_all_that_layers_need(tmp_path: Path) -> None:
    one = tmp_path / "from"
    (one / "opaque").mkdir(parents=True)
    os.setxattr(one / "opaque", "user.overlay.opaque", b"y")
    (one / "sparse").write_bytes(b"")
    os.truncate(one / "sparse", 1 << 32)
    os.mknod(one / "whiteout", stat.S_IFCHR | 0o000, 0)
    was = tree_of_without_content(one)
    source = os.open(tmp_path, files.DIRECTORY)
    Copying(source).copy(source, "from", source, "to")
    assert tree_of_without_content(tmp_path / "to") == was
    assert (tmp_path / "to/sparse").stat().st_blocks == 0
    assert os.getxattr(tmp_path / "to/opaque", "user.overlay.opaque") == b"y"
    assert (tmp_path / "to/whiteout").stat().st_rdev == 0


def tree_of_without_content(root: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.lstat().st_mode, path.lstat().st_size if path.is_file() else 0) for path in root.iterdir()}


def test_names_of_one_file_stay_one_file(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from/a").write_text("x")
    os.link(tmp_path / "from/a", tmp_path / "from/b")
    copy_of(tmp_path)
    assert (tmp_path / "to/a").stat().st_ino == (tmp_path / "to/b").stat().st_ino


def test_closed_directory_is_copied_and_stays_closed(tmp_path: Path) -> None:
    closed = tmp_path / "from/closed"
    closed.mkdir(parents=True)
    (closed / "file").write_text("x")
    (closed / "file").chmod(0)
    closed.chmod(0)
    source = os.open(tmp_path, files.DIRECTORY)
    Copying(source).copy(source, "from", source, "to")
    for side in ("from", "to"):
        assert stat.S_IMODE((tmp_path / side / "closed").stat().st_mode) == 0
        (tmp_path / side / "closed").chmod(0o700)
        assert stat.S_IMODE((tmp_path / side / "closed/file").stat().st_mode) == 0


def test_directories_nested_too_deep_are_an_error_and_stay(tmp_path: Path) -> None:
    deep = tmp_path / "from"
    for _ in range(DEEPEST + 5):
        deep = deep / "d"
    deep.mkdir(parents=True)
    source = os.open(tmp_path, files.DIRECTORY)
    with pytest.raises(OSError, match="nested deeper"):
        Copying(source).copy(source, "from", source, "to")
    assert deep.is_dir()
