"""Decides which packages of Nix the box gets, and which paths of the store they are.

Nix evaluates on the host, outside of every box, and for a repository it runs git there, whose configuration can name
programs. So only known forms of references are accepted, and none that means a directory of this host: an agent may
have written what is there, or be able to.

Nix's answers are kept beside the user's files, where no box can write, for as long as the same question would have the
same answer: then no Nix is started. Beside each answer is a symlink that keeps the garbage collector away.
"""

from __future__ import annotations

import posixpath

from claudebox.errors import Problem
from claudebox.features.nix import PACKAGES, Nix, Package
from claudebox.host import Host, pinned
from claudebox.host.programs import find_all
from claudebox.host.system import NIX_STORE
from claudebox.host.tree import Tree, sha256
from claudebox.model import Finding, Grant
from claudebox.paths import expand_home, is_below, normalize
from claudebox.record import Record
from claudebox.settings import Settings, Word
from claudebox.settings.table import NIX, OFF
from claudebox.state import find_state, memory
from claudebox.state.memory import Form
from claudebox.state.reach import host_certificates, reach_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


PACKAGE = Form("What Nix made of a package. claudebox asks Nix again when this directory is gone.", largest=8 << 20)

# Files that decide, beyond the reference itself, what a reference means.
CONFIGURATION = (
    *("~/.config/nix/registry.json", "~/.config/nix/nix.conf"),
    *("/etc/nix/registry.json", "/etc/nix/nix.conf", "/etc/nix/nix.custom.conf"),
)

DOWNLOAD = "see https://nixos.org/download"
WITHOUT = "\n      or do without packages"


def plan_packages(host: Host, settings: Settings, nix: Nix | None) -> tuple[Package, ...]:
    """Every package once, in the order in which they were asked for. Nix has to resolve those without paths."""
    wanted = find_wanted(settings)
    if settings[NIX].text == OFF and (nix is None or not nix.shows_store):
        raise Problem(
            f"{settings[PACKAGES][0].origin.shown}: packages are in the Nix store, and {settings[NIX].origin.shown} "
            f"{OFF} keeps that out",
            "leave out one of the two",
        )
    meaning = find_meaning(host)
    packages = tuple(_recall(host, one, meaning) for one in wanted)
    for one, package in zip(wanted, packages, strict=True):
        if to_resolve((package,)):
            check_may_ask(host, one)
    return packages


def find_wanted(settings: Settings) -> tuple[Reference, ...]:
    found: dict[str, Reference] = {}
    for reference in map(read_reference, settings[PACKAGES]):
        found.setdefault(reference.text, reference)
    return tuple(found.values())


def _recall(host: Host, wanted: Reference, meaning: str) -> Package:
    """The package, without paths if Nix has to be asked for them."""
    kept = memory.recall(host.tree, find_state(host).package(wanted.text), PACKAGE, host.person.uid)
    is_known = kept[:2] == (meaning, wanted.text) and all(
        is_store_path(path) and host.tree.lstat(path) for path in kept[2:]
    )
    return Package(wanted.text, kept[2:] if is_known else (), wanted.named.origin)


def to_resolve(packages: tuple[Package, ...]) -> tuple[Package, ...]:
    """The packages for which Nix has to be asked."""
    return tuple(package for package in packages if not package.paths)


def program_directories(tree: Tree, packages: tuple[Package, ...]) -> tuple[str, ...]:
    """The directories of the packages that belong on PATH."""
    places = (f"{path}/bin" for package in packages for path in package.paths)
    return tuple(dict.fromkeys(place for place in places if tree.is_dir(place)))


def package_findings(tree: Tree, packages: tuple[Package, ...]) -> list[Finding]:
    texts = {
        package: "has no programs, so nothing of it is on PATH"
        if package.paths
        else "not resolved yet: Nix is asked for it at the start"
        for package in packages
        if not program_directories(tree, (package,))
    }
    return [Finding(Finding.NOTE, short_name(package.reference), text) for package, text in texts.items()]


def find_meaning(host: Host) -> str:
    """A digest of all that decides what references mean: it changes when Nix would read another configuration."""
    files = (expand_home(file, host.person.home) for file in CONFIGURATION)
    contents = [host.tree.read(file) for file in files]
    digests = [sha256(content) if content is not None else "-" for content in contents]
    return sha256(" ".join((host.machine, *digests)).encode())


def package_text(package: Package) -> str:
    return f"{short_name(package.reference)} ({stored(package) or 'not resolved yet'})"


def stored(package: Package) -> str:
    """The names of its store paths, without hashes."""
    return ", ".join(path[len(NIX_STORE) + 1 + HASH_LENGTH + 1 :] for path in package.paths)


def grant(package: Package) -> Grant:
    """The version does not matter: the box can read the whole store anyway."""
    return Grant((("package", package.reference),), package.origin.shown, (package_text(package),))


def check_may_ask(host: Host, wanted: Reference) -> None:
    """Raise a Problem if Nix cannot be asked for a package, or must not be."""
    rule = wanted.named.origin.shown
    check_registered(host.tree, host.person.home, wanted)
    if not find_nix(host):
        what = f"{rule}: packages come from Nix, which is not installed on this host"
        raise Problem(what, DOWNLOAD + WITHOUT)
    if not host.tree.is_dir(NIX_STORE):
        what = f"{rule}: packages are in {NIX_STORE}, which this host does not have, although Nix is installed"
        raise Problem(what, "start its daemon: sudo systemctl enable --now nix-daemon" + WITHOUT)


def give_up(settings: Settings, failures: dict[str, str]) -> Settings:
    """The settings without the packages that Nix does not have, each with a note that says why."""
    wanted = find_wanted(settings)
    lost = [one for one in wanted if one.text in failures]
    notes = [Finding(Finding.NOTE, short_name(one.text), f"not in the box: {failures[one.text]}") for one in lost]
    left = settings.having(PACKAGES, tuple(one.named for one in wanted if one not in lost))
    return left.replace(findings=(*settings.findings, *notes))


NIX_PLACES = ("/run/current-system/sw/bin", "/nix/var/nix/profiles/default/bin")
SYSTEM_PLACES = ("/usr/local/bin", "/usr/bin", "/bin")
# Variables of Nix, git and ssh that only say how to reach the world.
PASSED = (
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
    *("HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSH_AUTH_SOCK"),
)


def find_nix(host: Host) -> str:
    """The Nix that came with claudebox, else the first one that no agent can have put there, else ""."""
    if nix := pinned.PROGRAMS.get("nix"):
        return nix
    reach = reach_of(host)
    for path in find_all(host, "nix", *NIX_PLACES, *SYSTEM_PLACES):
        if not reach.leads_through(path):
            return host.tree.resolve(path) or path
    return ""


def nix_environment(host: Host, nix: str) -> dict[str, str]:
    """A new environment. What a project sets (NIX_CONFIG, NIX_PATH, GIT_SSH_COMMAND, PATH, …) must not count."""
    git = pinned.PROGRAMS.get("git", "")
    places = (posixpath.dirname(nix), posixpath.dirname(git), *NIX_PLACES, *SYSTEM_PLACES)
    certificates = host_certificates(reach_of(host), host.environ) or pinned.CERTIFICATES
    return {
        "HOME": host.person.home,
        "USER": host.person.name,
        "LC_ALL": "C.UTF-8",
        "PATH": ":".join(dict.fromkeys(place for place in places if place)),
        "GIT_TERMINAL_PROMPT": "0",
        **({"NIX_SSL_CERT_FILE": certificates, "SSL_CERT_FILE": certificates} if certificates else {}),
        **{name: host.environ[name] for name in PASSED if name in host.environ},
    }


# The names of packages

NIXPKGS = "nixpkgs#"
LONGEST = 1000

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_FIRST = _LETTERS | frozenset("0123456789_")
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


# Paths of the store

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
