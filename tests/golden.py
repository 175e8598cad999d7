"""Golden files: a text as it has to be, kept beside the tests that compare with it.

`pytest --update-golden` writes them anew; the difference is then for a person to read.
"""

from __future__ import annotations

from pathlib import Path

import pytest


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

    def names(self, below: str = "") -> set[str]:
        """The files that exist, to find those that no test looks at."""
        return {path.name for path in (self.folder / below).iterdir() if path.is_file()}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.path.parent / "golden", request.config.getoption("--update-golden", default=False))
