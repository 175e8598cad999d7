"""Says how to go on with a conversation when the box has ended.

Claude's own hint is for a host without claudebox: there it would find no conversation, and it would skip permissions
where no box is around it. The agent can write where conversations are, so nothing there is believed but a name.
"""

from __future__ import annotations

import os
import stat

from claudebox import files
from claudebox.model import Launch
from claudebox.output.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Deed

    Saved = dict[str, int]  # when each conversation was written last, in nanoseconds

SUFFIX = ".jsonl"
HEXADECIMAL = frozenset("0123456789abcdef")
PARTS = (8, 4, 4, 4, 12)  # the digits of an identifier, between dashes
MOST_LOOKED_AT = 10_000  # files
LONGEST_NAME = 200  # Claude cuts a longer one, and adds a hash of its own


def after(launch: Launch) -> Deed:
    """Called before the program starts. What is returned is called when the box has ended."""
    plan = launch.plan
    if plan.state is None or not (os.isatty(0) and os.isatty(1)):
        return lambda _: None
    state, project = plan.state.claude, plan.project
    before = saved_conversations(state, project)
    return lambda _: _say_how_to_go_on(before, saved_conversations(state, project))


def _say_how_to_go_on(before: Saved, now: Saved) -> None:
    written = [name for name, moment in now.items() if moment != before.get(name)]
    if not written:
        return
    try:
        say(f"\nResume it in a box with:\nclaudebox --resume {max(written, key=lambda name: now[name])}\n")
    except OSError:
        pass  # the terminal is gone


def saved_conversations(state: str, project: str) -> Saved:
    """The conversations of the project that Claude has saved. Nothing is followed, and no file is opened."""
    name, opened = directory_name(project), list[int]()
    found: Saved = {}
    if len(name) > LONGEST_NAME:
        return found
    try:
        opened.append(os.open(state, files.DIRECTORY))
        opened.append(place := files.open_below(opened[0], f"projects/{name}"))
        with os.scandir(place) as entries:
            for _, entry in zip(range(MOST_LOOKED_AT), entries, strict=False):
                identifier = entry.name.removesuffix(SUFFIX)
                if entry.name.endswith(SUFFIX) and is_identifier(identifier):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        found[identifier] = status.st_mtime_ns
    except OSError:
        pass  # what another box removes meanwhile is no conversation to go on with
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return found


def directory_name(project: str) -> str:
    """How Claude calls the directory of a project: a dash for each unit of UTF-16 that is no letter and no digit."""
    return "".join(
        character if character.isascii() and character.isalnum() else "-" * (1 + (ord(character) > 0xFFFF))
        for character in project
    )


def is_identifier(name: str) -> bool:
    parts = name.split("-")
    return tuple(map(len, parts)) == PARTS and HEXADECIMAL.issuperset("".join(parts))
