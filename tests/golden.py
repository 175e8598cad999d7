"""Golden files: a text as it has to be, kept beside the tests that compare with it.

Small texts of one kind share a file, each as a scene below a line with its name; and what is almost like another text
is kept as the difference from it, so that a change that concerns all of them is read once.

`pytest --update-golden` writes them anew; the difference is then for a person to read.
"""

import difflib
import fcntl
from pathlib import Path

import pytest

TITLE = "=== "  # begins the line above each scene


class Golden:
    """The folder `golden` beside a test file."""

    def __init__(self, folder: Path, update: bool) -> None:
        self.folder = folder
        self.update = update

    def check(self, name: str, text: str) -> None:
        """Fail unless the file holds exactly this text."""
        path = self.folder / name
        content = text.encode(errors="surrogateescape")
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        assert path.exists(), f"there is no {path}: run pytest --update-golden and read what it wrote"
        assert text.splitlines() == path.read_bytes().decode(errors="surrogateescape").splitlines()
        assert content == path.read_bytes()

    def check_scene(self, name: str, scene: str, text: str) -> None:
        """Fail unless the file holds exactly this text below the name of the scene."""
        path = self.folder / name
        assert not any(line.startswith(TITLE) for line in text.split("\n")), f"{scene} cannot be told from a title"
        if self.update:
            _replace_scene(path, scene, text)
        assert path.exists(), f"there is no {path}: run pytest --update-golden and read what it wrote"
        scenes = _scenes(path)
        assert scene in scenes, f"there is no scene {scene} in {path}: run pytest --update-golden"
        assert text.split("\n") == scenes[scene].split("\n")

    def names(self, below: str = "") -> set[str]:
        """The files that exist, to find those that no test looks at."""
        return {path.name for path in (self.folder / below).iterdir() if path.is_file()}

    def scenes(self, name: str) -> set[str]:
        """What a file shows, to find what no test looks at."""
        return set(_scenes(self.folder / name))


def _scenes(path: Path) -> dict[str, str]:
    parts = ("\n" + path.read_bytes().decode(errors="surrogateescape")).split(f"\n{TITLE}")
    assert parts[0] == "", f"{path} does not begin with a title"
    scenes = dict(part.partition("\n")[::2] for part in parts[1:])
    assert len(scenes) == len(parts) - 1, f"a scene is twice in {path}"
    return scenes


def _replace_scene(path: Path, scene: str, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # tests may run side by side
        scenes = (_scenes(path) if path.stat().st_size else {}) | {scene: text}
        whole = "\n".join(f"{TITLE}{name}\n{scenes[name]}" for name in sorted(scenes))
        path.write_bytes(whole.encode(errors="surrogateescape"))


def difference(base: str, text: str) -> str:
    """What is other than in `base`: lines that went and came, each group below the line that it follows."""
    old, new = base.split("\n"), text.split("\n")
    shown: list[tuple[str, str]] = []
    for kind, first, last, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            shown.append((" ", old[first - 1] if first else "(at the top)"))
            shown += [("-", line) for line in old[first:last]] + [("+", line) for line in new[start:end]]
    return "".join(f"{sign} {line}\n" if line else f"{sign}\n" for sign, line in shown)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.path.parent / "golden", request.config.getoption("--update-golden", default=False))
