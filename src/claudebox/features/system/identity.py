"""Who the agent is in the box, and what the box is called."""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.host.tree import Tree
from claudebox.model import (
    FILE,
    Mount,
    Origin,
    Person,
)

IDENTITY = Origin("identity", "written for this box instead of the host's file")
MACHINE_ID = "c1a0deb0c1a0deb0c1a0deb0c1a0deb0"
HOSTNAME = "claudebox"
NOBODY = 65534
ROOT_IN_BOX = 1000


def box_person(person: Person) -> Person:
    """Who the agent is. Root becomes an ordinary account: programs refuse to work as root, or trust it too much."""
    if person.uid != 0:
        return person
    return person.replace(uid=ROOT_IN_BOX, gid=ROOT_IN_BOX, name="claude", group="claude")


def identity_files(tree: Tree, person: Person, shell: str, host_name: str) -> list[Mount]:
    passwd = (
        f"root:x:0:0:root:/root:/bin/sh\n{person.name}:x:{person.uid}:{person.gid}::{person.home}:{shell}\n"
        f"nobody:x:{NOBODY}:{NOBODY}:nobody:/:/bin/false\n"
    )
    group = f"root:x:0:\n{person.group}:x:{person.gid}:\nnogroup:x:{NOBODY}:\n"
    files = {"passwd": passwd, "group": group, "hosts": _hosts(tree, host_name), "machine-id": f"{MACHINE_ID}\n"}
    return [_made_file(f"/etc/{name}", text) for name, text in files.items()]


def _made_file(path: str, text: str) -> Mount:
    return Mount(FILE, path, IDENTITY, content=text.encode(errors="surrogateescape"), mode=0o444)


def _hosts(tree: Tree, host_name: str) -> str:
    """The host's names for addresses, without its own name."""
    own = {host_name, host_name.split(".")[0]} - {"localhost"}
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback", f"127.0.1.1 {HOSTNAME}"]
    for line in filter(str.isprintable, (tree.text("/etc/hosts") or "").expandtabs(1).splitlines()):
        words = line.split("#")[0].split()
        names = [name for name in words[1:] if name not in own and name.split(".")[0] not in own]
        if names and "localhost" not in names:
            lines.append(" ".join((words[0], *names)))
    return "\n".join(lines) + "\n"


def decide(facts: Facts, _: Draft) -> Contribution:
    files = identity_files(facts.tree, facts.person, facts.system.shell, facts.host.hostname)
    return Contribution(mounts=tuple(files))
