"""How to start this very claudebox, or one of its modules, as another process."""

from __future__ import annotations

import os
import sys

START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from claudebox.{} import main; main()"
START_FROM_ARCHIVE = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from claudebox.archive import serve_from_memory; "
    "serve_from_memory(); from claudebox.{} import main; main()"
)


def own_command(module: str = "cli") -> list[str]:
    """The command uses the same interpreter, isolated: the current directory does not get on the module path."""
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    start = START_FROM_ARCHIVE if os.path.isfile(source) else START
    return [sys.executable, "-I", "-S", "-c", start.format(module), source]
