"""A hook of hatchling, which adds the manual page and the completions to the wheel."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

from shared_files import shared_files


class SharedFiles(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del version
        self.made = tempfile.TemporaryDirectory()
        for place, text in shared_files(Path(self.root) / "src").items():
            file = Path(self.made.name) / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            build_data["shared_data"][str(file)] = place

    def finalize(self, *_: object) -> None:
        self.made.cleanup()
