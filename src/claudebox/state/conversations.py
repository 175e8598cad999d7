"""The conversations that Claude had outside of boxes: where they are, and which of them belong to a project."""

from __future__ import annotations

from claudebox.host.tree import Tree
from claudebox.paths import is_inside

PROJECTS = "projects"  # below Claude's home: a directory for each project
ENDING = ".jsonl"
LONGEST_NAME = 200  # Claude cuts a longer one, and adds a hash
LOOKED_AT = 1 << 22  # bytes of a conversation: its first lines say where it began


def directories(tree: Tree, home: str, project: str) -> list[str]:
    """Where Claude keeps the project's conversations. Its names are not unique: a `-` stands for most characters."""
    name = "".join(one if one.isascii() and one.isalnum() else "-" * (1 + (one > "\uffff")) for one in project)
    names, kept = [name], f"{home}/{PROJECTS}"
    if len(name) > LONGEST_NAME:
        names = [one for one in tree.entries(kept) if one.startswith(f"{name[:LONGEST_NAME]}-")]
    return [path for one in names if tree.is_plain_directory(path := f"{kept}/{one}")]


def conversations(tree: Tree, directory: str, project: str) -> list[str]:
    """The names of the files that hold a conversation of this project. Symlinks and other names do not count."""
    names = [name for name in tree.entries(directory) if is_name(name.removesuffix(ENDING)) and name.endswith(ENDING)]
    return [name for name in names if _is_of(tree.read_plain(f"{directory}/{name}", LOOKED_AT) or b"", project)]


def _is_of(beginning: bytes, project: str) -> bool:
    """Whether the first line that names a directory names the project, or one in it."""
    import json

    for line in beginning.split(b"\n"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        place = entry.get("cwd") if isinstance(entry, dict) else None
        if isinstance(place, str):
            return is_inside(place, project)
    return False


def is_name(text: str) -> bool:
    """Whether it has the form of the name that Claude gives a conversation."""
    parts = text.split("-")
    return [*map(len, parts)] == [8, 4, 4, 4, 12] and set("".join(parts)) <= set("0123456789abcdef")
