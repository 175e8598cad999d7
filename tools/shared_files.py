"""What a package installs besides the program: the manual page and the completions, made from the table of settings."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
# Where man and the shells look, below a prefix.
MANUAL = "share/man/man1/claudebox.1"
COMPLETIONS = {
    "bash": "share/bash-completion/completions/claudebox",
    "zsh": "share/zsh/site-functions/_claudebox",
    "fish": "share/fish/vendor_completions.d/claudebox.fish",
}


def shared_files(source: Path = SOURCE) -> dict[str, str]:
    """The files, by their path below a prefix."""
    sys.path.insert(0, str(source))
    try:
        manual = importlib.import_module("claudebox.view.manual").manual_page()
        completion = importlib.import_module("claudebox.view.completion").completion
        return {MANUAL: manual} | {place: completion(shell) for shell, place in COMPLETIONS.items()}
    finally:
        sys.path.remove(str(source))
