"""Which Nix is asked on the host, and with which variables."""

from __future__ import annotations

import posixpath

from claudebox import pinned
from claudebox.host import Host
from claudebox.host.programs import find_all
from claudebox.host.system import find_certificates
from claudebox.reach import known_projects
from claudebox.state import State
from claudebox.tools import is_in_any

NIX_PLACES = ("/run/current-system/sw/bin", "/nix/var/nix/profiles/default/bin")
SYSTEM_PLACES = ("/usr/local/bin", "/usr/bin", "/bin")
# Of the variables that Nix, git and ssh obey, those that only say how the world is reached.
PASSED = (
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
    *("HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSH_AUTH_SOCK"),
)


def find_nix(host: Host) -> str:
    """The Nix that came with claudebox, else the first one that no agent can have put there. "": none."""
    if nix := pinned.PROGRAMS.get("nix"):
        return nix
    search_path = ":".join((host.environ.get("PATH", ""), *NIX_PLACES, *SYSTEM_PLACES))
    agents = written_by_agents(host)
    for path in find_all(host.tree, "nix", search_path, host.cwd):
        real = host.tree.resolve(path) or path
        if not is_in_any((path, real, *(link for link, _ in host.tree.links(path))), agents):
            return real
    return ""


def nix_environment(host: Host, nix: str) -> dict[str, str]:
    """Made anew: a variable that a project sets (NIX_CONFIG, NIX_PATH, GIT_SSH_COMMAND, PATH, …) must not count."""
    git = pinned.PROGRAMS.get("git", "")
    places = (posixpath.dirname(nix), posixpath.dirname(git), *NIX_PLACES, *SYSTEM_PLACES)
    certificates = find_certificates(host.tree, host.environ)
    if is_in_any((certificates,), written_by_agents(host)):
        certificates = find_certificates(host.tree, {})
    certificates = certificates or pinned.CERTIFICATES
    return {
        "HOME": host.person.home,
        "USER": host.person.name,
        "LC_ALL": "C.UTF-8",
        "PATH": ":".join(dict.fromkeys(place for place in places if place)),
        "GIT_TERMINAL_PROMPT": "0",
        **({"NIX_SSL_CERT_FILE": certificates, "SSL_CERT_FILE": certificates} if certificates else {}),
        **{name: host.environ[name] for name in PASSED if name in host.environ},
    }


def written_by_agents(host: Host) -> tuple[str, ...]:
    state = State(host.person.home).directory
    return (host.cwd, state, *known_projects(host.tree, state))
