"""Reads what a file of direnv or mise makes a shell obey besides itself.

The user allows such a file by its content, and nobody asks again when a script changes that it names.
"""

from __future__ import annotations

import posixpath

from claudebox.host.tree import Tree
from claudebox.host.walk import SKIPPED
from claudebox.paths import normalize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAMED = "a shell obeys it on cd: what that runs names it"
MOST_BYTES = 1 << 16
MOST_WORDS = 500  # an agent may have left the file
FILE = ".envrc"
TOML = (".mise", "mise.", ".rtx")  # how files of mise begin
SOURCES = ("source", ".", "source_env", "source_env_if_exists")
PATHS = ("PATH_add", "path_add", "load_prefix")
WATCHES = (
    "watch_file",
    "watch_dir",
    "cp",
    "mkdir",
    "dotenv",
    "dotenv_if_exists",
    "use",
    "layout",
    "log_status",
    "echo",
)
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
    base, name = posixpath.split(path)
    found = _in_toml(tree, path) if name.startswith(TOML) else _in_script(tree, path)
    for word, is_certain in tuple(found)[:MOST_WORDS]:
        place = normalize(posixpath.join(base, word))
        if SKIPPED.keys().isdisjoint(place.split("/")) and (is_certain or tree.is_file(place)):
            yield place


def _in_script(tree: Tree, path: str) -> Iterator[tuple[str, bool]]:
    """Words that may be paths, and whether they certainly are."""
    for command, *words in _commands(tree, path):
        for word in words if command in (*SOURCES, *PATHS) else ():
            is_directory = command in SOURCES and tree.is_dir(posixpath.join(posixpath.dirname(path), word))
            yield (f"{word}/{FILE}" if is_directory else word), True
        if command not in (*SOURCES, *PATHS, *WATCHES):
            for word in (command, *words):  # such as `eval "$(./tools/env)"`
                yield from ((one, False) for one in [word.strip("$()`\"'<>")] if "/" in one)


def _in_toml(tree: Tree, path: str) -> Iterator[tuple[str, bool]]:
    """The strings after `_.source`, `_.path` and `_.file` of mise."""
    text = (tree.read_plain(path, MOST_BYTES) or b"").decode(errors="surrogateescape")
    for line in text.splitlines():
        if "_." in line or line.lstrip().startswith(("source", "path")):
            for word in line.replace("'", '"').split('"')[1::2]:
                yield word.removeprefix("{{config_root}}/"), True


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
