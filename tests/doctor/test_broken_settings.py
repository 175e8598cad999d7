"""A broken settings file keeps nobody from looking at the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from claudebox.commands import check
from saying import parse


@pytest.mark.req("FAIL-01")
def test_check_and_version_work_beside_a_broken_project_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".claudebox.toml").write_text("network = lan\n")
    monkeypatch.chdir(tmp_path)
    assert check.show_check(parse(["--check"])) == 1
    text = capfd.readouterr().out
    assert "FAIL  settings" in text
    assert ".claudebox.toml:1" in text
    assert check.show_versions(parse(["--version"])) == 0
    assert capfd.readouterr().out.startswith("claudebox ")
