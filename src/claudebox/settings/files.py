"""Reads the files with settings: ~/.claudebox/config.toml, profiles, and .claudebox.toml of the project.

The agent can write the project's file, so by itself that may only take something away. What it would add needs the
user's yes, which is valid only for this content in this project.
"""

from __future__ import annotations

import posixpath

from claudebox.errors import Problem, quote
from claudebox.host import Host
from claudebox.host.tree import Tree, sha256
from claudebox.model import BY_DEFAULT, Origin, Preparation
from claudebox.paths import expand_home, is_inside, shorten_home
from claudebox.record import Record
from claudebox.settings import PROJECT_FILE, MountWish, Settings, Statement, Word
from claudebox.settings.documents import Document, Place, parse, shown
from claudebox.settings.gather import DEFAULT_PROFILE, refuse_foreign
from claudebox.settings.table import PROFILE, Setting, Table
from claudebox.settings.types import VALUE, Program, expand
from claudebox.state import SHOWN, find_state, memory
from claudebox.state.memory import Form
from claudebox.state.reach import reach_of

NAME = "name"
DESCRIPTION = "description"

SUFFIXES = (".toml", ".json")
SHIPPED_PROFILES = __file__.rpartition("/")[0] + "/profiles"

FORM = Form("What you said about settings of projects. Remove this file to be asked again.")
GRANTED, REFUSED = "yes", "no"
MOST_DECISIONS = 1000  # older ones are forgotten, and the user is asked again
MOST_SETTINGS = 500  # more would keep the launch busy, and nobody would read them


# What any file says


def said_in(document: Document) -> tuple[Statement, ...]:
    """Everything that a file says. Raises a Problem if any of it is wrong."""
    said: list[Statement] = []
    for key in document.value:
        if key in (NAME, DESCRIPTION):
            _title(document, key)
        else:
            setting = _setting(document.place(key))
            said += [Statement(setting, value) for value in setting.type.read_all(document.place(key, setting))]
    return tuple(said)


def describe(document: Document) -> str:
    """What the file says about itself, on one line."""
    return _title(document, DESCRIPTION)


def _title(document: Document, key: str) -> str:
    if key not in document.value:
        return ""
    place = document.place(key)
    text = place.expect(str, "a string")
    if not text.isprintable():
        raise place.problem(f"`{key}` has characters that do not show", "it is a title: one line of text")
    return text


def _setting(place: Place) -> Setting[object]:
    key, known = str(place.path[0]), place.document.table.by_key
    if key not in known:
        from difflib import get_close_matches

        from claudebox.settings.mistakes import REMOVED

        near = get_close_matches(key, known, 1)
        others = f"did you mean `{near[0]}`?" if near else "to list them: claudebox --help all"
        raise place.problem(f"unknown key {shown(key)}", REMOVED.get(f"{key} =") or others)
    setting = known[key]
    if setting.is_users and place.document.is_project:
        what = f"`{key}` decides what runs on this host, so a project cannot set it"
        or_option = "" if setting.in_files_only else f"; or use {setting.option}"
        raise place.problem(what, f"it belongs in your own config.toml{or_option}")
    return setting


# The user's own files


class Profile(Record):
    """Settings that can be asked for by name."""

    name: str
    file: str  # as people see it
    description: str


def read_own_files(table: Table, host: Host, named: list[Word]) -> list[Statement]:
    reader = _ProfileReader(table, host)
    said = reader.read_config()
    for name in named or reader.default():
        said += reader.read_profile(name, ())
    return said


def read_profiles(table: Table, host: Host, named: list[Word]) -> list[Statement]:
    reader = _ProfileReader(table, host)
    return [one for name in named for one in reader.read_profile(name, ())]


def list_profiles(table: Table, host: Host) -> list[Profile]:
    reader = _ProfileReader(table, host)
    return [reader.described(name) for name in sorted({*reader.own_names(), *shipped_profiles()})]


class _ProfileReader:
    """Reads each profile once, after those that it builds on."""

    def __init__(self, table: Table, host: Host) -> None:
        self.table = table
        self.host = host
        self.state = find_state(host)
        self.reach = reach_of(host)
        self.done: set[str] = set()

    def read_config(self) -> list[Statement]:
        path = self.state.config
        if self.host.tree.lstat(path) is None:
            return []
        return self._with_profiles(said_in(self._parse(path)), ())

    def default(self) -> list[Word]:
        return [Word(DEFAULT_PROFILE, BY_DEFAULT)] if self._file_of(DEFAULT_PROFILE) else []

    def read_profile(self, named: Word, chain: tuple[str, ...]) -> list[Statement]:
        name = named.text
        if name in chain:
            circle = " → ".join((*chain[chain.index(name) :], name))
            raise Problem(f"{named.origin.shown}: profiles build on each other: {circle}", "take one of them out")
        if name in self.done:
            return []
        self.done.add(name)
        return self._with_profiles(said_in(self._document(named)), (*chain, name))

    def described(self, name: str) -> Profile:
        named = Word(name, Origin.of_option(PROFILE.option))
        path = self._path_of(named)
        try:
            document = self._document(named)
        except Problem as problem:
            # One broken file must not keep the others from being listed.
            return Profile(name, shorten_home(path, self.host.person.home), f"cannot be used: {problem.message}")
        return Profile(name, document.file, describe(document))

    def own_names(self) -> list[str]:
        entries = self.host.tree.entries(self.state.profiles)
        names = [entry.removesuffix(suffix) for entry in entries for suffix in SUFFIXES if entry.endswith(suffix)]
        # An editor leaves files such as .#aws.toml there.
        return [name for name in names if _is_name(name)]

    def _with_profiles(self, said: tuple[Statement, ...], chain: tuple[str, ...]) -> list[Statement]:
        below: list[Statement] = []
        for one in said:
            if one.setting is PROFILE and isinstance(one.value, Word):
                below += self.read_profile(one.value, chain)
        return below + [expanded(one, self.host) for one in said if one.setting is not PROFILE]

    def _document(self, named: Word) -> Document:
        if path := self._path_of(named):
            return self._parse(path)
        content = shipped_profiles().get(named.text)
        if content is None:
            raise self._unknown(named)
        return parse(self.table, content, f"claudebox:{named.text}.toml", is_json=False)

    def _path_of(self, named: Word) -> str:
        """The path of the user's own profile; "" if there is none of this name."""
        if not _is_name(named.text):
            what = f"{named.origin.shown}: `{named.text}` cannot be the name of a profile"
            raise Problem(what, f"use letters, digits, - and _\n      the file of `aws` is {SHOWN.profiles}/aws.toml")
        return self._file_of(named.text)

    def _file_of(self, name: str) -> str:
        paths = [f"{self.state.profiles}/{name}{suffix}" for suffix in SUFFIXES]
        found = [path for path in paths if self.host.tree.lstat(path) is not None]
        if len(found) > 1:
            raise Problem(f"there are two profiles `{name}`: {found[0]} and {found[1]}", "remove one of them")
        return found[0] if found else ""

    def _parse(self, path: str) -> Document:
        shown = shorten_home(path, self.host.person.home)
        return parse(self.table, self._content(path), shown, is_json=path.endswith(".json"))

    def _content(self, path: str) -> bytes:
        """The content. A file that an agent can write is refused: it would choose what enters the next box."""
        tree = self.host.tree
        if is_inside(path, self.state.directory):
            refuse_foreign(tree, path, self.host.person.uid)
        if self.reach.leads_through(path):
            what = f"{path} comes from where an agent can write: {tree.resolve(path)}"
            raise Problem(what, "keep a copy instead of a symlink: cp --remove-destination")
        content = tree.read(path)
        if content is None:
            raise Problem(f"{path} cannot be read", "it must be a file of yours; see: ls -lL")
        return content

    def _unknown(self, named: Word) -> Problem:
        from difflib import get_close_matches

        from claudebox.settings.mistakes import REMOVED

        names = sorted({*self.own_names(), *shipped_profiles()})
        # Somebody may have typed the suffix.
        stem = next((named.text.removesuffix(one) for one in SUFFIXES if named.text.endswith(one)), named.text)
        near = get_close_matches(stem, names, 1)
        to_write = f"to list them: claudebox --profile\n      to write it: {SHOWN.profiles}/{stem}.toml"
        hint = REMOVED.get(f"--profile {stem}") or (f"did you mean `{near[0]}`?" if near else to_write)
        return Problem(f"{named.origin.shown}: there is no profile `{named.text}`", hint)


def _is_name(text: str) -> bool:
    plain = text.replace("-", "").replace("_", "").replace(".", "")
    return plain.isascii() and plain.isalnum() and not text.startswith(".")


def shipped_profiles() -> dict[str, bytes]:
    """The profiles of claudebox, by name. If it is a single file, the loader of this module has all files."""
    tree = Tree()
    packed: dict[str, bytes] = getattr(__spec__.loader, "files", {})
    files = packed or {name: tree.read(f"{SHIPPED_PROFILES}/{name}") or b"" for name in tree.entries(SHIPPED_PROFILES)}
    profiles = {posixpath.basename(name): content for name, content in files.items() if name.endswith(".toml")}
    return {name.removesuffix(".toml"): content for name, content in profiles.items()}


def expanded(said: Statement, host: Host) -> Statement:
    """The same, with the values of the variables in it."""
    value = said.value
    where = value.origin.shown
    if isinstance(value, MountWish):
        paths = [expand(path, where, host.environ) for path in (value.source, value.destination)]
        value = value.replace(source=paths[0], destination=paths[1])
    elif isinstance(value, Word) and said.setting.type.is_path:
        path = expand(value.text, where, host.environ)
        # Of other paths, only who uses them knows whose home `~` is.
        is_hosts = isinstance(said.setting.type, Program)
        value = value.replace(text=expand_home(path, host.person.home) if is_hosts else path)
    return said.replace(value=value)


# The file of the project


class ProjectFile(Record):
    """What the project's file says, and which part of it counts."""

    tightening: tuple[Statement, ...]
    wishes: tuple[Statement, ...]
    content_id: str  # names this content in this project
    granted: bool | None  # None: nobody was asked yet

    @property
    def is_undecided(self) -> bool:
        return bool(self.wishes) and self.granted is None


def read_project_file(table: Table, host: Host, below: Settings) -> ProjectFile:
    """Read the project's file. `below` has the user's own settings, which the project may lower."""
    path = f"{host.cwd}/{PROJECT_FILE}"
    content = host.tree.read_plain(path)
    if content is None:
        hint = f"a symlink is not followed there: use a copy; or, if an agent left it:\n      rm -r {quote(path)}"
        raise Problem(f"{path} is not a plain file that can be read", hint)
    said = said_in(parse(table, content, PROJECT_FILE, is_json=False, is_project=True))
    if len(said) > MOST_SETTINGS:
        what = f"{path} asks for {len(said)} things"
        raise Problem(what, f"no more than {MOST_SETTINGS}: hide directories, not files")
    tightening = tuple(one for one in said if _tightens(one, below))
    for one in tightening:
        if isinstance(one.value, Word) and "$" in one.value.text:
            raise Problem(f"{one.value.origin.shown}: a project's file hides nothing by variable", "write the path out")
    wishes = tuple(one for one in said if not _tightens(one, below))
    content_id = sha256(host.cwd.encode(errors="surrogateescape") + b"\0" + content)
    granted = decisions(host).get(content_id) if wishes else None
    return ProjectFile(tightening, wishes, content_id, granted)


def _tightens(said: Statement, below: Settings) -> bool:
    setting = said.setting
    known = below[setting] if setting.kind == VALUE else None
    return setting.tightens and setting.type.lowers(said.value, known)


def decisions(host: Host) -> dict[str, bool]:
    """What the user decided about such files, by `content_id`. If the memory is damaged, nothing was decided."""
    lines = memory.recall(host.tree, find_state(host).decisions, FORM, host.person.uid)
    words = [line.partition(" ") for line in lines]
    return {content_id: said == GRANTED for said, _, content_id in words if said in (GRANTED, REFUSED)}


def note_decision(host: Host, content_id: str, *, granted: bool) -> tuple[Preparation, ...]:
    """The preparations that note a decision, beside those about other files."""
    others = {name: value for name, value in decisions(host).items() if name != content_id}
    latest = list({**others, content_id: granted}.items())[-MOST_DECISIONS:]
    lines = [f"{GRANTED if value else REFUSED} {name}" for name, value in latest]
    return memory.note_with_directory(find_state(host).decisions, FORM, lines)
