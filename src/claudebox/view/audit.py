"""The audit that the user confirms: everything that enters, with the rule, and what stays outside."""

from __future__ import annotations

from claudebox import __version__
from claudebox.agreement import READ_ONLY, WITHOUT, News
from claudebox.features.guard.decide import is_guard
from claudebox.features.secrets.table import RULE as SECRETS
from claudebox.host.secrets import secret_value
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
    Allowed,
    Allowlist,
    Broker,
    EnvVar,
    Finding,
    Guarded,
    Login,
    Mount,
    Network,
    Nix,
    Package,
    Plan,
    Port,
)
from claudebox.overlay.ways import WAYS
from claudebox.paths import shorten_home, within
from claudebox.text import BOLD, RED, YELLOW, Style, beside, bytes_text, counted, escape, table_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

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
# Rules from the usual to the telling; those of people come last.
USUAL_RULES = (
    *("box", "system", "nix", "etc", "identity", "resolver", "certificates", "root", "kernel", "claude", "git"),
    *("cache", "toolchain", "project"),
)
LOST = {WITHOUT: "no longer hidden", READ_ONLY: "now writable"}
NOT_SHOWN = "(secret, not shown)"
LATER = "lands later"
MADE_UP = "(made-up values, read-only; the real ones with --reveal PATH)"
OPENS = "(if that is what the agent is to work on: --writable PATH)"
WEB = (80, 443)  # ports that need not be named


def audit(plan: Plan, style: Style) -> str:
    """The audit. What differs between projects comes last, where a terminal that has scrolled still shows it."""
    lines = [style.paint(f"claudebox {__version__}", BOLD)]
    lines += [_heading("Environment", "", style), *_by_label(plan.environment, _rule_of, variable_text, style)]
    lines += [_heading("Stays outside", "", style), *_outside(plan, style)]
    mounts = tuple(mount for mount in plan.mounts if not is_guard(mount))
    legend = LANDS if plan.review is not None and plan.review.is_whole else LEGEND
    lines += [_heading("Files", legend, style), *_files(mounts, plan.person.home, style)]
    lines += _guarded(plan, style)
    lines += (
        [_heading("Packages", "", style), *_by_label(plan.packages, _rule_of, _package_text, style)]
        if plan.packages
        else []
    )
    lines += [_heading("Network", "", style), *_network(plan.network, style)]
    allowlist, nix = plan.get(Allowlist), plan.get(Nix)
    lines += _allowed(allowlist.allowed, style) if allowlist is not None else []
    if nix is not None:
        lines += [_heading("Nix", "", style), *table_row(nix.mode, escape(nix.meaning).split(), LABEL, style)]
    lines += [_heading("Runs", "", style), *_runs(plan, style)]
    lines += ["", *findings_lines(plan.findings, style)] if plan.findings else []
    return "\n".join(lines) + "\n"


def _heading(title: str, legend: str, style: Style) -> str:
    return style.paint(title, BOLD) + (f"  ({legend})" if legend else "")


def _by_label(items: Iterable[Any], label: Callable[[Any], str], text: Callable[[Any], str], style: Style) -> list[str]:
    """A row for each label, with the texts of all that have it."""
    groups: dict[str, list[str]] = {}
    for item in items:
        groups.setdefault(label(item), []).append(text(item))
    return [line for name, texts in groups.items() for line in table_row(name, texts, LABEL, style)]


def _rule_of(item: EnvVar | Package) -> str:
    return item.origin.shown


def _files(shown: tuple[Mount, ...], home: str, style: Style) -> list[str]:
    groups: dict[tuple[str, str], list[Mount]] = {}
    for mount in shown:
        groups.setdefault((mount.origin.shown, MARKS[mount.kind]), []).append(mount)
    lines: list[str] = []
    for (rule, mark), mounts in sorted(groups.items(), key=_most_telling_last):
        if rule == SECRETS:
            masked = (word for one in mounts for word in (mount_text(one, home), f"({one.origin.reason})"))
            words = [*masked, MADE_UP]
        else:
            reasons = dict.fromkeys(mount.origin.reason for mount in mounts)
            words = [*_paths(mounts, home), *_bounds(mounts, home), *(f"({escape(one)})" for one in reasons if one)]
        lines += table_row(f"{rule:<{RULE}} {mark}", words, LABEL, style)
    return lines


def _most_telling_last(group: tuple[tuple[str, str], list[Mount]]) -> int:
    (rule, _), _ = group
    return USUAL_RULES.index(rule) if rule in USUAL_RULES else len(USUAL_RULES)


def _paths(mounts: list[Mount], home: str) -> list[str]:
    """The paths of one group. Those in /etc are listed together."""
    shown = [mount_text(mount, home) for mount in mounts if not mount.path.startswith("/etc/")]
    etc = [mount.path.removeprefix("/etc/") for mount in mounts if mount.path.startswith("/etc/")]
    return shown + ([f"/etc/{escape(etc[0])}"] if len(etc) == 1 else ["/etc:", *map(escape, etc)] if etc else [])


def _bounds(mounts: list[Mount], home: str) -> list[str]:
    sizes = [f"{escape(shorten_home(one.path, home))} {bytes_text(one.size)}" for one in mounts if one.size]
    return f"(in memory, at most: {', '.join(sizes)})".split(" ") if sizes else []


def mount_text(mount: Mount, home: str) -> str:
    path = escape(shorten_home(mount.path, home))
    if mount.kind in FROM_HOST and mount.source != mount.path:
        return f"{escape(shorten_home(mount.source, home))} as {path}"
    return path


def _guarded(plan: Plan, style: Style) -> list[str]:
    """What the agent cannot change in the project, and what it can, although the host runs it later."""
    guard, later = plan.guard, plan.layered
    if not guard.held and not guard.opened:
        return []
    lines = [_heading("Guarded", "what this host may run later", style)]
    lines += _with_reasons("read-only", [one for one in guard.held if one.path not in later], plan.project, style)
    if guard.walls:
        lines += table_row("", f"(no layers here: {escape(guard.walls)})".split(" "), LABEL, style)
    if any(guarded.group == WAYS for guarded in guard.held):  # because something outside leads there
        lines += table_row("", OPENS.split(" "), LABEL, style)
    lines += _with_reasons(LATER, [one for one in guard.held if one.path in later], plan.project, style)
    return lines + _with_reasons("writable", guard.opened, plan.project, style)


def _with_reasons(label: str, members: Iterable[Guarded], project: str, style: Style) -> list[str]:
    lines: list[str] = []
    for guarded in members:
        words = [escape(within(guarded.path, project)), *f"({escape(guarded.reason)})".split(" ")]
        lines += table_row("" if lines else label, words, LABEL, style)
    return lines


def _package_text(package: Package) -> str:
    from claudebox.features.nix.packages import store_name

    return f"{package_name(package)} ({', '.join(map(store_name, package.paths)) or 'not resolved yet'})"


def package_name(package: Package) -> str:
    from claudebox.features.nix.packages import short_name

    return escape(short_name(package.reference))


def variable_text(variable: EnvVar) -> str:
    return f"{variable.name} {NOT_SHOWN}" if variable.secret else f"{variable.name}={escape(variable.value)}"


def _network(network: Network, style: Style) -> list[str]:
    lines = _tier(network, style) + _ports(network.published, network.host_ports, style)
    if network.uplink is not None:
        near = [*network.uplink.near, "(this host and its links)"] if network.uplink.near else []
        rest = "and everything private" if network.uplink.near else "everything else"
        lines += table_row("rejected", [*near, *f"{rest}; --dry-run shows the filter".split()], LABEL, style)
    return lines


def _allowed(rows: tuple[Allowed, ...], style: Style) -> list[str]:
    """The hosts in the list, those of a group together. Why each is there: --explain HOST."""
    return _by_label(rows, lambda row: row.group or row.origin.shown, host_text, style)


def host_text(row: Allowed) -> str:
    """The host, and its ports if they are not those of the web."""
    host = f"[{row.host}]" if ":" in row.host else row.host
    ports = "" if row.ports == WEB else f":{','.join(map(str, row.ports)) or '*'}"
    return f"{host}{ports}"


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


def _outside(plan: Plan, style: Style) -> list[str]:
    home = plan.person.home
    lines = table_row("variables", [f"{plan.outside.variables} of the host's variables"], LABEL, style)
    broker = plan.get(Broker)
    if broker is not None:
        lines += table_row("credential", _credential(broker, home), LABEL, style)
    label = "secret places"
    for place in plan.outside.places:
        lines += table_row(label, [escape(shorten_home(place.path, home)), f"({place.reason})"], LABEL, style)
        label = ""
    return lines


def _credential(broker: Broker, home: str) -> list[str]:
    words = [escape(shorten_home(broker.shown, home)), "(the", "broker", "uses", "it", "for", "the", "box)"]
    limits = [limit_text(*limit) for limit in broker.limits]
    return words + (f"at most {', '.join(limits)}".split() if limits else [])


def limit_text(name: str, number: int) -> str:
    """A limit of the broker, which is named in the plural."""
    return counted(number, name.removesuffix("s"))


def _runs(plan: Plan, style: Style) -> list[str]:
    words = [shown_argument(shorten_home(word, plan.person.home)) for word in plan.program.argv]
    return table_row(plan.program.origin.shown, words, LABEL, style)


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
        lines += beside(f"{style.paint(mark, colour)} ", words, 2, style.width)
    return lines


def news_text(plan: Plan, news: News, style: Style) -> str:
    """What a box has beyond what was agreed to: this and nothing else, however much it is."""
    home = plan.person.home
    lines = [_heading("New since you agreed", "", style), *_by_label(news.variables, _rule_of, variable_text, style)]
    lines += _by_label(news.packages, _rule_of, _package_text, style)
    lines += _tier(plan.network, style) if news.tier else []
    lines += _ports(news.published, news.host_ports, style)
    lines += _allowed(news.allowed, style)
    lines += _files(news.mounts, home, style)
    broker, login = plan.get(Broker), plan.get(Login)
    if news.login and broker is not None:
        lines += table_row("credential", _credential(broker, home), LABEL, style)
    if news.login and login is not None:
        lines += table_row("login", [escape(shorten_home(login.file, home))], LABEL, style)
    for protection, path in news.lost:
        lines += table_row(LOST[protection], [shorten_home(path, home)], LABEL, style)
    lines += _runs(plan, style) if news.program else []
    return "\n".join([*lines, *findings_lines(news.findings, style)]) + "\n"
