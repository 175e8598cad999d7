"""Finds the Nix of the host that is asked, and the variables with which it is started."""

from __future__ import annotations

import posixpath

from claudebox import pinned
from claudebox.host import Host
from claudebox.host.programs import find_all
from claudebox.reach import host_certificates, reach_of

NIX_PLACES = ("/run/current-system/sw/bin", "/nix/var/nix/profiles/default/bin")
SYSTEM_PLACES = ("/usr/local/bin", "/usr/bin", "/bin")
# Variables of Nix, git and ssh that only say how to reach the world.
PASSED = (
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
    *("HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSH_AUTH_SOCK"),
)


def find_nix(host: Host) -> str:
    """The Nix that came with claudebox, else the first one that no agent can have put there, else ""."""
    if nix := pinned.PROGRAMS.get("nix"):
        return nix
    search_path = ":".join((host.environ.get("PATH", ""), *NIX_PLACES, *SYSTEM_PLACES))
    reach = reach_of(host)
    for path in find_all(host.tree, "nix", search_path, host.cwd):
        if not reach.leads_through(path):
            return host.tree.resolve(path) or path
    return ""


def nix_environment(host: Host, nix: str) -> dict[str, str]:
    """A new environment. What a project sets (NIX_CONFIG, NIX_PATH, GIT_SSH_COMMAND, PATH, …) must not count."""
    git = pinned.PROGRAMS.get("git", "")
    places = (posixpath.dirname(nix), posixpath.dirname(git), *NIX_PLACES, *SYSTEM_PLACES)
    certificates = host_certificates(reach_of(host), host.environ) or pinned.CERTIFICATES
    return {
        "HOME": host.person.home,
        "USER": host.person.name,
        "LC_ALL": "C.UTF-8",
        "PATH": ":".join(dict.fromkeys(place for place in places if place)),
        "GIT_TERMINAL_PROMPT": "0",
        **({"NIX_SSL_CERT_FILE": certificates, "SSL_CERT_FILE": certificates} if certificates else {}),
        **{name: host.environ[name] for name in PASSED if name in host.environ},
    }
