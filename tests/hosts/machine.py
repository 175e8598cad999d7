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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claudebox.facts import Facts
from claudebox.host import Host, find_person
from claudebox.host.network import Neighbourhood
from claudebox.host.nix_daemon import Daemon
from claudebox.host.tree import Tree
from claudebox.model import Plan
from claudebox.paths import is_inside
from claudebox.plan import decide, survey
from claudebox.state import State
from saying import gather, parse

TREES = Path(__file__).parent / "trees"
EVERYONE = TREES / "everyone.txt"
# What lets an ordinary account be limited by systemd.
SYSTEMD = """\
/usr/bin/busctl*
/run/user/1000/bus
/run/user/1000/systemd/private
/sys/fs/cgroup/cgroup.controllers: cpuset cpu io memory pids
/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.controllers: cpu memory pids
"""
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
    """Files whose owner and group do not depend on who runs the test.

    What the test made seems to be root's, except claudebox's own state, which is the user's, and what is named. If the
    user of the machine has the uid of who runs the test, all of it is the user's. The group is the owner's own.
    """

    def __init__(self, root: str, state: str, uid: int, owners: dict[str, int], groups: dict[str, int]) -> None:
        super().__init__(root)
        self.state = state
        self.uid = uid
        self.owners = owners
        self.groups = groups

    def lstat(self, path: str) -> os.stat_result | None:
        status = super().lstat(path)
        if status is None:
            return None
        owner = status.st_uid
        if owner == os.getuid() and owner != self.uid:
            owner = self.uid if is_inside(path, self.state) else 0
        owner = self.owners.get(path, owner)
        group = self.groups.get(path, owner)
        if (owner, group) == (status.st_uid, status.st_gid):
            return status
        reduced = status.__reduce__()
        assert isinstance(reduced, tuple)
        fields, more = reduced[1]
        return os.stat_result((*fields[:4], owner, group, *fields[6:]), more)


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
    owners: dict[str, int] = field(default_factory=dict)  # of some files
    groups: dict[str, int] = field(default_factory=dict)

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
        tree = OwnedTree(str(self.root), State(self.home).directory, self.uid, self.owners, self.groups)
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

    def facts(self, *words: str) -> Facts:
        request = parse(list(words))
        host = self.host()
        return survey(host, request, gather(host, request).settings)

    def plan(self, *words: str) -> Plan:
        return decide(self.facts(*words))


def debian(root: Path, special: str = "", **more: Any) -> Machine:
    """An ordinary one, with what is special about it."""
    machine = Machine(root, **more).plant(special)
    return machine.plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())


def plant(root: Path, description: str, home: str = "/home/alice") -> Tree:
    mask = os.umask(0o022)
    for line in description.splitlines():
        if line.strip() and not line.startswith("#"):
            _plant_line(root, line.strip(), home)
    os.umask(mask)
    return Tree(str(root))


def _plant_line(root: Path, line: str, home: str) -> None:
    """Plant one path. Hundreds of thousands are planted in a run, so this is plain `os`."""
    name, is_link, target = line.partition(" -> ")
    name, _, text = name.partition(": ") if not is_link else (name, "", "")
    if name.startswith("~"):
        name = home + name[1:]
    path = f"{root}/{name.removesuffix('*').strip('/')}"
    if name.endswith("/"):
        _directory(path)
    elif is_link:
        _make(path, lambda: os.symlink(target.replace("~", home), path))
    else:
        _make(path, lambda: _write(path, text.replace("~", home), 0o755 if name.endswith("*") else 0o644))


def _make(path: str, make: Callable[[], object]) -> None:
    """Make something unless it is there, in directories that may be missing."""
    try:
        make()
    except FileExistsError:
        return
    except FileNotFoundError:
        _directory(os.path.dirname(path))
        make()


def _write(path: str, text: str, mode: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    if text:
        os.write(file, text.encode().decode("unicode_escape").encode("latin-1"))
    os.close(file)


def _directory(path: str) -> None:
    _make(path, lambda: os.mkdir(path, 0o755))
