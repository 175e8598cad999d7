"""Decides which packages of Nix the box gets, and which paths of the store they are.

Nix's answers are kept beside the user's files, where no box can write, for as long as the same question would have the
same answer: then no Nix is started. Beside each answer is a symlink that keeps the garbage collector away.
"""

from __future__ import annotations

import posixpath

from claudebox.errors import Problem
from claudebox.features.nix import Nix, Package
from claudebox.features.nix.references import (
    HASH_LENGTH,
    Reference,
    check_registered,
    is_store_path,
    read_reference,
    short_name,
)
from claudebox.host import Host, pinned
from claudebox.host.programs import find_all
from claudebox.host.system import NIX_STORE
from claudebox.host.tree import Tree, sha256
from claudebox.model import Finding, Grant, Origin
from claudebox.paths import expand_home
from claudebox.record import Record
from claudebox.settings.table import OFF
from claudebox.settings.values import Settings
from claudebox.state import State, find_state, memory
from claudebox.state.memory import Form, Memory
from claudebox.state.reach import host_certificates, reach_of

FORM = Form("What Nix made of a package. claudebox asks Nix again when this directory is gone.", largest=8 << 20)

# Files that decide, beyond the reference itself, what a reference means.
CONFIGURATION = (
    *("~/.config/nix/registry.json", "~/.config/nix/nix.conf"),
    *("/etc/nix/registry.json", "/etc/nix/nix.conf", "/etc/nix/nix.custom.conf"),
)

INSTALL = {
    "apt": "sudo apt install nix-setup-systemd && sudo adduser $USER nix-users\n      or see https://nixos.org/download",
    "pacman": "sudo pacman -S nix && sudo systemctl enable --now nix-daemon\n      or see https://nixos.org/download",
}
ELSEWHERE = "see https://nixos.org/download"
WITHOUT = "\n      or do without packages"


class Inquiry(Record):
    """What Nix is asked for, and how it is started."""

    nix: str
    environment: dict[str, str]
    references: tuple[str, ...]
    state: State  # where the answers are kept
    meaning: str  # of the references, see `find_meaning`


def plan_packages(host: Host, settings: Settings, nix: Nix | None) -> tuple[Package, ...]:
    """Every package once, in the order in which they were asked for. Nix has to resolve those without paths."""
    wanted = find_wanted(settings)
    if settings.nix.text == OFF and (nix is None or not nix.shows_store):
        raise Problem(
            f"{settings.packages[0].origin.shown}: packages are in the Nix store, and {settings.nix.origin.shown} "
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
    for reference in map(read_reference, settings.packages):
        found.setdefault(reference.text, reference)
    return tuple(found.values())


def _recall(host: Host, wanted: Reference, meaning: str) -> Package:
    recalled = memory.recall(host.tree, find_state(host).package(wanted.text), FORM, host.person.uid)
    package = read_record(recalled, wanted.text, meaning, wanted.named.origin)
    if package is None or not all(map(host.tree.lstat, package.paths)):
        return Package(wanted.text, (), (), wanted.named.origin)
    return package


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


def record_lines(reference: str, meaning: str, paths: list[str], closure: list[str]) -> list[str]:
    return [meaning, reference, *(f"path {path}" for path in paths), *(f"with {path}" for path in closure)]


def read_record(recalled: Memory, reference: str, meaning: str, origin: Origin) -> Package | None:
    """The package that a record describes; None if it is about something else, or not whole."""
    if recalled.lines[:2] != (meaning, reference):
        return None
    rows = [line.partition(" ") for line in recalled.lines[2:]]
    paths = tuple(path for kind, _, path in rows if kind == "path")
    closure = tuple(path for kind, _, path in rows if kind == "with")
    is_sound = len(paths) + len(closure) == len(rows) and all(map(is_store_path, (*paths, *closure)))
    return Package(reference, paths, closure, origin) if is_sound and paths and closure else None


def store_name(path: str) -> str:
    """The name of a store path, without its hash."""
    return path[len(NIX_STORE) + 1 + HASH_LENGTH + 1 :] if is_store_path(path) else path


def package_text(package: Package) -> str:
    return f"{short_name(package.reference)} ({stored(package) or 'not resolved yet'})"


def stored(package: Package) -> str:
    return ", ".join(map(store_name, package.paths))


def grant(package: Package) -> Grant:
    """The version does not matter: the box can read the whole store anyway."""
    return Grant((("package", package.reference),), package.origin.shown, (package_text(package),))


def check_may_ask(host: Host, wanted: Reference) -> None:
    """Raise a Problem if Nix cannot be asked for a package, or must not be."""
    rule = wanted.named.origin.shown
    check_registered(host.tree, host.person.home, wanted)
    if not find_nix(host):
        from claudebox.host.system import find_distribution

        manager = find_distribution(host.tree).manager
        raise Problem(
            f"{rule}: packages come from Nix, which is not installed on this host",
            INSTALL.get(manager, ELSEWHERE) + WITHOUT,
        )
    if not host.tree.is_dir(NIX_STORE):
        raise Problem(
            f"{rule}: packages are in {NIX_STORE}, which this host does not have, although Nix is installed",
            "start its daemon: sudo systemctl enable --now nix-daemon" + WITHOUT,
        )


def plan_inquiry(host: Host, packages: tuple[Package, ...]) -> Inquiry:
    nix = find_nix(host)
    return Inquiry(
        nix=nix,
        environment=nix_environment(host, nix),
        references=tuple(package.reference for package in packages),
        state=find_state(host),
        meaning=find_meaning(host),
    )


def give_up(settings: Settings, failures: dict[str, str]) -> Settings:
    """The settings without the packages that Nix does not have, each with a note that says why."""
    wanted = find_wanted(settings)
    lost = [one for one in wanted if one.text in failures]
    notes = [Finding(Finding.NOTE, short_name(one.text), f"not in the box: {failures[one.text]}") for one in lost]
    return settings.replace(
        packages=tuple(one.named for one in wanted if one not in lost), findings=(*settings.findings, *notes)
    )


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
