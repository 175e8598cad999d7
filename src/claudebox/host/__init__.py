"""The only reader of the world: what is true of this machine, read once, changed never."""

from __future__ import annotations

import os

from claudebox.host.people import find_person
from claudebox.host.tree import Tree
from claudebox.model import Person
from claudebox.problem import Problem
from claudebox.record import Record


class Host(Record):
    """The machine as the rules see it."""

    tree: Tree
    environ: dict[str, str]
    cwd: str
    person: Person
    hostname: str
    machine: str
    python: str
    own_source: str  # where claudebox itself is installed


def read_host() -> Host:
    """The real machine."""
    import sys

    tree = Tree()
    environ = dict(os.environ)
    return Host(
        tree=tree,
        environ=environ,
        cwd=_working_directory(),
        person=find_person(tree, os.geteuid(), os.getegid(), environ.get("HOME", "")),
        hostname=os.uname().nodename,
        machine=os.uname().machine,
        python=tree.resolve(sys.executable) or "",
        own_source=tree.resolve(__file__.rpartition("/host/")[0]) or "",
    )


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise Problem("the current directory no longer exists", "cd to your project and try again") from None
