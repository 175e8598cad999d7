"""How this host finds programs, where its certificates are, whether its kernel may refuse to make a box, and how
its distribution installs packages.
"""

from __future__ import annotations

import posixpath

from claudebox.errors import Problem
from claudebox.host import pinned
from claudebox.host.tree import Tree
from claudebox.paths import is_inside
from claudebox.record import Record

BOX_NAME = "claudebox"  # the name of the machine in each box
NIX_STORE = "/nix/store"
NIX_SOCKETS = "/nix/var/nix/daemon-socket"
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
# What of /etc programs need, beside `java-…`. Never all of it: that holds keys, passwords and the host's identity.
# NixOS has `static`: most of /etc are symlinks into it.
JAVA = "java-"
OF_ETC = tuple(
    "alternatives bash.bashrc bashrc ca-certificates crypto-policies fonts ld.so.cache ld.so.conf ld.so.conf.d "
    "localtime manpath.config nsswitch.conf os-release pki/ca-trust pki/tls/cert.pem pki/tls/certs "
    "pki/tls/openssl.cnf profile protocols services ssl/ca-bundle.pem ssl/cert.pem ssl/certs ssl/openssl.cnf static "
    "terminfo".split()
)


class System(Record):
    """How programs are found in the box."""

    is_nix: bool  # there is no real /usr: programs come from the store
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


def find_certificates(tree: Tree, environ: dict[str, str]) -> str:
    """The certificate bundle: the one that a variable names, else the distribution's."""
    for name in CERTIFICATE_VARIABLES:
        named = environ.get(name, "")
        real = tree.resolve(named) if named.startswith("/") and named not in CERTIFICATE_BUNDLES else None
        if real is not None and is_bundle(tree, real):
            return real
    return next((path for path in CERTIFICATE_BUNDLES if tree.is_file(path)), pinned.CERTIFICATES)


def is_bundle(tree: Tree, path: str) -> bool:
    """Whether a file has certificates and no key: a variable must not become a way to show any file of the host."""
    content = tree.read(path, limit=8 << 20) or b""
    return b"-----BEGIN " in content and b"CERTIFICATE-----" in content and b"PRIVATE KEY-----" not in content


def read_hosts(tree: Tree) -> list[list[str]]:
    """The lines of /etc/hosts: an address, and its names."""
    lines = filter(str.isprintable, (tree.text("/etc/hosts") or "").expandtabs(1).splitlines())
    return [words for line in lines if (words := line.split("#")[0].split())]


APPARMOR_SWITCH = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
APPARMOR_PROFILE = "/etc/apparmor.d/bwrap-userns-restrict"
CLONE_SWITCH = "/proc/sys/kernel/unprivileged_userns_clone"
NAMESPACE_LIMIT = "/proc/sys/user/max_user_namespaces"
CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")


def is_in_box(tree: Tree) -> bool:
    """Whether this is a box of claudebox, by the name that a machine has there."""
    return (tree.text("/proc/sys/kernel/hostname") or "").strip() == BOX_NAME


def doubts_namespaces(tree: Tree, bwrap: str) -> bool:
    doubts = (is_in_box, is_container, is_switched_off, is_limited)
    return is_restricted(tree, bwrap) or any(doubt(tree) for doubt in doubts)


def is_restricted(tree: Tree, bwrap: str) -> bool:
    """Whether AppArmor keeps this bwrap from using user namespaces: on Ubuntu, only programs with a profile may."""
    has_profile = bwrap == "/usr/bin/bwrap" and tree.exists(APPARMOR_PROFILE)
    return _value(tree, APPARMOR_SWITCH) == "1" and not has_profile


def keeps_namespaces_from_us(tree: Tree, uid: int) -> bool:
    """Whether AppArmor keeps user namespaces from claudebox itself, which has no profile, as bwrap may have."""
    return uid != 0 and _value(tree, APPARMOR_SWITCH) == "1"


def is_switched_off(tree: Tree) -> bool:
    return _value(tree, CLONE_SWITCH) == "0"


def is_limited(tree: Tree) -> bool:
    return _value(tree, NAMESPACE_LIMIT) == "0"


def is_container(tree: Tree) -> bool:
    """Whether this is a container that filters system calls or masks parts of /proc. Others are like any machine."""
    if all(tree.lstat(mark) is None for mark in CONTAINER_MARKS):
        return False
    is_filtered = "Seccomp:\t0" not in (tree.text("/proc/self/status") or "")
    return is_filtered or " /proc/" in (tree.text("/proc/self/mountinfo") or "")


def _value(tree: Tree, path: str) -> str:
    return (tree.text(path) or "").strip()


# Package managers, how they install, and whose they are.
_MANAGERS = (
    ("apt", "sudo apt install", "debian ubuntu"),
    ("dnf", "sudo dnf install", "fedora rhel centos"),
    ("pacman", "sudo pacman -S", "arch"),
    ("zypper", "sudo zypper install", "suse opensuse"),
    ("apk", "sudo apk add", "alpine"),
    ("nix", "nix profile install", "nixos"),
)
INSTALL = {manager: command for manager, command, _ in _MANAGERS}
MANAGER_OF = {name: manager for manager, _, names in _MANAGERS for name in names.split()}
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
    rows = (line.partition("=") for line in (tree.text("/etc/os-release") or "").splitlines())
    values = {name.strip(): value.strip().strip("\"'") for name, equals, value in rows if equals}
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
