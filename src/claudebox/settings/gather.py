"""Gathers the settings from every place where they can be. Each layer overrides the one before it:

built-in ← ~/.claudebox/config.toml ← profiles ← the project's .claudebox.toml ← CLAUDEBOX_* variables ← options
"""

from __future__ import annotations

import stat

from claudebox.errors import Problem, quote
from claudebox.host import Host
from claudebox.host.tree import OTHERS_CAN_WRITE, Tree
from claudebox.model import Finding, Origin
from claudebox.record import Record
from claudebox.settings import PROJECT_FILE, Settings, Statement, Word
from claudebox.settings.table import OTHER_VARIABLES, PROFILE, Setting, Table
from claudebox.settings.types import LIST, VALUE
from claudebox.settings.words import Request
from claudebox.state import find_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from claudebox.settings.files import ProjectFile

DEFAULT_PROFILE = "default"


class Said(Record):
    """The settings of all layers, and what the project asks for in addition."""

    settings: Settings
    project: ProjectFile | None


def gather(table: Table, host: Host, request: Request, decided: ProjectFile | None = None) -> Said:
    """`decided` is the project's file as the user was just asked about it. The one on disk may have changed since."""
    variables = from_variables(table, host.environ)
    options = from_options(table, request.said)
    own = _own_files(table, host, variables, options)
    project = decided
    if project is None and host.tree.lstat(f"{host.cwd}/{PROJECT_FILE}") is not None:
        from claudebox.settings.files import read_project_file

        project = read_project_file(table, host, merge(own))
    if project is not None:
        own += _in_force(table, host, project)
    settings = merge([*own, *variables, *options])
    return Said(settings.replace(findings=_findings(project)), project)


def from_options(table: Table, words: tuple[tuple[str, str], ...]) -> list[Statement]:
    """Parse what was typed: pairs of a setting's name and its text."""
    typed = [(table.by_name[name], text) for name, text in words]
    return [
        _said(setting, text, Origin.of_option(setting.option))
        for setting, text in typed
        if setting.kind in (VALUE, LIST)
    ]


def from_variables(table: Table, environ: dict[str, str]) -> list[Statement]:
    """Parse our variables. One that is nearly ours is refused: whoever set it believes that it counts."""
    for name in environ:
        letters = name.upper().replace("_", "").replace("-", "")
        is_like_ours = letters.startswith("CLAU") and "BOX" in letters[: len("CLAUDEBOX")]
        if is_like_ours and name not in (*table.by_variable, *OTHER_VARIABLES):
            from claudebox.settings.mistakes import refuse_variable

            refuse_variable(table, name)
    said = []
    for variable, setting in table.by_variable.items():
        text = environ.get(variable, "")
        parts = [part.strip() for part in text.split(",")] if setting.kind == LIST else [text]
        said += [_said(setting, part, Origin.of_variable(variable)) for part in parts if part]
    return said


def _said(setting: Setting[object], text: str, origin: Origin) -> Statement:
    return Statement(setting, setting.type.parse(Word(text, origin), setting.name))


def merge(said: list[Statement]) -> Settings:
    """Merge statements in the order of the layers: the last value wins, lists add up, and nothing undoes a hide."""
    merged: dict[str, Any] = {}
    lists: dict[str, dict[Any, Any]] = {}
    for one in said:
        field = one.setting.field
        if one.setting.kind == VALUE:
            merged[field] = one.value
        else:
            known = lists.setdefault(field, {})
            known[len(known) if one.setting.type.repeats else one.value] = one.value
    for one in said:
        key, implied = one.setting.implies
        if key and one.value.origin.is_typed:
            merged.setdefault(key, Word(implied, one.value.origin))
    return Settings(merged | {field: tuple(known.values()) for field, known in lists.items()})


def _findings(project: ProjectFile | None) -> tuple[Finding, ...]:
    if project is None or not project.wishes or project.granted:
        return ()
    names = ", ".join(dict.fromkeys(wish.setting.key for wish in project.wishes))
    why = "you said no (change the file to be asked again)" if project.granted is False else "nobody was asked yet"
    return (Finding(Finding.NOTE, PROJECT_FILE, f"asks for more ({names}) and does not get it: {why}"),)


def _in_force(table: Table, host: Host, project: ProjectFile) -> list[Statement]:
    """What counts of the project's file, which may name profiles, too.

    Variables are replaced only in what the user granted. What counts without a yes must not depend on their values: the
    agent would see the difference.
    """
    from claudebox.settings.files import expanded, read_profiles

    granted = project.wishes if project.granted else ()
    rest = (expanded(one, host) for one in granted if one.setting is not PROFILE)
    return [*read_profiles(table, host, _profiles_in(granted)), *project.tightening, *rest]


def _own_files(table: Table, host: Host, variables: list[Statement], options: list[Statement]) -> list[Statement]:
    """The settings in the user's own files. Most people have none: then nothing more is imported."""
    state = find_state(host)
    place = host.tree.lstat(state.directory)
    if place is not None and stat.S_ISLNK(place.st_mode):  # a box may see where it leads
        what = f"{state.directory} is not a directory, but a symlink"
        raise Problem(what, f"see where it leads: ls -ld {quote(state.directory)}")
    for path in (state.directory, state.profiles):
        refuse_foreign(host.tree, path, host.person.uid)
    named = _profiles_in(options) or _profiles_in(variables)
    if not named and all(host.tree.lstat(path) is None for path in (state.config, state.profiles)):
        return []
    from claudebox.settings.files import read_own_files

    return read_own_files(table, host, named)


def _profiles_in(said: Iterable[Statement]) -> list[Word]:
    return [one.value for one in said if one.setting is PROFILE and isinstance(one.value, Word)]


def refuse_foreign(tree: Tree, path: str, uid: int) -> None:
    """Refuse settings that somebody else can write."""
    status = tree.status(path)
    if status is not None and status.st_mode & OTHERS_CAN_WRITE:
        what = f"others can write {path}, where your settings are"
        raise Problem(what, f"see that all in it is yours, then: chmod o-w {quote(path)}")
    if status is not None and status.st_uid not in (uid, 0):
        what = f"{path} belongs to another user (uid {status.st_uid})"
        raise Problem(what, f"see what it says, and whether HOME is yours: ls -lL {quote(path)}")
