"""A hook of hatchling, which adds the manual page, the completions and the schemas to the wheel."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

from shared_files import write


class SharedFiles(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del version
        self.made = tempfile.TemporaryDirectory()
        prefix = Path(self.made.name)
        for file in write(prefix):
            build_data["shared_data"][str(file)] = str(file.relative_to(prefix))

    def finalize(self, *_: object) -> None:
        self.made.cleanup()
