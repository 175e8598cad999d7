from pathlib import Path

import pytest

from errors.scene import Scene, Stage
from golden import Golden


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden, capsys: pytest.CaptureFixture[str]) -> Stage:
    return Stage(Scene(tmp_path, monkeypatch), golden, capsys)
