"""Reads what a file of direnv makes a shell obey besides itself.

The user allows an `.envrc` by its content, and direnv asks no more when a script changes that it names.
"""

from __future__ import annotations

import posixpath

from claudebox.host.tree import Tree
from claudebox.host.walk import SKIPPED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAMED = "direnv runs it on cd, since .envrc names it"
MOST_BYTES = 1 << 16
FILE = ".envrc"
SOURCES = ("source", ".", "source_env", "source_env_if_exists")
PATHS = ("PATH_add", "path_add", "load_prefix")
# What `use` and `dotenv` evaluate is what agents are asked to write: it is named afterwards.
EVALUATED = {
    "flake": ("flake.nix", "flake.lock"),
    "nix": ("shell.nix", "default.nix"),
    "devenv": ("devenv.nix", "devenv.yaml"),
    "devbox": ("devbox.json",),
    "guix": ("guix.scm", "manifest.scm"),
}


def named_places(tree: Tree, path: str) -> Iterator[str]:
    """The scripts that it runs, and the directories that it puts on PATH."""
    base = posixpath.dirname(path)
    for command, *words in _commands(tree, path):
        for word in words if command in (*SOURCES, *PATHS) else ():
            place = posixpath.normpath(posixpath.join(base, word))
            if command in SOURCES and tree.is_dir(place):
                place = f"{place}/{FILE}"
            if SKIPPED.keys().isdisjoint(place.split("/")):
                yield place


def is_evaluated(tree: Tree, path: str) -> bool:
    """Whether the `.envrc` beside a file makes a shell obey the file on cd."""
    directory, _, name = path.rpartition("/")
    for command, *words in _commands(tree, f"{directory}/{FILE}"):
        if command == "use" and words and name in EVALUATED.get(words[0], ()):
            return True
        if command.startswith("dotenv") and name in (words or (".env",)):
            return True
    return False


def _commands(tree: Tree, path: str) -> Iterator[list[str]]:
    """The simple commands of a script, each as its words, without their quotes and the usual ways to say `here`."""
    content = tree.read_plain(path, MOST_BYTES) or b""
    text = content.decode(errors="surrogateescape")
    for separator in ("&&", "||", ";", "\n", " then ", " do "):
        text = text.replace(separator, "\n")
    for line in text.splitlines():
        words = [word.strip("\"'") for word in line.split("#")[0].split()]
        words = [word.replace("$PWD/", "").replace("${PWD}/", "").replace("$(pwd)/", "") for word in words]
        if words:
            yield words
