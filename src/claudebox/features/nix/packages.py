"""Decides which packages of Nix the box gets, and which paths of the store they are.

Nix's answers are kept beside the user's files, where no box can write, for as long as the same question would have the
same answer: then no Nix is started. Beside each answer is a symlink that keeps the garbage collector away.
"""

from __future__ import annotations

from claudebox import remembered
from claudebox.features.nix.output import HASH_LENGTH, is_store_path
from claudebox.features.nix.program import find_nix, nix_environment
from claudebox.features.nix.references import check_place, may_change, read_reference, registered_places, short_name
from claudebox.host import Host
from claudebox.host.digest import sha256
from claudebox.host.system import NIX_STORE
from claudebox.host.tree import Tree
from claudebox.model import Finding, Nix, Origin, Package
from claudebox.paths import expand_home
from claudebox.problem import Problem
from claudebox.reach import reach_of
from claudebox.record import Record
from claudebox.remembered import Form, Memory
from claudebox.settings.table import OFF
from claudebox.settings.values import Settings, Word
from claudebox.state import State, find_state

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


class WantedPackage(Record):
    """A package that somebody asked for."""

    reference: str
    named: Word
    registered: str  # the name that the registry of flakes is asked for


class Inquiry(Record):
    """What Nix is asked for, and how it is started."""

    nix: str
    environment: dict[str, str]
    references: tuple[str, ...]
    state: State  # where the answers are kept
    meaning: str  # of the references, see `find_meaning`


def plan_packages(host: Host, settings: Settings, nix: Nix | None) -> tuple[Package, ...]:
    """Every package once, in the order in which they were asked for. Nix has to resolve those without paths."""
    wanted = find_wanted(host, settings)
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
            check_may_ask(host, one.named, one.registered)
    return packages


def find_wanted(host: Host, settings: Settings) -> tuple[WantedPackage, ...]:
    found: dict[str, WantedPackage] = {}
    for named in settings.packages:
        reference = read_reference(named, host.cwd, host.person.home)
        if reference.place:
            check_place(host.tree, named, reference.place, reach_of(host))
        found.setdefault(reference.text, WantedPackage(reference.text, named, reference.registered))
    return tuple(found.values())


def _recall(host: Host, wanted: WantedPackage, meaning: str) -> Package:
    path = find_state(host).package(wanted.reference)
    memory = remembered.recall(host.tree, path, FORM, host.person.uid)
    package = read_record(memory, wanted.reference, meaning, wanted.named.origin)
    if package is None or not all(map(host.tree.lstat, package.paths)):
        return Package(wanted.reference, (), (), wanted.named.origin)
    return package


def to_resolve(packages: tuple[Package, ...]) -> tuple[Package, ...]:
    """The packages for which Nix has to be asked. Only Nix knows whether a flake on this host has changed."""
    return tuple(package for package in packages if not package.paths or may_change(package.reference))


def program_directories(tree: Tree, packages: tuple[Package, ...]) -> tuple[str, ...]:
    """The directories of the packages that belong on PATH."""
    places = (f"{path}/bin" for package in packages for path in package.paths)
    return tuple(dict.fromkeys(place for place in places if tree.is_dir(place)))


def package_findings(tree: Tree, packages: tuple[Package, ...]) -> list[Finding]:
    findings = [
        Finding(Finding.NOTE, short_name(package.reference), "not resolved yet: Nix is asked for it at the start")
        for package in packages
        if not package.paths
    ]
    findings += [
        Finding(Finding.NOTE, short_name(package.reference), "has no programs, so nothing of it is on PATH")
        for package in packages
        if package.paths and not program_directories(tree, (package,))
    ]
    return findings


def find_meaning(host: Host) -> str:
    """A digest of all that decides what references mean: it changes when Nix would read another configuration."""
    files = (expand_home(file, host.person.home) for file in CONFIGURATION)
    contents = [host.tree.read(file) for file in files]
    digests = [sha256(content) if content is not None else "-" for content in contents]
    return sha256(" ".join((host.machine, *digests)).encode())


def record_lines(reference: str, meaning: str, paths: list[str], closure: list[str]) -> list[str]:
    return [meaning, reference, *(f"path {path}" for path in paths), *(f"with {path}" for path in closure)]


def read_record(memory: Memory, reference: str, meaning: str, origin: Origin) -> Package | None:
    """The package that a record describes; None if it is about something else, or not whole."""
    if memory.lines[:2] != (meaning, reference):
        return None
    rows = [line.partition(" ") for line in memory.lines[2:]]
    paths = tuple(path for kind, _, path in rows if kind == "path")
    closure = tuple(path for kind, _, path in rows if kind == "with")
    is_sound = len(paths) + len(closure) == len(rows) and all(map(is_store_path, (*paths, *closure)))
    return Package(reference, paths, closure, origin) if is_sound and paths and closure else None


def store_name(path: str) -> str:
    """The name of a store path, without its hash."""
    return path[len(NIX_STORE) + 1 + HASH_LENGTH + 1 :] if is_store_path(path) else path


def check_may_ask(host: Host, named: Word, registered: str) -> None:
    """Raise a Problem if Nix cannot be asked for a package, or must not be.

    `registered` is the name that Nix would look up in its registry of flakes.
    """
    rule = named.origin.shown
    for place in registered_places(host.tree, host.person.home, registered) if registered else ():
        if host.tree.exists(place):
            check_place(host.tree, named, place, reach_of(host))
    if not find_nix(host):
        from claudebox.host.distribution import find_distribution

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


def give_up(host: Host, settings: Settings, failures: dict[str, str]) -> Settings:
    """The settings without the packages that Nix does not have, each with a note that says why."""
    wanted = find_wanted(host, settings)
    return settings.replace(
        packages=tuple(one.named for one in wanted if one.reference not in failures),
        findings=(
            *settings.findings,
            *(
                Finding(Finding.NOTE, short_name(one.reference), f"not in the box: {failures[one.reference]}")
                for one in wanted
                if one.reference in failures
            ),
        ),
    )
