"""The audit that the user confirms: everything that enters, with the rule, and what stays outside."""

from __future__ import annotations

from claudebox import __version__
from claudebox.agreement import READ_ONLY, WITHOUT, News
from claudebox.features.guard.decide import is_guard, within
from claudebox.features.guard.ways import WAYS
from claudebox.features.secrets.table import RULE as SECRETS
from claudebox.layers import layered
from claudebox.model import (
    ABSENT,
    COVER,
    DEV,
    FILE,
    FROM_HOST,
    HIDE,
    LAYER,
    MASK,
    PROC,
    RO,
    RW,
    SYMLINK,
    TMPFS,
    Broker,
    EnvVar,
    Finding,
    Guarded,
    Mount,
    Network,
    Nix,
    Package,
    Plan,
    Port,
)
from claudebox.paths import shorten_home
from claudebox.trust.secret_values import secret_value
from claudebox.view.text import BOLD, RED, YELLOW, Style, bytes_text, counted, escape, fill, table_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.allowed import Allowed

LABEL = 19
RULE = 11  # columns; the rest of the label is for the mark
MARKS = {
    RO: "ro",
    RW: "rw",
    LAYER: "land",
    TMPFS: "tmp",
    PROC: "tmp",
    DEV: "tmp",
    FILE: "made",
    SYMLINK: "ro",
    COVER: "ro",
    MASK: "made",
    HIDE: "none",
    ABSENT: "none",
}
LANDS = "land when you say so, rw writable, ro read-only, tmp empty, made, none"
LEGEND = "rw writable, ro read-only, tmp empty, made for this box, none hidden"
TELLING_REASONS = (
    "git",
    "claude",
    "cache",
    "secret",
    "root",
)  # the reasons of other rules are the same each time
USUAL_RULES = (
    "box",
    "system",
    "nix",
    "etc",
    "identity",
    "resolver",
    "certificates",
    "root",
    "kernel",
    "claude",
    "git",
    "cache",
    "toolchain",
    "project",
)
LOST = {WITHOUT: "no longer hidden", READ_ONLY: "now writable"}
MOST_MASKED = 8
NOT_SHOWN = "(secret, not shown)"
LATER = "lands later"
GUARD_LEGEND = "what this host may run later"
MOST_GUARDED = 8
MOST_WAYS = 4
OPENS = "(if that is what the agent is to work on: --writable PATH)"
WEB = (80, 443)  # ports that need not be named


def audit(plan: Plan, style: Style, *, everything: bool = False) -> str:
    """The audit. What differs between projects comes last, where a terminal that has scrolled still shows it."""
    lines = [style.paint(f"claudebox {__version__}", BOLD)]
    lines += [_heading("Environment", "", style), *_environment(plan.environment, style)]
    lines += [_heading("Stays outside", "", style), *_outside(plan, style, everything)]
    mounts = tuple(mount for mount in plan.mounts if not is_guard(mount) and (everything or not _is_cache_link(mount)))
    legend = LANDS if plan.review is not None and plan.review.is_whole else LEGEND
    lines += [_heading("Files", legend, style), *_files(mounts, plan.person.home, style, everything)]
    lines += _guarded(plan, style, everything)
    if plan.packages:
        lines += [_heading("Packages", "", style), *_packages(plan.packages, style, everything)]
    lines += [_heading("Network", "", style), *_network(plan.network, style, everything)]
    lines += _names(plan.names.allowed, style, everything) if plan.names is not None else []
    lines += [_heading("Nix", "", style), *_nix(plan.nix, style)] if plan.nix is not None else []
    lines += [_heading("Runs", "", style), *_runs(plan, style)]
    lines += ["", *findings_lines(plan.findings, style)] if plan.findings else []
    return "\n".join(lines) + "\n"


def _heading(title: str, legend: str, style: Style) -> str:
    return style.paint(title, BOLD) + (f"  ({legend})" if legend else "")


def _files(shown: tuple[Mount, ...], home: str, style: Style, everything: bool) -> list[str]:
    groups: dict[tuple[str, str], list[Mount]] = {}
    for mount in shown:
        groups.setdefault((mount.origin.shown, MARKS[mount.kind]), []).append(mount)
    lines: list[str] = []
    for (rule, mark), mounts in sorted(groups.items(), key=_most_telling_last):
        label = f"{rule:<{RULE}} {mark}"
        reasons = dict.fromkeys(mount.origin.reason for mount in mounts if everything or rule in TELLING_REASONS)
        words = [
            *_paths(mounts, home),
            *(_bounds(mounts, home) if everything else []),
            *(f"({escape(reason)})" for reason in reasons if reason),
        ]
        words = words if rule != SECRETS else _masked(mounts, home, everything)
        lines += table_row(label, words, LABEL, style)
    return lines


def _masked(mounts: list[Mount], home: str, everything: bool) -> list[str]:
    named = mounts if everything else mounts[:MOST_MASKED]
    words = [word for mount in named for word in (mount_text(mount, home), *_reason(mount, everything))]
    words += [f"and {len(mounts) - len(named)} more"] if len(named) < len(mounts) else []
    return [*words, "(made-up values, read-only; the real ones with --reveal PATH)"]


def _reason(mount: Mount, everything: bool) -> list[str]:
    return [f"({mount.origin.reason})"] if everything else []


def _most_telling_last(group: tuple[tuple[str, str], list[Mount]]) -> int:
    (rule, _), _ = group
    return USUAL_RULES.index(rule) if rule in USUAL_RULES else len(USUAL_RULES)


def _paths(mounts: list[Mount], home: str) -> list[str]:
    """The paths of one group. Those in /etc are listed together."""
    shown = [mount_text(mount, home) for mount in mounts if not mount.path.startswith("/etc/")]
    etc = [mount.path.removeprefix("/etc/") for mount in mounts if mount.path.startswith("/etc/")]
    return shown + ([f"/etc/{escape(etc[0])}"] if len(etc) == 1 else ["/etc:", *map(escape, etc)] if etc else [])


def _is_cache_link(mount: Mount) -> bool:
    return mount.kind == SYMLINK and mount.origin.is_rule("cache")


def _bounds(mounts: list[Mount], home: str) -> list[str]:
    sizes = [f"{escape(shorten_home(one.path, home))} {bytes_text(one.size)}" for one in mounts if one.size]
    return f"(in memory, at most: {', '.join(sizes)})".split(" ") if sizes else []


def mount_text(mount: Mount, home: str) -> str:
    path = escape(shorten_home(mount.path, home))
    if mount.kind in FROM_HOST and mount.source != mount.path:
        return f"{escape(shorten_home(mount.source, home))} as {path}"
    return path


def _guarded(plan: Plan, style: Style, everything: bool) -> list[str]:
    """What the agent cannot change in the project, and what it can, although the host runs it later."""
    guard = plan.guard
    if not guard.held and not guard.opened:
        return []
    lines = [_heading("Guarded", GUARD_LEGEND, style)]
    by_name = tuple(guarded for guarded in guard.held if guarded.group != WAYS)
    waiting = tuple(guarded for guarded in by_name if guarded.path in layered(plan))
    read_only = tuple(guarded for guarded in by_name if guarded.path not in layered(plan))
    for label, members in (("read-only", read_only), (LATER, waiting), ("writable", guard.opened)):
        if everything:
            for number, guarded in enumerate(members):
                words = [escape(within(guarded.path, plan.project)), f"({guarded.reason})"]
                lines += table_row(label if number == 0 else "", words, LABEL, style)
        elif members:
            lines += table_row(label, _some_guarded(members, plan.project), LABEL, style)
        if members is read_only and guard.walls:
            lines += table_row("", f"(no layers here: {escape(guard.walls)})".split(" "), LABEL, style)
    return lines + _ways(plan, style, everything)


def _ways(plan: Plan, style: Style, everything: bool) -> list[str]:
    """What is read-only because something outside leads there: a line for each, unless there are many."""
    ways = [guarded for guarded in plan.guard.held if guarded.group == WAYS]
    named = ways if everything else ways[:MOST_WAYS]
    lines: list[str] = []
    for number, way in enumerate(named):
        words = [escape(within(way.path, plan.project)), *f"({escape(way.reason)})".split(" ")]
        label = LATER if way.path in layered(plan) else "read-only"
        lines += table_row(label if number == 0 or label == LATER else "", words, LABEL, style)
    if len(ways) > len(named):
        lines += table_row("", [f"and {len(ways) - len(named)} more that your home leads to"], LABEL, style)
    return lines + (table_row("", OPENS.split(" "), LABEL, style) if ways else [])


def _some_guarded(members: tuple[Guarded, ...], project: str) -> list[str]:
    named = [escape(within(guarded.path, project)) for guarded in members[:MOST_GUARDED]]
    more = [f"and {len(members) - MOST_GUARDED} more"] if len(members) > MOST_GUARDED else []
    return named + more


def _packages(packages: tuple[Package, ...], style: Style, everything: bool) -> list[str]:
    groups: dict[str, list[Package]] = {}
    for package in packages:
        groups.setdefault(package.origin.shown, []).append(package)
    lines: list[str] = []
    for rule, group in groups.items():
        lines += table_row(
            rule, [word for package in group for word in _package_words(package, everything)], LABEL, style
        )
    return lines


def _package_words(package: Package, everything: bool) -> list[str]:
    from claudebox.features.nix.packages import store_name

    paths = ", ".join(path if everything else store_name(path) for path in package.paths)
    return [package_name(package), *f"({paths or 'not resolved yet'})".split()]


def package_name(package: Package) -> str:
    from claudebox.features.nix.references import short_name

    return escape(short_name(package.reference))


def _environment(entering: tuple[EnvVar, ...], style: Style) -> list[str]:
    groups: dict[str, list[EnvVar]] = {}
    for variable in entering:
        groups.setdefault(variable.origin.shown, []).append(variable)
    lines: list[str] = []
    for rule, variables in groups.items():
        lines += table_row(rule, [variable_text(variable) for variable in variables], LABEL, style)
    return lines


def variable_text(variable: EnvVar) -> str:
    return f"{variable.name} {NOT_SHOWN}" if variable.secret else f"{variable.name}={escape(variable.value)}"


def _network(network: Network, style: Style, everything: bool) -> list[str]:
    lines = _tier(network, style) + _ports(network.published, network.host_ports, style)
    if everything and network.uplink is not None:
        near = [*network.uplink.near, "(this host and its links)"] if network.uplink.near else []
        rest = "and everything private" if network.uplink.near else "everything else"
        lines += table_row("rejected", [*near, *f"{rest}; --dry-run shows the filter".split()], LABEL, style)
    return lines


def _names(rows: tuple[Allowed, ...], style: Style, everything: bool) -> list[str]:
    """The hosts in the list: those of a group together, or each with the reason why it is there."""
    lines: list[str] = []
    for label in dict.fromkeys(row.group or row.origin.shown for row in rows):
        mine = [row for row in rows if (row.group or row.origin.shown) == label]
        if everything and mine[0].group:
            for row in mine:
                words = [host_text(row), f"({row.reason})"]
                lines += table_row(f"{label} {row.origin.shown}" if row is mine[0] else "", words, LABEL, style)
        else:
            lines += table_row(label, list(map(host_text, mine)), LABEL, style)
    return lines


def host_text(row: Allowed) -> str:
    """The host, and its ports if they are not those of the web."""
    host = f"[{row.host}]" if ":" in row.host else row.host
    ports = "" if row.ports == WEB else f":{','.join(map(str, row.ports)) or '*'}"
    without = f" (without {', '.join(row.without)})" if row.without else ""
    return f"{host}{ports}{without}"


def _nix(nix: Nix, style: Style) -> list[str]:
    return table_row(nix.mode, escape(nix.meaning).split(), LABEL, style)


def _tier(network: Network, style: Style) -> list[str]:
    said = "" if network.origin.is_default else f" ({network.origin.shown})"
    return table_row(network.tier, f"{network.meaning}{said}".split(), LABEL, style)


def _ports(published: tuple[Port, ...], host_ports: tuple[Port, ...], style: Style) -> list[str]:
    lines: list[str] = []
    for port in published:
        words = f"port {port.box} of the box is localhost:{port.host} of this host".split()
        lines += table_row(port.origin.shown, words, LABEL, style)
    for port in host_ports:
        words = f"localhost:{port.box} in the box is this host's 127.0.0.1:{port.host}".split()
        lines += table_row(port.origin.shown, words, LABEL, style)
    return lines


def _outside(plan: Plan, style: Style, everything: bool) -> list[str]:
    places, home = plan.outside.places, plan.person.home
    lines = table_row("variables", [f"{plan.outside.variables} of the host's variables"], LABEL, style)
    if plan.broker is not None:
        lines += table_row("credential", _credential(plan.broker, home), LABEL, style)
    if everything:
        for place in places:
            words = [escape(shorten_home(place.path, home)), f"({place.reason})"]
            lines += table_row("secret places" if place is places[0] else "", words, LABEL, style)
        return lines
    named = [escape(shorten_home(place.path, home)) for place in places[:6]]
    more = [f"and {len(places) - 6} more"] if len(places) > 6 else []
    found = [f"{len(places)} found here:", *named, *more] if places else ["none found here"]
    return lines + table_row("secret places", found, LABEL, style)


def _credential(broker: Broker, home: str) -> list[str]:
    words = [escape(shorten_home(broker.shown, home)), "(the", "broker", "uses", "it", "for", "the", "box)"]
    limits = [limit_text(*limit) for limit in broker.limits]
    return words + (f"at most {', '.join(limits)}".split() if limits else [])


def limit_text(name: str, number: int) -> str:
    """A limit of the broker, which is named in the plural."""
    return counted(number, name.removesuffix("s"))


def _runs(plan: Plan, style: Style) -> list[str]:
    return table_row(plan.program.origin.shown, _command(plan), LABEL, style)


def _command(plan: Plan) -> list[str]:
    home = plan.person.home
    return [shown_argument(shorten_home(word, home)) for word in plan.program.argv]


def shown_argument(word: str) -> str:
    if secret_value(word):
        return NOT_SHOWN
    text = escape(word)
    return f"'{text}'" if not text or " " in text else text


def findings_lines(findings: tuple[Finding, ...], style: Style) -> list[str]:
    lines: list[str] = []
    for finding in findings:
        mark, colour = ("!", RED) if finding.is_grave else ("·", YELLOW)
        # Split, so that no spaces can forge a column.
        words = f"{escape(finding.subject)}: {escape(finding.text)}".split()
        first, *rest = fill(words, 2, columns=style.width)
        lines += [f"{style.paint(mark, colour)} {first}", *(f"  {line}" for line in rest)]
    return lines


def news_text(plan: Plan, news: News, style: Style) -> str:
    """What a box has beyond what was agreed to: this and nothing else, however much it is."""
    home = plan.person.home
    lines = [_heading("New since you agreed", "", style), *_environment(news.variables, style)]
    lines += _packages(news.packages, style, everything=False)
    lines += _tier(plan.network, style) if news.tier else []
    lines += _ports(news.published, news.host_ports, style)
    lines += _names(news.names, style, everything=False)
    lines += _files(news.mounts, home, style, everything=False)
    if news.login and plan.broker is not None:
        lines += table_row("credential", _credential(plan.broker, home), LABEL, style)
    if news.login and plan.login is not None:
        lines += table_row("login", [escape(shorten_home(plan.login.file, home))], LABEL, style)
    for protection, path in news.lost:
        lines += table_row(LOST[protection], [shorten_home(path, home)], LABEL, style)
    lines += _runs(plan, style) if news.program else []
    return "\n".join([*lines, *findings_lines(news.findings, style)]) + "\n"
