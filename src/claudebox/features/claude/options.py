"""The files of the host that enter because an option of claude names them."""

from __future__ import annotations

import posixpath

from claudebox.facts import Contribution, Draft, Facts
from claudebox.model import FROM_HOST, RO, RW, Origin, Preparation
from claudebox.paths import absolute
from claudebox.record import Record
from claudebox.sandbox.mounts import find_holder
from claudebox.settings import MountWish, Word

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


def _mentions(words: tuple[Word, ...]) -> list[tuple[str, Word]]:
    """Every option of claude that takes a path, and the path with where that was said."""
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


def _mention(option: Word, value: Word) -> tuple[str, Word]:
    """A path counts as typed if both words are: a typed prompt after an option in a file may happen to be a path."""
    if option.origin.is_typed and value.origin.is_typed:
        return option.text, value.replace(origin=Origin.of_option(option.text, REASON))
    said = option.origin if value.origin.is_typed else value.origin
    return option.text, value.replace(origin=said.replace(reason=REASON))


def decide(facts: Facts, draft: Draft) -> Contribution:
    """Ask for what the options name and the box lacks. If it does not exist, claude itself complains best."""
    tree, wishes, preparations = facts.tree, [], []
    for option, said in _mentions(facts.words):
        path = absolute(said.text, facts.project, facts.home)
        above = find_holder(path, draft.mounts)
        if said.text.startswith("{") or above is None or above.kind in FROM_HOST:
            continue
        rule = PATH_OPTIONS[option]
        directory = tree.resolve(posixpath.dirname(path))
        if rule.creates and directory is not None and tree.lstat(path) is None:
            new = f"{directory}/{posixpath.basename(path)}"
            preparations.append(Preparation(Preparation.EMPTY_FILE, new))
            wishes.append(MountWish(rule.access, path, "", said.origin, is_new=True))
        elif tree.exists(path):
            wishes.append(MountWish(rule.access, path, "", said.origin))
    return Contribution(wishes=tuple(wishes), preparations=tuple(preparations))
