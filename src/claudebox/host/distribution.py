"""The distribution, and how it installs packages. This is needed only when something is missing."""

from __future__ import annotations

from claudebox.host.tree import Tree
from claudebox.record import Record

INSTALL = {
    "apt": "sudo apt install",
    "dnf": "sudo dnf install",
    "pacman": "sudo pacman -S",
    "zypper": "sudo zypper install",
    "apk": "sudo apk add",
    "nix": "nix profile install",
}
MANAGER_OF = {
    "debian": "apt",
    "ubuntu": "apt",
    "fedora": "dnf",
    "rhel": "dnf",
    "centos": "dnf",
    "arch": "pacman",
    "suse": "zypper",
    "opensuse": "zypper",
    "alpine": "apk",
    "nixos": "nix",
}
# Programs whose package has another name.
PACKAGE_OF = {"bwrap": "bubblewrap", "pasta": "passt", "nft": "nftables", "env": "coreutils"}


class Distribution(Record):
    """What /etc/os-release says."""

    title: str
    ids: tuple[str, ...]  # its own name and those of the distributions that it resembles

    @property
    def manager(self) -> str:
        return next((MANAGER_OF[name] for name in self.ids if name in MANAGER_OF), "")


def find_distribution(tree: Tree) -> Distribution:
    values: dict[str, str] = {}
    for line in (tree.text("/etc/os-release") or "").splitlines():
        name, separator, value = line.partition("=")
        if separator:
            values[name.strip()] = value.strip().strip("\"'")
    ids = (values.get("ID", ""), *values.get("ID_LIKE", "").split())
    return Distribution(values.get("PRETTY_NAME", "Linux"), ids)


def install_command(tree: Tree, *programs: str) -> str:
    """The command that installs these programs."""
    manager = find_distribution(tree).manager
    packages = [PACKAGE_OF.get(program, program) for program in programs]
    if not manager:
        return f"install the package{'s' * (len(packages) > 1)} {' and '.join(packages)}"
    prefix = "nixpkgs#" if manager == "nix" else ""
    return " ".join([INSTALL[manager], *(prefix + package for package in packages)])
