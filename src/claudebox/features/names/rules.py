"""The list of `--network names`: how its rows are written, what they mean for a name and a port, and its groups.

A name is compared as DNS compares it: without regard to case, and without the dot at its end. Only ASCII counts, so
that no two names look alike: others are written as they are in DNS (xn--…).
"""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.model import Allowed, Origin
from claudebox.settings import Word
from claudebox.settings.types import LAST_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

WEB = (80, 443)  # what a bare name means
SSH = 22
DNS = 53
EVERY_PORT = "*"
BELOW = "*."
GROUP = "@"
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
LONGEST_NAME = 253
LONGEST_LABEL = 63
STOPPED = "stopped"  # the verdict of a line of the journal that says that no more are written
USAGE = "HOST, HOST:PORT, HOST:*, *.HOST, an address, or a group such as @npm"

# Groups of hosts by purpose: `--allow @npm`. A row has what `--allow` takes, with the reason why it is there, which the
# audit prints. There are no hosts here that only count visits, and no `*.` where the names are known.
_ROWS = (
    ("claude", "api.anthropic.com", "the API"),
    ("claude", "platform.claude.com", "log-in, and renewing it"),
    ("claude", "console.anthropic.com", "log-in of older versions"),
    ("claude", "claude.ai", "log-in, the install script"),
    ("claude", "downloads.claude.ai", "updates of the native install"),
    ("claude", "mcp-proxy.anthropic.com", "connectors of the account"),
    ("openai", "api.openai.com", "the API"),
    ("openai", "chatgpt.com", "the API of a subscription"),
    ("openai", "auth.openai.com", "log-in, and renewing it"),
    ("gemini", "generativelanguage.googleapis.com", "the API"),
    ("gemini", "cloudcode-pa.googleapis.com", "the API of an account"),
    ("gemini", "accounts.google.com", "log-in"),
    ("gemini", "oauth2.googleapis.com", "log-in, and renewing it"),
    ("npm", "registry.npmjs.org", "packages of npm, pnpm, yarn"),
    ("npm", "registry.yarnpkg.com", "the same, as older lock files name it"),
    ("npm", "nodejs.org", "headers and releases of Node"),
    ("pypi", "pypi.org", "the index"),
    ("pypi", "files.pythonhosted.org", "the packages themselves"),
    ("crates", "index.crates.io", "the index"),
    ("crates", "static.crates.io", "the packages themselves"),
    ("crates", "crates.io", "the API: cargo search, cargo info"),
    ("crates", "static.rust-lang.org", "toolchains of rustup"),
    ("go", "proxy.golang.org", "modules"),
    ("go", "sum.golang.org", "their checksums"),
    ("go", "storage.googleapis.com", "where the proxy sends large modules"),
    ("go", "go.dev", "toolchains"),
    ("go", "dl.google.com", "the toolchains themselves"),
    ("maven", "repo.maven.apache.org", "Maven Central"),
    ("maven", "repo1.maven.org", "the same, as older builds name it"),
    ("maven", "plugins.gradle.org", "plugins of Gradle"),
    ("maven", "plugins-artifacts.gradle.org", "the plugins themselves"),
    ("maven", "services.gradle.org", "versions of Gradle"),
    ("maven", "downloads.gradle.org", "Gradle itself, for its wrapper"),
    ("rubygems", "rubygems.org", "gems"),
    ("rubygems", "index.rubygems.org", "the index"),
    ("packagist", "repo.packagist.org", "the index of Composer"),
    ("packagist", "packagist.org", "the API"),
    ("nuget", "api.nuget.org", "index and packages of NuGet"),
    ("nuget", "www.nuget.org", "the tool itself"),
    ("github", "github.com", "git over https and ssh, releases"),
    ("github", "api.github.com", "the API, gh"),
    ("github", "codeload.github.com", "archives of a commit"),
    ("github", "raw.githubusercontent.com", "single files"),
    ("github", "objects.githubusercontent.com", "files of releases, LFS"),
    ("github", "release-assets.githubusercontent.com", "files of releases"),
    ("github", "media.githubusercontent.com", "LFS"),
    ("gitlab", "gitlab.com", "git over https and ssh, the API"),
    ("gitlab", "registry.gitlab.com", "packages and images"),
    ("debian", "deb.debian.org", "packages"),
    ("debian", "security.debian.org", "security updates"),
    ("ubuntu", "archive.ubuntu.com", "packages"),
    ("ubuntu", "security.ubuntu.com", "security updates"),
    ("ubuntu", "ports.ubuntu.com", "packages for ARM"),
    ("nix", "cache.nixos.org", "built packages"),
    ("nix", "channels.nixos.org", "channels and the registry of flakes"),
    ("nix", "releases.nixos.org", "nixpkgs of a channel"),
    ("docker", "registry-1.docker.io", "images"),
    ("docker", "auth.docker.io", "tokens to read them"),
    ("docker", "production.cloudflare.docker.com", "the layers"),
    ("playwright", "cdn.playwright.dev", "browsers"),
    ("playwright", "playwright.download.prss.microsoft.com", "browsers"),
)
GROUPS = {group: [(host, why) for one, host, why in _ROWS if one == group] for group, _, _ in _ROWS}

# Their bare names mean port 22, too.
FORGES = ("github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "git.sr.ht")


def is_label(text: str) -> bool:
    """Whether this can be a part of a name. No dash comes first: a name may become a word of a command line."""
    return 0 < len(text) <= LONGEST_LABEL and not text.startswith("-") and LETTERS.issuperset(text)


def is_name(text: str) -> bool:
    """Whether this is the name of a host of the internet, in lower case. An address, whose last part is a number, is
    none, and neither is a single word, which would be a host of the LAN."""
    labels = text.split(".")
    return len(text) <= LONGEST_NAME and len(labels) > 1 and all(map(is_label, labels)) and not labels[-1].isdigit()


def read_allowed(said: Iterable[Word]) -> tuple[Allowed, ...]:
    """The rows of the list, with groups as what they stand for."""
    rows: list[Allowed] = []
    for word in said:
        if word.text.startswith(GROUP):
            group = _group(word)
            rows += [_read(text, word.origin).replace(group=word.text, reason=reason) for text, reason in GROUPS[group]]
        else:
            rows.append(_read(word.text, word.origin))
    return tuple(dict.fromkeys(rows))


def _group(word: Word) -> str:
    name = word.text.removeprefix(GROUP)
    if name not in GROUPS:
        raise Problem(f"{word.origin.shown}: there is no group `{word.text}`", _known_groups())
    return name


def _known_groups() -> str:
    """All groups, on lines that fit below a hint."""
    names = [GROUP + name for name in GROUPS]
    return "\n      ".join(" ".join(names[place : place + 6]) for place in range(0, len(names), 6))


def _read(text: str, origin: Origin) -> Allowed:
    host, ports = _split(text)
    host = _host(host, text, origin)
    return Allowed(host, _ports(ports, host, text, origin), origin)


def _split(text: str) -> tuple[str, str]:
    """The host and its port. An IPv6 address has brackets if a port follows."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        return (host, rest[1:]) if bracket and rest[:1] in ("", ":") and ":" in host else (text, "")
    host, _, ports = text.partition(":") if text.count(":") == 1 else (text, "", "")
    return (host, ports or ":") if text.endswith(":") and host != text else (host, ports)


def _host(host: str, text: str, origin: Origin) -> str:
    if not host.isascii():
        raise _no_host(text, origin, "write the name as it is in DNS, with xn-- for other letters")
    name = host.lower().removesuffix(".")
    if name in ("*", "**"):
        raise Problem(f"{origin.shown}: `{text}` means every host", "that is: --network inet")
    if ":" in name or name.rpartition(".")[2].isdigit():
        return _address(name, text, origin)
    above = name.removeprefix(BELOW)
    if name == "localhost" or name.endswith(".localhost"):
        raise _no_host(text, origin, "to reach a port of this host: --host-port PORT")
    if not is_name(above):
        raise _no_host(text, origin, USAGE)
    return name


def _address(text: str, written: str, origin: Origin) -> str:
    from ipaddress import ip_address

    try:
        address = ip_address(text)
        if "%" not in text:  # which would be an address of a link
            return str(address)
    except ValueError:
        pass
    raise _no_host(written, origin, USAGE)


def _ports(text: str, host: str, written: str, origin: Origin) -> tuple[int, ...]:
    if not text:
        return (SSH, *WEB) if host in FORGES else WEB
    if text == EVERY_PORT:
        return ()
    is_port = text.isascii() and text.isdigit() and len(text) <= len(str(LAST_PORT)) and 0 < int(text) <= LAST_PORT
    if not is_port:
        raise _no_host(written, origin, f"a port is a number from 1 to {LAST_PORT}, or * for all of them")
    if int(text) == DNS:
        raise _no_host(written, origin, "port 53 is the box's own name server, whatever its address")
    return (int(text),)


def _no_host(text: str, origin: Origin, hint: str) -> Problem:
    return Problem(f"{origin.shown}: `{text}` is not a host for the list", hint)


def is_address(host: str) -> bool:
    return ":" in host or host.rpartition(".")[2].isdigit()


def can_be_listed(host: str, near: tuple[str, ...] = ()) -> bool:
    """Whether `--allow` would take this host: an address has to be on the internet."""
    if not is_address(host):
        return is_name(host)
    from ipaddress import ip_address

    from claudebox.host.network import rejected_range

    return rejected_range(ip_address(host), near) is None


class NameList:
    """The list, made for looking up names in it."""

    def __init__(self, allowed: Iterable[Allowed]) -> None:
        self.rows: dict[str, list[Allowed]] = {}
        for row in allowed:
            self.allow(row)

    def allow(self, row: Allowed) -> None:
        self.rows.setdefault(row.host, []).append(row)

    def rows_for(self, host: str) -> list[Allowed]:
        """The rows that mean this name or address."""
        return [row for key in _keys(host) for row in self.rows.get(key, ())]

    def knows(self, host: str) -> bool:
        return bool(self.rows_for(host))

    def permits(self, host: str, port: int) -> bool:
        return any(not row.ports or port in row.ports for row in self.rows_for(host))


def _keys(host: str) -> list[str]:
    """How rows may be written that mean this host."""
    if is_address(host):
        return [host]
    labels = host.split(".")
    return [host, *(BELOW + ".".join(labels[place:]) for place in range(1, len(labels)))]


def as_written(host: str) -> str:
    """The host as it is written before a port."""
    return f"[{host}]" if ":" in host else host


def as_text(row: Allowed) -> str:
    """The row as somebody would write it who wants no group: HOST:PORT for each port that is not usual."""
    host = as_written(row.host)
    if not row.ports:
        return f"{host}:{EVERY_PORT}"
    usual = (SSH, *WEB) if row.host in FORGES else WEB
    return host if row.ports == usual else f"{host}:{row.ports[0]}"
