"""The list of `--network allowlist`: how its rows are written, its groups, and what a box with a list gets."""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.facts import Contribution, Facts
from claudebox.features.allowlist import ALLOW, ALLOWLIST, ASK
from claudebox.host.programs import choose_uplink
from claudebox.host.system import read_hosts
from claudebox.host.variables import BASE_URL, is_loopback, read_address
from claudebox.model import FILE, Finding, Grant, Mount, Origin, Plan, Preparation, Step
from claudebox.output.section import Section
from claudebox.record import Record
from claudebox.servers.allowlist import (
    BELOW,
    DNS_PORT,
    WEB,
    Allowed,
    HostList,
    is_address,
    is_name,
    private_range,
    with_port,
)
from claudebox.settings import Word
from claudebox.settings.table import ALLOWLIST as CHOSEN
from claudebox.settings.table import AUTH, BROKER, FULL, INET, NETWORK, NFT_PATH, OFF
from claudebox.settings.types import LAST_PORT, port_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SSH = 22
EVERY_PORT = "*"
GROUP = "@"
USAGE = "HOST, HOST:PORT, HOST:*, *.HOST, an address, or a group such as @npm"

# Addresses inside of the box only. Those of names are made up, from the rest of the same range: the internet has none
# of them.
BOX = "198.18.0.1"
RESOLVER = "198.18.0.2"
RESOLV_CONF = f"nameserver {RESOLVER}\n"  # no search list: a name that fails would be asked for again, with more labels
BY_RULE = Origin.of_rule("resolver", "knows the names that this box may reach")
API = "api.anthropic.com"
HTTPS = 443
NOTIFIERS = ("/usr/bin/notify-send", "/bin/notify-send", "/run/current-system/sw/bin/notify-send")

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


class Allowlist(Record):
    """How a box on tier `allowlist` is connected: nft leads what it opens to a process outside that has the list."""

    allowed: tuple[Allowed, ...]
    nft: str
    near: tuple[str, ...]  # the addresses of this host and of its links
    journal: str
    notifier: str  # the program that asks on the desktop; "" if nobody is asked


def usual_ports(host: str) -> tuple[int, ...]:
    """What a host means if no port is named."""
    return (SSH, *WEB) if host in FORGES else WEB


def read_allowed(said: Iterable[Word]) -> tuple[Allowed, ...]:
    """The rows of the list, with groups as what they stand for."""
    rows: list[Allowed] = []
    for word in said:
        if not word.text.startswith(GROUP):
            rows.append(_read(word))
            continue
        group = word.text.removeprefix(GROUP)
        if group not in GROUPS:
            names = [GROUP + name for name in GROUPS]
            lines = (" ".join(names[place : place + 6]) for place in range(0, len(names), 6))
            raise Problem(f"{word.origin.shown}: there is no group `{word.text}`", "\n      ".join(lines))
        rows += [
            _read(word.replace(text=host)).replace(group=word.text, reason=reason) for host, reason in GROUPS[group]
        ]
    return tuple(dict.fromkeys(rows))


def _read(word: Word) -> Allowed:
    host, ports = _split(word.text)
    name = _host(host, word)
    return Allowed(name, usual_ports(name) if ports is None else _ports(ports, word), word.origin)


def _split(text: str) -> tuple[str, str | None]:
    """The host and its port, None if there is none. An IPv6 address has brackets if a port follows."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if bracket and ":" in host and rest[:1] in ("", ":"):
            return host, rest[1:] if rest else None
    host, _, port = text.partition(":")
    return (host, port) if text.count(":") == 1 else (text, None)


def _host(text: str, word: Word) -> str:
    if not text.isascii():
        raise _no_host(word, "write the name as it is in DNS, with xn-- for other letters")
    name = text.lower().removesuffix(".")
    if name in ("*", "**"):
        raise Problem(f"{word.origin.shown}: `{word.text}` means every host", "that is: --network inet")
    if name == "localhost" or name.endswith(".localhost"):
        raise _no_host(word, "to reach a port of this host: --host-port PORT")
    if is_address(name):
        from ipaddress import ip_address

        try:
            name = str(ip_address(name))
        except ValueError:
            raise _no_host(word) from None
        if "%" in name:  # an address of a link
            raise _no_host(word)
    elif not is_name(name.removeprefix(BELOW)):
        raise _no_host(word)
    return name


def _ports(text: str, word: Word) -> tuple[int, ...]:
    if text == EVERY_PORT:
        return ()
    number = port_number(text)
    if not number:
        raise _no_host(word, f"a port is a number from 1 to {LAST_PORT}, or * for all of them")
    if number == DNS_PORT:
        raise _no_host(word, "port 53 is the box's own name server, whatever its address")
    return (number,)


def _no_host(word: Word, hint: str = USAGE) -> Problem:
    return Problem(f"{word.origin.shown}: `{word.text}` is not a host for the list", hint)


def _grant(row: Allowed) -> Grant:
    ports = ",".join(map(str, row.ports)) or "every"
    lines = (("allow", row.host, "port", ports), ("network", INET), ("network", FULL))
    return Grant(lines, row.group or row.origin.shown, (host_text(row),), widens=True)


def host_text(row: Allowed) -> str:
    """The host, and its ports if they are not those of the web."""
    host = f"[{row.host}]" if ":" in row.host else row.host
    return host if row.ports == WEB else f"{host}:{','.join(map(str, row.ports)) or EVERY_PORT}"


def as_option(host: str, port: int) -> str:
    """The value of `--allow` for this port; 0 if only the name was looked up."""
    return with_port(host, port) if port and port not in usual_ports(host) else host


def as_text(row: Allowed) -> str:
    """The row as an option, without its group."""
    if row.ports == usual_ports(row.host):
        return row.host
    return with_port(row.host, row.ports[0] if row.ports else EVERY_PORT)


# What a box gets


def decide(facts: Facts) -> Contribution:
    settings, host = facts.settings, facts.host
    allowed = read_allowed(settings[ALLOW])
    if settings[NETWORK].text != CHOSEN:
        # A list in a file waits for a box on this tier, if it is right: nobody should find out too late that it is not.
        for word in (*settings[ALLOW], settings[ASK]):
            if word.origin.is_typed:
                what = f"{word.origin.shown} has no meaning with --network {settings[NETWORK].text}"
                raise Problem(what, f"--network {CHOSEN}")
        return Contribution()
    (nft,) = choose_uplink(host, {"nft": settings[NFT_PATH]}, facts.reach)
    near = host.neighbourhood(host.tree).everything
    for row in allowed:
        if (private := private_range(row.host, near)) is not None:
            what = f"{row.origin.shown}: {row.host} is not on the internet: {private[0]} is rejected ({private[1]})"
            raise Problem(what, "for a port of this host: --host-port PORT\n      for the LAN: --network full")
    journal = facts.state.network_journal if facts.state is not None else ""
    directory = (Preparation(Preparation.DIRECTORY, facts.state.directory),) if facts.state is not None else ()
    return Contribution(
        preparations=directory,
        mounts=(Mount(FILE, "/etc/resolv.conf", BY_RULE, content=RESOLV_CONF.encode(), mode=0o444),),
        steps=tuple(Step(moment, ALLOWLIST) for moment in (Step.BESIDE, Step.INSIDE, Step.AFTER)),
        grants=tuple(map(_grant, allowed)),
        records=(Allowlist(allowed, nft, near, journal, _notifier(facts)),),
    )


def _notifier(facts: Facts) -> str:
    """The program that asks on the desktop, if somebody wants that. It has to be the system's own."""
    how, tree, bus = facts.settings[ASK], facts.tree, f"/run/user/{facts.host.person.uid}/bus"
    if how.text == OFF:
        return ""
    program = next(filter(tree.is_executable, NOTIFIERS), "")
    if not program or not tree.exists(bus):
        raise Problem(
            f"{how.origin.shown} {how.text}: nobody can be asked here: there is no {bus if program else 'notify-send'}",
            "on a desktop of Debian: sudo apt install libnotify-bin\n      or look afterwards: --network-log",
        )
    return program


def complete(facts: Facts, plan: Plan) -> Plan:
    """Say what will not work."""
    allowlist = plan.get(Allowlist)
    allowed, text = allowlist.allowed if allowlist is not None else (), ""
    private = _led_astray(facts, allowlist) if allowlist is not None else []
    own_api = next((variable.value for variable in plan.environment if variable.name == BASE_URL), "")
    host, port = (read_address(own_api) or ("https", API, ""))[1:]
    asks_itself = plan.program.title == "claude" and facts.settings[AUTH].text != BROKER
    needs_api = asks_itself and not (own_api and is_loopback(host))
    if not allowed:
        text = "the list is empty, so the box reaches nothing; --network-log --suggest says afterwards what it needed"
    elif needs_api and not HostList(allowed).permits(host, int(port or HTTPS)):
        way = f"{host}{':' if port else ''}{port}" if own_api else "@claude"
        text = f"claude does not reach its API: --allow {way}"
    notes = (Finding(Finding.NOTE, "--network allowlist", note) for note in (text, *private) if note)
    return plan.replace(findings=(*plan.findings, *notes))


def _led_astray(facts: Facts, allowlist: Allowlist) -> list[str]:
    """Listed names to which this host gives an address that no box with a list reaches."""
    listed = {row.host for row in allowlist.allowed}
    return [
        f"{name} is {address} in /etc/hosts of this host, which is not on the internet ({private[1]}): it is refused"
        for address, *names in read_hosts(facts.tree)
        for name in names
        if name.lower() in listed and (private := private_range(address, allowlist.near)) is not None
    ]


NOT_PASTED = """\
--network allowlist: only claudebox starts the process that knows the list. After pasting, the box reaches nothing.
In a launch, these rules lead its connections to that process (PORT is chosen then), in a network without a way out:
{}
The list:
{}
"""
TOLD = """
You reach these hosts, with every program that uses TCP, and nothing else:

{}
Other names do not resolve ("Could not resolve host", NXDOMAIN). Other ports and addresses are refused with a reason:
HTTP 403 with a sentence, the TLS alert "access denied" ("unrecognized name" if the server name in TLS is another one),
a sentence from ssh, else a reset. UDP does not leave the box. Proxies, other resolvers and retrying will not help. If
the task needs a host, name it and ask the user for `--allow HOST` or `--allow HOST:PORT`.
"""


def section(plan: Plan) -> Section:
    from claudebox.features.allowlist.act import ruleset
    from claudebox.output.section import NETWORK, Row, Section, by_label, fields

    allowlist = plan.get(Allowlist)
    allowed = allowlist.allowed if allowlist is not None else ()
    by_ports = by_label((", ".join(map(str, row.ports)), (f"`{row.host}`",)) for row in allowed)
    lines = [f"- {', '.join(hosts)}: {f'port {ports}' if ports else 'every port'}" for ports, hosts in by_ports]
    rules = "\n".join(f"  {line}" for line in ruleset("PORT").expandtabs(4).splitlines())
    listed = "\n".join(f"  {as_text(row)}" for row in allowed) or "  (nothing)"
    return Section(
        title=NETWORK,
        lines=by_label((grant.label, grant.words) for grant in map(_grant, allowed)),
        rows=(Row("hosts", tuple(map(host_text, allowed))),),
        key="network",
        value={"allowed": [fields(row, "host", "ports", "group", "reason", "rule") for row in allowed]},
        told=((NETWORK, TOLD.format("\n".join(lines or ["- none"]) + "\n")),),
        comment=NOT_PASTED.format(rules, listed),
    )
