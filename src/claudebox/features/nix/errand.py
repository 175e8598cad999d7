"""How the host's Nix is asked for packages, and what becomes of what it does not have. Needed only when it is asked."""

from __future__ import annotations

from claudebox.features.nix.packages import (
    find_meaning,
    find_wanted,
)
from claudebox.features.nix.program import (
    find_nix,
    nix_environment,
    written_by_agents,
)
from claudebox.features.nix.references import (
    check_place,
    registered_places,
    short_name,
)
from claudebox.features.system.decide import NIX_STORE
from claudebox.host import Host
from claudebox.model import (
    Finding,
    Package,
)
from claudebox.problem import Problem
from claudebox.record import Record
from claudebox.settings.values import (
    Named,
    Settings,
)
from claudebox.state import State

INSTALL = {
    "apt": "sudo apt install nix-setup-systemd && sudo adduser $USER nix-users\n      or see https://nixos.org/download",
    "pacman": "sudo pacman -S nix && sudo systemctl enable --now nix-daemon\n      or see https://nixos.org/download",
}
ELSEWHERE = "see https://nixos.org/download"
WITHOUT = "\n      or do without packages"


class Errand(Record):
    """What Nix is asked, and how."""

    nix: str
    environment: dict[str, str]
    references: tuple[str, ...]
    state: State  # where the answers are kept
    meaning: str  # of the references, see `find_meaning`


def check_errand(host: Host, named: Named, registered: str) -> None:
    """Raise if Nix cannot be asked for a package, or must not: `registered` is what the registry is asked for."""
    rule = named.origin.rule
    for place in registered_places(host.tree, host.person.home, registered) if registered else ():
        if host.tree.exists(place):
            check_place(host.tree, named, place, written_by_agents(host))
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


def plan_errand(host: Host, packages: tuple[Package, ...]) -> Errand:
    nix = find_nix(host)
    return Errand(
        nix=nix,
        environment=nix_environment(host, nix),
        references=tuple(package.reference for package in packages),
        state=State(host.person.home),
        meaning=find_meaning(host),
    )


def give_up(host: Host, settings: Settings, failures: dict[str, str]) -> Settings:
    """Without what Nix does not have, each with the reason."""
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


def strict_problem(failures: dict[str, str]) -> Problem:
    (reference, reason), *others = failures.items()
    more = f" (and {len(others)} more)" if others else ""
    return Problem(
        f"--strict: {short_name(reference)} is not to be had{more}: {reason}",
        "look for its name: https://search.nixos.org\n      or start without it: leave out --strict",
    )
