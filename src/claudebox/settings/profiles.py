"""Reads the user's own files, ~/.claudebox/config.toml and the profiles beside it, and the profiles of claudebox."""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.host import Host
from claudebox.host.tree import Tree
from claudebox.model import BY_DEFAULT, Origin
from claudebox.paths import is_inside, shorten_home
from claudebox.settings.contents import describe, said_in
from claudebox.settings.documents import Document, parse
from claudebox.settings.gather import DEFAULT_PROFILE, refuse_foreign
from claudebox.settings.table import BY_NAME
from claudebox.settings.values import Profile, Statement, Word
from claudebox.state import SHOWN, find_state
from claudebox.state.reach import reach_of

SUFFIXES = (".toml", ".json")
SHIPPED = "claudebox"  # where a profile comes from that the user did not write


def read_own_files(host: Host, named: list[Word]) -> list[Statement]:
    reader = _ProfileReader(host)
    said = reader.read_config()
    for name in named or reader.default():
        said += reader.read_profile(name, ())
    return said


def read_profiles(host: Host, named: list[Word]) -> list[Statement]:
    reader = _ProfileReader(host)
    return [one for name in named for one in reader.read_profile(name, ())]


def list_profiles(host: Host) -> list[Profile]:
    reader = _ProfileReader(host)
    return [reader.described(name) for name in sorted({*reader.own_names(), *shipped_names()})]


class _ProfileReader:
    """Reads each profile once, after those that it builds on."""

    def __init__(self, host: Host) -> None:
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
        path = self._path_of(named)
        document = self._parse(path) if path else self._shipped(named)
        return self._with_profiles(said_in(document), (*chain, name))

    def described(self, name: str) -> Profile:
        named = Word(name, Origin.of_option("--profile"))
        path = self._path_of(named)
        try:
            document = self._parse(path) if path else self._shipped(named)
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
            if one.name == "profile" and isinstance(one.value, Word):
                below += self.read_profile(one.value, chain)
        return below + [expanded(one, self.host) for one in said if one.name != "profile"]

    def _shipped(self, named: Word) -> Document:
        content = shipped_profile(named.text)
        if content is None:
            raise self._unknown(named)
        return parse(content, f"{SHIPPED}:{named.text}.toml", is_json=False)

    def _path_of(self, named: Word) -> str:
        """The path of the user's own profile; "" if there is none of this name."""
        if not _is_name(named.text):
            raise Problem(
                f"{named.origin.shown}: `{named.text}` cannot be the name of a profile",
                f"use letters, digits, - and _\n      the file of `aws` is {SHOWN.profiles}/aws.toml",
            )
        return self._file_of(named.text)

    def _file_of(self, name: str) -> str:
        paths = [f"{self.state.profiles}/{name}{suffix}" for suffix in SUFFIXES]
        found = [path for path in paths if self.host.tree.lstat(path) is not None]
        if len(found) > 1:
            raise Problem(f"there are two profiles `{name}`: {found[0]} and {found[1]}", "remove one of them")
        return found[0] if found else ""

    def _parse(self, path: str) -> Document:
        shown = shorten_home(path, self.host.person.home)
        return parse(self._content(path), shown, is_json=path.endswith(".json"))

    def _content(self, path: str) -> bytes:
        """The content. A file that an agent can write is refused: it would choose what enters the next box."""
        tree = self.host.tree
        if is_inside(path, self.state.directory):
            refuse_foreign(tree, path, self.host.person.uid)
        if self.reach.leads_through(path):
            raise Problem(
                f"{path} comes from where an agent can write: {tree.resolve(path)}",
                "keep a copy instead of a symlink: cp --remove-destination",
            )
        content = tree.read(path)
        if content is None:
            raise Problem(f"{path} cannot be read", "it must be a file of yours; see: ls -lL")
        return content

    def _unknown(self, named: Word) -> Problem:
        from difflib import get_close_matches

        from claudebox.settings.mistakes import REMOVED

        names = sorted({*self.own_names(), *shipped_names()})
        stem = _stem(named.text)
        near = get_close_matches(stem, names, 1)
        to_write = f"to list them: claudebox --profile\n      to write it: {SHOWN.profiles}/{stem}.toml"
        hint = REMOVED.get(f"--profile {stem}") or (f"did you mean `{near[0]}`?" if near else to_write)
        return Problem(f"{named.origin.shown}: there is no profile `{named.text}`", hint)


def _stem(name: str) -> str:
    """The name without the suffix, which somebody may have typed."""
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)


def _is_name(text: str) -> bool:
    plain = text.replace("-", "").replace("_", "").replace(".", "")
    return plain.isascii() and plain.isalnum() and not text.startswith(".")


DIRECTORY = __file__.rpartition("/")[0] + "/profiles"
SUFFIX = ".toml"


def shipped_names() -> list[str]:
    names = Tree().entries(DIRECTORY) or [file.rpartition("/")[2] for file in _packed()]
    return [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]


def shipped_profile(name: str) -> bytes | None:
    if name not in shipped_names():
        return None
    file = f"{DIRECTORY}/{name}{SUFFIX}"
    content = Tree().read(file)
    return next((packed for packed_as, packed in _packed().items() if file.endswith(f"/{packed_as}")), content)


def _packed() -> dict[str, bytes]:
    """The profiles, if claudebox is a single file: the loader of this module then has all files."""
    files: dict[str, bytes] = getattr(__spec__.loader, "files", {})
    return {name: content for name, content in files.items() if name.endswith(SUFFIX)}


def expanded(said: Statement, host: Host) -> Statement:
    """The same, with the values of the variables in it."""
    value = BY_NAME[said.name].type.expanded(said.value, host.environ, host.person.home)
    return said.replace(value=value)
