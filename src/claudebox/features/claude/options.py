"""Decides which files of the host enter because an option of claude names them."""

from __future__ import annotations

import posixpath

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.host.tree import Tree
from claudebox.model import FROM_HOST, RO, RW, Mount, Origin, Preparation
from claudebox.mounts import find_holder
from claudebox.paths import absolute
from claudebox.record import Record
from claudebox.settings.values import MountWish, Word

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


class Mention(Record):
    """A path that an option of claude takes, and where that was said."""

    option: str
    path: str
    origin: Origin


def decide(facts: Facts, draft: Draft) -> Contribution:
    named = named_paths(facts.tree, facts.words, facts.project, facts.home, draft.mounts)
    return Contribution(wishes=named.wishes, preparations=named.preparations)


def named_paths(tree: Tree, words: tuple[Word, ...], cwd: str, home: str, mounts: list[Mount]) -> NamedPaths:
    """Ask for what the options name and the box lacks. If it does not exist, claude itself complains best."""
    wishes, preparations = [], []
    for mention in _mentions(words):
        path = absolute(mention.path, cwd, home)
        above = find_holder(path, mounts)
        if mention.path.startswith("{") or above is None or above.kind in FROM_HOST:
            continue
        rule = PATH_OPTIONS[mention.option]
        directory = tree.resolve(posixpath.dirname(path))
        if rule.creates and directory is not None and tree.lstat(path) is None:
            new = f"{directory}/{posixpath.basename(path)}"
            preparations.append(Preparation(Preparation.EMPTY_FILE, new))
            wishes.append(MountWish(rule.access, path, "", mention.origin, is_new=True))
        elif tree.exists(path):
            wishes.append(MountWish(rule.access, path, "", mention.origin))
    return NamedPaths(tuple(wishes), tuple(preparations))


def _mentions(words: tuple[Word, ...]) -> list[Mention]:
    """Every path that an option of claude takes."""
    mentions = []
    waiting: Word | None = None  # the option whose values these are
    for word in words:
        name, has_value, value = word.text.partition("=")
        if name in PATH_OPTIONS:
            if has_value:
                mentions.append(_mention(word.replace(text=name), word.replace(text=value)))
            waiting = None if has_value else word
        elif word.text.startswith("-"):
            waiting = None
        elif waiting is not None:
            mentions.append(_mention(waiting, word))
            waiting = waiting if PATH_OPTIONS[waiting.text].takes_several else None
    return mentions


def _mention(option: Word, value: Word) -> Mention:
    """A path counts as typed if both words are: a typed prompt after an option in a file may happen to be a path."""
    if option.origin.is_typed and value.origin.is_typed:
        return Mention(option.text, value.text, Origin.of_option(option.text, REASON))
    said = option.origin if value.origin.is_typed else value.origin
    return Mention(option.text, value.text, said.replace(reason=REASON))
