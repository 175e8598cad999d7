"""Whether a command line of the user's configuration can run in the box."""

from __future__ import annotations

import posixpath

from claudebox.host.tree import Tree
from claudebox.model import (
    FROM_HOST,
    Mount,
)
from claudebox.mounts import holder
from claudebox.paths import (
    expand_home,
    move,
)

SHELL_WORDS = frozenset("&& || ; | ( ) { } if then for while echo cd true test [ exit".split())
PROJECT_VARIABLES = ("$CLAUDE_PROJECT_DIR", "${CLAUDE_PROJECT_DIR}", "$PWD", "${CLAUDE_PLUGIN_ROOT}")


class Runnable:
    """Knows what is mounted, and where programs are looked for."""

    def __init__(self, tree: Tree, mounts: tuple[Mount, ...], path: tuple[str, ...], home: str) -> None:
        self.tree = tree
        self.mounts = mounts
        self.path = path
        self.home = home

    def can_run(self, command: str) -> bool:
        """Judge by the first word, and by every absolute path after it: `python3 ~/bin/hook.py` needs both."""
        words = [word.strip("\"'") for word in command.split()]
        if not words:
            return False
        return self._has_program(words[0]) and all(self._is_there(word) for word in words[1:] if _is_path(word))

    def _has_program(self, word: str) -> bool:
        if word.startswith(PROJECT_VARIABLES) or word in SHELL_WORDS:
            return True
        if _is_path(word):
            return self._is_there(word)
        return any(
            self.tree.is_executable(f"{place}/{word}") and self._is_there(f"{place}/{word}") for place in self.path
        )

    def _is_there(self, word: str) -> bool:
        path = posixpath.normpath(expand_home(word.replace("$HOME", "~", 1), self.home))
        decisive = holder(path, self.mounts)
        if decisive is None or decisive.kind not in FROM_HOST:
            return path.startswith("/dev/")
        return self.tree.exists(move(path, decisive.path, decisive.source))


def _is_path(word: str) -> bool:
    return word.startswith(("/", "~/", "$HOME/"))
