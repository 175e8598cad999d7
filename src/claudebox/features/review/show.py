"""Shows a diff on the terminal, page by page, with the pager that the user has chosen globally.

Only the user's own configuration of git counts. A repository may name programs, too, and those would be the agent's.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator

from claudebox import files
from claudebox.features.review.judge import Item
from claudebox.host import read_host
from claudebox.host.git import host_configs, load_config
from claudebox.host.programs import trusted_path
from claudebox.host.tree import Tree
from claudebox.layers.changes import ADDED, CHANGED, DIRECTORY, FILE, Change
from claudebox.layers.store import Layer
from claudebox.state.reach import reach_of
from claudebox.text import Style
from claudebox.view.review import LONGEST_DIFF, diff

PAGER = "less -R"


def diff_lines(layer: Layer, items: list[Item], style: Style) -> Iterator[str]:
    """The diff of these changes, line by line."""
    upper, lower = os.open(layer.upper, files.DIRECTORY), files.open_directory(layer.project)
    try:
        for item in items:
            change = item.change
            old = read_in_project(lower, change.path) if change.old is not None and change.what != DIRECTORY else None
            is_new = change.kind in (ADDED, CHANGED) and change.what == FILE
            new = read_in_layer(upper, change) if is_new else None
            yield from diff(item, old, new, style)
    finally:
        os.close(upper)
        os.close(lower)


def read_in_project(root: int, path: str) -> bytes | None:
    """The beginning of a file; None if it is none, or cannot be read."""
    above, _, name = path.rpartition("/")
    try:
        parent = files.open_below(root, above)
        try:
            return _content(parent, name)
        finally:
            os.close(parent)
    except OSError:
        return None


def read_in_layer(root: int, change: Change) -> bytes | None:
    """The same for a file of the layer, also if the modes of the directories around it forbid it.

    It has to be what would land: a descriptor of it may live in another box.
    """
    *parents, name = change.path.split("/")
    opened = [(os.dup(root), files.PRIVATE)]
    try:
        for parent in parents:
            opened.append(files.open_hidden_directory(opened[-1][0], parent))
        content = _content(opened[-1][0], name)
        status = os.stat(name, dir_fd=opened[-1][0], follow_symlinks=False)
        return content if change.is_still(status) else None
    except OSError:
        return None
    finally:
        for descriptor, mode in reversed(opened):
            if mode & files.PRIVATE != files.PRIVATE:
                os.fchmod(descriptor, mode)
            os.close(descriptor)


def _content(parent: int, name: str) -> bytes:
    with open(files.open_hidden_file(parent, name), "rb") as file:
        return file.read(LONGEST_DIFF + 1)


def users_program(key: str, home: str) -> str:
    """What the user's own configuration of git says, never the repository's."""
    tree, value = Tree(), ""
    for config in host_configs(dict(os.environ), home):
        for name, said in load_config(tree, config, home, ""):
            value = said if name == key else value
    return value


def _trusted_environment() -> dict[str, str]:
    """The user's, without entries of PATH that an agent can write: the pager would come from there."""
    host = read_host()
    return {**host.environ, "PATH": trusted_path(host, reach_of(host))}


def page(lines: Iterable[str], home: str) -> None:
    """Show lines in the user's pager. Standard output is not the terminal's any more when a box has ended."""
    program = users_program("pager.diff", home) or users_program("core.pager", home) or os.environ.get("PAGER", "")
    terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    environ = {**_trusted_environment(), "LESS": os.environ.get("LESS", "FRX"), "LESSSECURE": "1"}
    words = ["/bin/sh", "-c", program or PAGER]
    pager = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=terminal, cwd="/", env=environ)
    os.close(terminal)
    assert pager.stdin is not None
    try:
        for line in lines:
            pager.stdin.write(f"{line}\n".encode(errors="backslashreplace"))
        pager.stdin.close()
    except BrokenPipeError:
        pass  # they have seen enough
    while True:
        try:
            pager.wait()
            return
        except KeyboardInterrupt:
            continue  # less takes it for its own
