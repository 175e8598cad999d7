"""Shows a diff on the terminal, page by page, with the programs that the user has chosen for that globally.

Only the user's own configuration of git counts. A repository may name programs, too, and those would be the agent's.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator

from claudebox import files
from claudebox.features.review.judge import Item
from claudebox.host import read_host
from claudebox.host.git.config import host_configs, load
from claudebox.host.tree import Tree
from claudebox.layers.changes import ADDED, CHANGED, DIRECTORY, FILE, Change
from claudebox.layers.store import Layer
from claudebox.trust.programs import trusted_path
from claudebox.trust.reach import reach_of
from claudebox.view.review import LONGEST_DIFF, diff, heading
from claudebox.view.text import Style, escape

PAGER = "less -R"
SECONDS = 60
ESCAPE = "\x1b["


def diff_lines(layer: Layer, items: list[Item], style: Style, home: str) -> Iterator[str]:
    """The diff of these changes, line by line."""
    program = users_program("diff.external", home)
    upper, lower = os.open(layer.upper, files.DIRECTORY), files.open_directory(layer.project)
    try:
        for item in items:
            change = item.change
            old = _read(lower, change.path) if change.old is not None and change.what != DIRECTORY else None
            is_new = change.kind in (ADDED, CHANGED) and change.what == FILE
            new = _read_in_layer(upper, change) if is_new else None
            text = _by_program(program, change.path, old, new) if program and _is_whole_text(change) else None
            if text is None:
                yield from diff(item, old, new, style)
            else:
                yield from heading(item, style)
                yield from text
    finally:
        os.close(upper)
        os.close(lower)


def _is_whole_text(change: Change) -> bool:
    """Whether another program can show the difference: it gets no more than the beginning of a file."""
    size = max(change.size, change.old.size if change.old is not None else 0)
    return change.what == FILE and not change.is_binary and size <= LONGEST_DIFF


def _read(root: int, path: str) -> bytes | None:
    """The beginning of a file; None if it is none, or cannot be read."""
    above, _, name = path.rpartition("/")
    try:
        parent = files.open_below(root, above)
    except OSError:
        return None
    try:
        return _content(parent, name)
    except OSError:
        return None
    finally:
        os.close(parent)


def _read_in_layer(root: int, change: Change) -> bytes | None:
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
        for name, said in load(tree, config, home, ""):
            value = said if name == key else value
    return value


def _by_program(program: str, path: str, old: bytes | None, new: bytes | None) -> Iterator[str] | None:
    """What the user's own diff program says, called as git calls it. None if it fails, or there is nothing for it."""
    if old is None and new is None:
        return None
    with tempfile.TemporaryDirectory(prefix="claudebox-diff-") as directory:
        words = [escape(path)]
        for name, content in (("old", old), ("new", new)):
            file = f"{directory}/{name}-{_plain(path)}" if content is not None else os.devnull
            if content is not None:
                with open(file, "wb") as written:
                    written.write(content)
            words += [file, "0" * 40, "100644"]
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", f'{program} "$@"', program, *words],
                cwd=directory,
                env=_trusted_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    return (only_colours(line) for line in done.stdout.decode(errors="surrogateescape").split("\n"))


def _trusted_environment() -> dict[str, str]:
    """The user's, without entries of PATH that an agent can write: the pager would come from there."""
    host = read_host()
    return {**host.environ, "PATH": trusted_path(host.environ.get("PATH", os.defpath), reach_of(host))}


def _plain(path: str) -> str:
    """The last name, so that the program knows the language; nothing in it can be an option or a path."""
    return "".join(c if c.isalnum() or c in "._" else "_" for c in path.rpartition("/")[2])[-100:]


def only_colours(line: str) -> str:
    """The line with everything spelled out that a terminal would obey, except colours."""
    first, *rest = line.replace("\t", "    ").split(ESCAPE)
    shown = escape(first)
    for piece in rest:
        code, found, text = piece.partition("m")
        if found and all(character in "0123456789;" for character in code):
            shown += f"{ESCAPE}{code}m{escape(text)}"
        else:
            shown += escape(ESCAPE + piece)
    return shown


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
