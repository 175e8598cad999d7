"""Reads the names of packages.

Nix evaluates on the host, outside of every box, and for a repository it runs git there, whose configuration can name
programs. So only known forms of references are accepted, and none that means a directory of this host: an agent may
have written what is there, or be able to.
"""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.host.system import NIX_STORE
from claudebox.host.tree import Tree
from claudebox.paths import expand_home, is_below, normalize
from claudebox.record import Record
from claudebox.settings import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NIXPKGS = "nixpkgs#"
LONGEST = 1000

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset("0123456789")
_FIRST = _LETTERS | _DIGITS | {"_"}
_NAME = _FIRST | frozenset("-.+'^,*")
_ID = _FIRST | {"-"}
_BRANCH = _ID | frozenset("./")
_URL = _BRANCH | frozenset("~:[]@!$&'()*+,;=%")

REGISTERED = "flake"
REMOTE = frozenset(
    "github gitlab sourcehut http https git git+http git+https git+ssh hg+http hg+https hg+ssh "
    "tarball+http tarball+https file+http file+https".split()
)
LOCAL = frozenset("path file git+file hg+file tarball+file file+file".split())  # in registries

# They say which flake a name such as `nixpkgs` means.
REGISTRIES = ("/etc/nix/registry.json", "~/.config/nix/registry.json")
USAGE = "a name in nixpkgs: ripgrep\n      or a flake reference: github:owner/repository#name"


class Reference(Record):
    """A package as Nix is asked for it."""

    text: str
    named: Word  # as somebody asked for it
    registered: str = ""  # the name that the registry of flakes is asked for


def read_reference(named: Word) -> Reference:
    """Read a reference. Raises a Problem for everything else: Nix would find a meaning for it, perhaps a path."""
    text = named.text
    if not text or text.startswith("-") or not text.isprintable() or " " in text or len(text) > LONGEST:
        raise _refused(named)
    if _is_name(text):
        return Reference(NIXPKGS + text, named, registered="nixpkgs")
    location = text.partition("#")[0].partition("?")[0]
    scheme, colon, path = location.partition(":")
    if colon and scheme in REMOTE and _is_url(location) and not path.removeprefix("//").startswith("-"):
        return Reference(text, named)
    indirect = path if colon and scheme == REGISTERED else location
    if (not colon or scheme == REGISTERED) and _is_indirect(indirect):
        return Reference(text, named, registered=indirect.partition("/")[0])
    raise _refused(named)


def short_name(reference: str) -> str:
    """The name that people use for a package."""
    return reference.removeprefix(NIXPKGS)


def _refused(named: Word) -> Problem:
    return Problem(f"{named.origin.shown}: `{named.text[:LONGEST]}` is not the name of a package", USAGE)


def _is_name(text: str) -> bool:
    return text[0] in _FIRST and _NAME.issuperset(text)


def _is_url(text: str) -> bool:
    """Whether Nix reads it as a URL. It takes anything else for a path below where it was started."""
    return _URL.issuperset(text) and ".." not in text.split("/")


def _is_indirect(text: str) -> bool:
    """Whether it names an entry of the registry, perhaps with a branch. Nix takes anything else for a path."""
    name, slash, branch = text.partition("/")
    is_branch = branch[:1].isalnum() and _BRANCH.issuperset(branch) and ".." not in branch.split("/")
    return name[:1] in _LETTERS and _ID.issuperset(name) and (is_branch or not slash)


def check_registered(tree: Tree, home: str, reference: Reference) -> None:
    """Raise a Problem if a registry of flakes leads to a directory of this host. The store alone cannot be changed."""
    places = _registered_places(tree, home, reference.registered) if reference.registered else ()
    for place in places:
        if not is_below(normalize(place), NIX_STORE):
            raise Problem(
                f"{reference.named.origin.shown}: {reference.named.text} leads to {place} by a registry of flakes, and "
                "no flake of this host is evaluated: agents may write there",
                f"name a flake elsewhere: github:owner/repository#name\n      or change the entry: {REGISTRIES[1]}",
            )


def _registered_places(tree: Tree, home: str, name: str) -> list[str]:
    """Where on this host the registries of the user and of the system say that a flake is, if any does."""
    entries = [entry for file in REGISTRIES for entry in _entries(tree.text(expand_home(file, home)))]
    names, places = {name}, []
    for _ in entries:  # one entry may lead to another, but to none twice
        for origin, target in entries:
            if origin.get("type") == "indirect" and origin.get("id") not in names:
                continue
            if target.get("type") == "indirect":
                names.add(str(target.get("id")))
            else:
                places.append(_place_of(target))
    return [place for place in dict.fromkeys(places) if place]


def _entries(text: str | None) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The entries of a registry. About one that cannot be read, Nix itself complains."""
    import json

    try:
        flakes = json.loads(text or "{}")["flakes"]
        return [(dict(flake["from"]), dict(flake["to"])) for flake in flakes]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []


def _place_of(target: dict[str, Any]) -> str:
    url = str(target.get("url", ""))
    scheme, _, path = url.partition(":")
    place = str(target.get("path", "")) or (path if scheme in LOCAL else "")
    return "/" + place.lstrip("/") if place else ""


_HASH = frozenset("0123456789abcdfghijklmnpqrsvwxyz")
HASH_LENGTH = 32
_STORE_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._?=")


def is_store_path(path: str) -> bool:
    """Whether it is a whole store path, and no file in one."""
    directory, _, name = path.rpartition("/")
    digest, dash, title = name[:HASH_LENGTH], name[HASH_LENGTH : HASH_LENGTH + 1], name[HASH_LENGTH + 1 :]
    is_hash = len(digest) == HASH_LENGTH and _HASH.issuperset(digest)
    return directory == NIX_STORE and is_hash and dash == "-" and bool(title) and _STORE_NAME.issuperset(title)


def store_paths(text: str) -> list[str]:
    """Every store path that a text names, even if it names a file in one."""
    found = []
    for rest in text.split(f"{NIX_STORE}/")[1:]:
        end = next((at for at, letter in enumerate(rest) if letter not in _STORE_NAME), len(rest))
        path = f"{NIX_STORE}/{rest[:end]}"
        found += [path] if is_store_path(path) else []
    return found
