"""The operating system in the box: programs, a curated /etc, empty writable places."""

from __future__ import annotations

import posixpath

from claudebox import pinned
from claudebox.host.tree import Tree
from claudebox.model import (
    DEV,
    FILE,
    HIDE,
    PROC,
    RO,
    RW,
    SYMLINK,
    TMPFS,
    Mount,
    Origin,
    Person,
)
from claudebox.paths import is_inside
from claudebox.problem import Problem
from claudebox.reach import Reach
from claudebox.record import Record

BOX = Origin.of_rule("box", "made for this box, gone when it ends")
SYSTEM = Origin.of_rule("system", "programs and libraries of this system")
ETC = Origin.of_rule("etc", "configuration that programs need to run")
IDENTITY = Origin.of_rule("identity", "written for this box instead of the host's file")
RESOLVER = Origin.of_rule("resolver", "name servers")
STORE_ORIGIN = Origin.of_rule("nix", "the Nix store")

NIX_STORE = "/nix/store"
ROOT_TREES = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")

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
# Of /proc, for root alone: other accounts may not touch these anyway.
KERNEL_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq")
KERNEL_HIDDEN = (
    *("/proc/acpi", "/proc/asound", "/proc/driver", "/proc/kcore", "/proc/latency_stats", "/proc/mtrr"),
    *("/proc/sched_debug", "/proc/scsi", "/proc/sysrq-trigger", "/proc/timer_list", "/proc/kmsg", "/proc/slabinfo"),
    *("/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/pagetypeinfo", "/proc/vmallocinfo"),
)
KERNEL_SETTINGS = "/proc/sys"  # of which some belong to the namespaces of the box, and so to who made them
KEYS = ("/proc/keys", "/proc/key-users")  # names of what the user has unlocked
JAVA = "java-"  # Debian keeps the configuration of each JVM in /etc

CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "NIX_SSL_CERT_FILE")
CERTIFICATE_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine, Gentoo, Void
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/certs/ca-bundle.crt",  # NixOS
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # RHEL 7
    "/etc/ssl/cert.pem",  # Alpine without ca-certificates
    "/var/lib/ca-certificates/ca-bundle.pem",  # openSUSE, the file itself
)

PLAIN_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
NIX_TOOLS = tuple("bash env git curl jq rg fd nix , grep sed awk find tar gzip less which xargs ps diff".split())

MACHINE_ID = "c1a0deb0c1a0deb0c1a0deb0c1a0deb0"
HOSTNAME = "claudebox"
NOBODY = 65534
ROOT_IN_BOX = 1000


class System(Record):
    """How programs are found in the box."""

    is_nix: bool  # no /usr to speak of: programs come from the store
    path: tuple[str, ...]
    shell: str


def find_system(tree: Tree, host_path: str) -> System:
    is_nix = not tree.is_dir("/usr/lib") and tree.is_dir(NIX_STORE)
    path = pinned.PATH or (_store_path(tree, host_path) if is_nix else ())
    path += tuple(place for place in PLAIN_PATH if not is_nix and tree.is_dir(place))
    bash = next((f"{place}/bash" for place in path if tree.is_executable(f"{place}/bash")), "")
    shell = bash.replace("/usr/bin/bash", "/bin/bash") if tree.is_executable("/bin/bash") else bash
    return System(is_nix, path, shell or "/bin/sh")


def _store_path(tree: Tree, host_path: str) -> tuple[str, ...]:
    """The store directories of the tools that the host has, found through its PATH."""
    places: list[str] = []
    for tool in NIX_TOOLS:
        for entry in host_path.split(":"):
            real = tree.resolve(f"{entry}/{tool}") if entry.startswith("/") else None
            if real is not None and is_inside(real, NIX_STORE):
                places.append(posixpath.dirname(real))
                break
    if not places:
        raise Problem(
            "no program of the Nix store was found on PATH",
            "start claudebox from a login shell, or install it from its flake",
        )
    return tuple(dict.fromkeys(places))


def system_mounts(tree: Tree, system: System) -> list[Mount]:
    mounts: list[Mount] = []
    if not system.is_nix:
        mounts.append(Mount(RO, "/usr", SYSTEM, source="/usr"))
        mounts += _local_tree(tree)
        for path in ROOT_TREES:
            mounts += _root_tree(tree, path)
    else:
        mounts += [_shell_link(tree, path) for path in ("/bin/sh", "/usr/bin/env") if tree.exists(path)]
    return mounts


def _local_tree(tree: Tree) -> list[Mount]:
    """/usr/local, where that is a symlink out of /usr (Fedora Silverblue)."""
    real = tree.resolve("/usr/local") if tree.is_link("/usr/local") else None
    return [Mount(RO, real, SYSTEM, source=real)] if real and not is_inside(real, "/usr") else []


def _root_tree(tree: Tree, path: str) -> list[Mount]:
    """/bin and its like: a symlink where /usr is merged, a directory where not."""
    if tree.is_link(path):
        return [Mount(SYMLINK, path, SYSTEM, source=tree.link_target(path))]
    return [Mount(RO, path, SYSTEM, source=path)] if tree.is_dir(path) else []


def _shell_link(tree: Tree, path: str) -> Mount:
    """NixOS has just two programs outside of the store, for `#!` lines."""
    return Mount(SYMLINK, path, SYSTEM, source=tree.resolve(path) or path)


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
            hides.append(Mount(HIDE, path, Origin.of_rule("root", "only root may read it"), is_dir=tree.is_dir(path)))
        elif tree.is_dir(path):
            hides += _root_only(tree, path)
    return hides


def kernel_masks(tree: Tree) -> list[Mount]:
    """What root owns in /proc, and could therefore write without any capability: the host's core_pattern for one."""
    origin = Origin.of_rule("root", "root's part of the kernel")
    shown = [path for path in KERNEL_READ_ONLY if tree.exists(path)]
    hidden = [path for path in KERNEL_HIDDEN if tree.exists(path)]
    return [
        *(Mount(RO, path, origin, source=path, is_dir=tree.is_dir(path)) for path in shown),
        *(Mount(HIDE, path, origin, is_dir=tree.is_dir(path)) for path in hidden),
    ]


def kernel_covers(tree: Tree) -> list[Mount]:
    """For everybody: settings cannot be changed, and the names of keys, which the kernel shows in every namespace, not
    be seen."""
    origin = Origin.of_rule("kernel", "settings and names of keys")
    settings = Mount(RO, KERNEL_SETTINGS, origin, source=KERNEL_SETTINGS)
    keys = [Mount(HIDE, path, origin, is_dir=False) for path in KEYS if tree.exists(path)]
    return [*([settings] if tree.exists(KERNEL_SETTINGS) else []), *keys]


def resolver_mounts(tree: Tree) -> list[Mount]:
    """The file at the end of the chain of symlinks that /etc/resolv.conf often is."""
    real = tree.resolve("/etc/resolv.conf")
    return [Mount(RO, "/etc/resolv.conf", RESOLVER, source=real)] if real is not None else []


def find_certificates(tree: Tree, environ: dict[str, str]) -> str:
    """The certificate bundle: the one that the user names, else the distribution's."""
    for name in CERTIFICATE_VARIABLES:
        named = environ.get(name, "")
        real = tree.resolve(named) if named.startswith("/") and named not in CERTIFICATE_BUNDLES else None
        if real is not None and _is_bundle(tree, real):
            return real
    return next((path for path in CERTIFICATE_BUNDLES if tree.is_file(path)), pinned.CERTIFICATES)


def host_certificates(tree: Tree, environ: dict[str, str], reach: Reach) -> str:
    """For what runs on the host, beside the box: not a bundle that an agent can write, and so whom to believe."""
    named = {name: environ[name] for name in CERTIFICATE_VARIABLES if name in environ}
    return find_certificates(tree, {name: path for name, path in named.items() if not reach.leads_through(path)})


def _is_bundle(tree: Tree, path: str) -> bool:
    """Certificates and no key: a variable must not become a way to show any file of the host."""
    content = tree.read(path, limit=8 << 20) or b""
    return b"-----BEGIN " in content and b"CERTIFICATE-----" in content and b"PRIVATE KEY-----" not in content


def certificate_mounts(bundle: str, mounts: list[Mount]) -> list[Mount]:
    """The bundle itself, unless a mount already shows it."""
    shown = any(is_inside(bundle, mount.path) for mount in mounts if mount.kind in (RO, RW, SYMLINK))
    if not bundle or shown:
        return []
    return [Mount(RO, bundle, Origin.of_rule("certificates", "to verify TLS connections"), source=bundle)]


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


def empty_places(person: Person) -> list[Mount]:
    """Writable and empty at each start."""
    run = f"/run/user/{person.uid}"
    return [
        Mount(PROC, "/proc", BOX),
        Mount(DEV, "/dev", BOX),
        Mount(TMPFS, "/tmp", BOX, mode=0o1777),
        Mount(TMPFS, "/var/tmp", BOX, mode=0o1777),
        Mount(TMPFS, run, BOX, mode=0o700),
        Mount(TMPFS, person.home, BOX, mode=0o700),
    ]


def home_links(tree: Tree, named_home: str) -> list[Mount]:
    """The symlinks by which the home is known, such as /home -> var/home."""
    return [Mount(SYMLINK, link, BOX, source=target) for link, target in tree.links(named_home)] if named_home else []
