"""Builds a fake machine from a description, one path per line:

    /usr/lib/                       a directory
    /etc/hosts: 127.0.0.1 x\\n       a file with this text
    /usr/bin/env*                   a program
    /usr/bin/tool*: #!/bin/sh\\n     a program with this text
    /bin -> usr/bin                 a symlink
    # a comment

`~` is the user's home. What is above a path comes by itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from claudebox.host import Host
from claudebox.host.network import Neighbourhood
from claudebox.host.nix_daemon import Daemon
from claudebox.host.people import find_person
from claudebox.host.tree import Tree
from claudebox.model import Plan
from claudebox.plan import make_plan
from claudebox.settings.gather import gather
from claudebox.settings.words import parse

TREES = Path(__file__).parent / "trees"
EVERYONE = TREES / "everyone.txt"
PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin"
KIND_DAEMON = Daemon(answers=True, trusts=False)
HOME_NETWORK = Neighbourhood(
    addresses=("127.0.0.1/8", "192.168.1.5/24", "::1/128", "2001:db8:5::5/64", "fe80::5/64"),
    gateways=("192.168.1.1", "fe80::1"),
    has_ipv4=True,
    has_ipv6=True,
    resolvers=("192.168.1.1", "127.0.0.53"),
    search=("search home.example",),
    links=("2001:db8:6::/64",),
)


class OwnedTree(Tree):
    """Files that seem to have another owner than who made them here: all of them, or some by name."""

    def __init__(self, root: str, owner: int | None, owners: dict[str, int]) -> None:
        super().__init__(root)
        self.owner = owner
        self.owners = owners

    def lstat(self, path: str) -> os.stat_result | None:
        found = super().lstat(path)
        owner = self.owners.get(path, self.owner)
        return found if found is None or owner is None else os.stat_result((*found[:4], owner, *found[5:]))


@dataclass
class Machine:
    """A fake machine, and who sits in front of it."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict)
    home: str = "/home/alice"  # its real path
    uid: int = 1000
    architecture: str = "x86_64"
    python: str = "/usr/bin/python3"
    neighbourhood: Neighbourhood = HOME_NETWORK
    nix_daemon: Daemon = KIND_DAEMON
    owner: int | None = None  # of all files; who runs the tests, unless told otherwise
    owners: dict[str, int] = field(default_factory=dict)  # of some files

    def __post_init__(self) -> None:
        self.environ = {"HOME": self.home, "PATH": f"{self.home}/.local/bin:{PLAIN_PATH}"} | self.environ
        self.cwd = f"{self.home}/shop"

    def plant(self, description: str) -> Machine:
        """Add paths. What exists stays as it is, so the more special description comes first."""
        plant(self.root, description, self.home)
        return self

    def give(self, path: str, owner: int, mode: int) -> Machine:
        """Add a file of this owner, whoever runs the test."""
        self.plant(path)
        (self.root / path.lstrip("/")).chmod(mode)
        self.owners[path] = owner
        return self

    def host(self) -> Host:
        tree = OwnedTree(str(self.root), self.owner, self.owners)
        return Host(
            tree=tree,
            environ=self.environ,
            cwd=self.cwd,
            person=find_person(tree, self.uid, self.uid, self.environ["HOME"]),
            hostname="workstation",
            machine=self.architecture,
            python=tree.resolve(self.python) or "",
            own_source="/usr/lib/python3/claudebox",
            neighbourhood=lambda _: self.neighbourhood,
            ask_daemon=lambda: self.nix_daemon,
        )

    def plan(self, *words: str) -> Plan:
        request = parse(list(words))
        host = self.host()
        return make_plan(host, request, gather(host, request).settings)


def plant(root: Path, description: str, home: str = "/home/alice") -> Tree:
    for line in description.splitlines():
        if line.strip() and not line.startswith("#"):
            _plant_line(root, line.strip(), home)
    return Tree(str(root))


def _plant_line(root: Path, line: str, home: str) -> None:
    name, is_link, target = line.partition(" -> ")
    name, _, text = name.partition(": ") if not is_link else (name, "", "")
    if name.startswith("~"):
        name = home + name[1:]
    path = root / name.removesuffix("*").lstrip("/")
    if path.is_symlink() or path.exists():
        return
    if name.endswith("/"):
        _directory(path)
        return
    _directory(path.parent)
    if is_link:
        path.symlink_to(target.replace("~", home))
        return
    path.write_text(text.replace("~", home).encode().decode("unicode_escape"), encoding="latin-1")
    path.chmod(0o755 if name.endswith("*") else 0o644)


def _directory(path: Path) -> None:
    for part in (*reversed(path.parents), path):
        if not part.exists():
            part.mkdir()
            part.chmod(0o755)
