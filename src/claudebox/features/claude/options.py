"""Options of claude that name files of the host: what they name has to be in the box."""

from __future__ import annotations

import posixpath

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.host.tree import Tree
from claudebox.model import (
    FROM_HOST,
    RO,
    RW,
    Mount,
    Origin,
    Preparation,
)
from claudebox.mounts import holder
from claudebox.paths import expand_home
from claudebox.record import Record
from claudebox.settings.values import MountWish

REASON = "named by an option of claude"


class PathOption(Record):
    """How an option of claude uses the path that follows it."""

    access: str
    takes_several: bool = False
    creates: bool = False


PATH_OPTIONS = {
    "--add-dir": PathOption(RW, takes_several=True),
    "--append-system-prompt-file": PathOption(RO),
    "--debug-file": PathOption(RW, creates=True),
    "--mcp-config": PathOption(RO, takes_several=True),
    "--plugin-dir": PathOption(RO),
    "--settings": PathOption(RO),
    "--system-prompt-file": PathOption(RO),
}


class NamedPaths(Record):
    """Mounts to ask for, and files that have to be made so that they can be mounted."""

    wishes: tuple[MountWish, ...]
    preparations: tuple[Preparation, ...]


def named_paths(tree: Tree, arguments: tuple[str, ...], cwd: str, home: str, mounts: list[Mount]) -> NamedPaths:
    """What is there already needs nothing; about what does not exist, claude itself complains best."""
    wishes, preparations = [], []
    for option, text in _mentions(arguments):
        path = posixpath.normpath(posixpath.join(cwd, expand_home(text, home)))
        above = holder(path, mounts)
        if text.startswith("{") or above is None or above.kind in FROM_HOST:
            continue
        rule = PATH_OPTIONS[option]
        directory = tree.resolve(posixpath.dirname(path))
        if rule.creates and directory is not None and tree.lstat(path) is None:
            new = f"{directory}/{posixpath.basename(path)}"
            preparations.append(Preparation(Preparation.EMPTY_FILE, new))
            wishes.append(MountWish(rule.access, new, path, Origin(option, REASON), is_new=True))
        elif tree.exists(path):
            wishes.append(MountWish(rule.access, path, "", Origin(option, REASON)))
    return NamedPaths(tuple(wishes), tuple(preparations))


def _mentions(arguments: tuple[str, ...]) -> list[tuple[str, str]]:
    """(option, path) for every path that an option takes."""
    mentions = []
    waiting = ""  # the option whose values these are
    for word in arguments:
        name, has_value, value = word.partition("=")
        if name in PATH_OPTIONS:
            if has_value:
                mentions.append((name, value))
            waiting = "" if has_value else name
        elif word.startswith("-"):
            waiting = ""
        elif waiting:
            mentions.append((waiting, word))
            waiting = waiting if PATH_OPTIONS[waiting].takes_several else ""
    return mentions


def decide(facts: Facts, draft: Draft) -> Contribution:
    words = (*(word.path for word in facts.settings.claude_args), *facts.request.claude)
    named = named_paths(facts.tree, words, facts.project, facts.home, draft.mounts)
    return Contribution(wishes=named.wishes, preparations=named.preparations)
