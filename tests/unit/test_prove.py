"""What `--prove` believes of its probe, and where it writes it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from claudebox.commands import prove
from claudebox.commands.prove.canaries import Canaries


def test_probe_that_is_silent_about_an_attack_is_no_proof() -> None:
    canaries = Canaries()
    canaries.add("files", "first", "read")
    canaries.add("files", "second", "read")

    def answering(*ids: str) -> dict[str, str]:
        said = prove.MARK + json.dumps(dict.fromkeys(ids, ""))
        return prove._found(subprocess.CompletedProcess([], 0, said, ""), canaries)

    assert answering("0", "1") == {"0": "", "1": ""}
    with pytest.raises(prove.Silent):
        answering("0")


def test_probe_is_not_written_where_a_symlink_leads(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project").symlink_to("elsewhere")
    with pytest.raises(OSError, match="project"):
        prove._write(str(tmp_path / "project"), "probe.py", b"")
    assert list((tmp_path / "elsewhere").iterdir()) == []
