"""A curated /etc: what programs need to run, and never all of it."""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.host.system import NIX_STORE
from claudebox.host.tree import Tree
from claudebox.model import (
    HIDE,
    RO,
    SYMLINK,
    Mount,
    Origin,
)

ETC = Origin("etc", "configuration that programs need to run")
JAVA = "java-"  # Debian keeps the configuration of each JVM in /etc
# What programs read from /etc. Never all of it: that holds keys, passwords and the host's identity.
ETC_ENTRIES = (
    "alternatives",
    "bash.bashrc",
    "bashrc",
    "ca-certificates",
    "crypto-policies",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "manpath.config",
    "nsswitch.conf",
    "os-release",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "profile",
    "protocols",
    "services",
    "ssl/ca-bundle.pem",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "static",  # NixOS: most of /etc are symlinks into it
    "terminfo",
)
PUBLIC_BY_NATURE = ("alternatives", "ca-certificates", "fonts", "ssl/certs", "terminfo")


def etc_mounts(tree: Tree, as_root: bool) -> list[Mount]:
    mounts = []
    java = [name for name in tree.entries("/etc") if name.startswith(JAVA)]
    for name in (*ETC_ENTRIES, *java):
        path = f"/etc/{name}"
        real = tree.resolve(path)
        if real is None or (as_root and not _is_public(tree, real)):
            continue
        if real.startswith(("/usr/", NIX_STORE + "/")):
            # Its target is in the box anyway, and a symlink costs nothing.
            mounts.append(Mount(SYMLINK, path, ETC, source=real))
        else:
            mounts.append(Mount(RO, path, ETC, source=real))
    return mounts


def _is_public(tree: Tree, path: str) -> bool:
    """Readable by everyone. As root everything can be read, and what others may not see must stay out."""
    status = tree.lstat(path)
    return status is not None and bool(status.st_mode & 0o004)


def root_only_hides(tree: Tree, mounts: list[Mount]) -> list[Mount]:
    """What only root may read where administrators keep configuration: in mounted parts of /etc, in /usr/local/etc."""
    directories = [mount.path for mount in mounts if mount.origin is ETC and mount.kind == RO]
    private = [path for path in directories if path.removeprefix("/etc/") not in PUBLIC_BY_NATURE]
    return [hide for path in ("/usr/local/etc", *private) for hide in _root_only(tree, path)]


def _root_only(tree: Tree, directory: str) -> list[Mount]:
    hides: list[Mount] = []
    for name in tree.entries(directory):
        path = f"{directory}/{name}"
        if tree.is_link(path):
            continue
        if not _is_public(tree, path):
            hides.append(Mount(HIDE, path, Origin("root", "only root may read it"), is_dir=tree.is_dir(path)))
        elif tree.is_dir(path):
            hides += _root_only(tree, path)
    return hides


def decide(facts: Facts, _: Draft) -> Contribution:
    mounts = etc_mounts(facts.tree, facts.is_root)
    hides = root_only_hides(facts.tree, mounts) if facts.is_root else []
    return Contribution(mounts=tuple(mounts), hides=tuple(hides))
