"""Decides what a box reaches by name, and what it will find there of DNS."""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features.names import ALLOW, ALLOWLIST, ASK
from claudebox.features.names.rules import NameList, is_address, read_allowed
from claudebox.host.programs import choose_uplink
from claudebox.host.variables import BASE_URL, is_loopback, read_address
from claudebox.model import FILE, Allowed, Broker, Finding, Mount, Names, Origin, Plan, Step
from claudebox.settings.table import NAMES, NETWORK, NFT_PATH, OFF

# Addresses inside of the box only. Those of names are made up, from the rest of the same range: the internet has none
# of them.
BOX = "198.18.0.1"
RESOLVER = "198.18.0.2"
RESOLV_CONF = f"nameserver {RESOLVER}\n"  # no search list: a name that fails would be asked for again, with more labels
BY_RULE = Origin.of_rule("resolver", "knows the names that this box may reach")
API = "api.anthropic.com"
HTTPS = 443
NOTIFIER = "notify-send"
PLACES = ("/usr/bin", "/bin", "/run/current-system/sw/bin")


def decide(facts: Facts, _: Draft) -> Contribution:
    settings, host = facts.settings, facts.host
    (nft,) = choose_uplink(host.tree, {"nft": settings[NFT_PATH]}, host.environ.get("PATH", ""), host.cwd, facts.reach)
    near = host.neighbourhood(host.tree).everything
    allowed = read_allowed(settings[ALLOW])
    for row in allowed:
        if is_address(row.host):
            _check_address(row, near)
    state = facts.state
    journal = state.network_journal if state is not None else ""
    names = Names(allowed, nft, near, journal, _notifier(facts))
    return Contribution(
        mounts=(Mount(FILE, "/etc/resolv.conf", BY_RULE, content=RESOLV_CONF.encode(), mode=0o444),),
        steps=(Step(Step.BESIDE, ALLOWLIST), Step(Step.INSIDE, ALLOWLIST), Step(Step.AFTER, ALLOWLIST)),
        records=(names,),
    )


def refuse_without_effect(facts: Facts, _: Draft) -> Contribution:
    """Refuse a list that was typed for a box that does not go by it. One in a file waits for a box that does, if it is
    right: nobody should find out on the day on which it matters that it is not."""
    for word in (*facts.settings[ALLOW], facts.settings[ASK]):
        if word.origin.is_typed:
            tier = facts.settings[NETWORK].text
            raise Problem(f"{word.origin.shown} has no meaning with --network {tier}", f"--network {NAMES}")
    read_allowed(facts.settings[ALLOW])
    return Contribution()


def _notifier(facts: Facts) -> str:
    """The program that asks on the desktop, if somebody wants that. It has to be the system's own."""
    how, tree, bus = facts.settings[ASK], facts.tree, f"/run/user/{facts.host.person.uid}/bus"
    if how.text == OFF:
        return ""
    program = next((f"{place}/{NOTIFIER}" for place in PLACES if tree.is_executable(f"{place}/{NOTIFIER}")), "")
    if not program or not tree.exists(bus):
        raise Problem(
            f"{how.origin.shown} {how.text}: nobody can be asked here: there is no {NOTIFIER if not program else bus}",
            "on a desktop of Debian: sudo apt install libnotify-bin\n      or look afterwards: --network-log",
        )
    return program


def _check_address(row: Allowed, near: tuple[str, ...]) -> None:
    """Refuse an address that is not on the internet: the box would not get there."""
    from ipaddress import ip_address

    from claudebox.host.network import rejected_range

    rejected = rejected_range(ip_address(row.host), near)
    if rejected is not None:
        raise Problem(
            f"{row.origin.shown}: {row.host} is not on the internet: {rejected[0]} is rejected ({rejected[1]})",
            "for a port of this host: --host-port PORT\n      for the LAN: --network full",
        )


def complete(plan: Plan) -> Plan:
    """Say what will not work."""
    names = plan.get(Names)
    if names is None:
        return plan
    own = next((variable.value for variable in plan.environment if variable.name == BASE_URL), "")
    is_claude = plan.program.title == "claude" and plan.get(Broker) is None
    findings = list_findings(names, own, is_claude=is_claude)
    return plan.replace(findings=(*plan.findings, *findings))


def list_findings(names: Names, own_api: str, *, is_claude: bool) -> list[Finding]:
    if not names.allowed:
        text = "the list is empty, so the box reaches nothing; --network-log --suggest says afterwards what it needed"
        return [Finding(Finding.NOTE, "--network names", text)]
    _, host, port = read_address(own_api) or ("https", API, "")
    is_near = bool(own_api) and is_loopback(host)
    if is_claude and not is_near and not NameList(names.allowed).permits(host, int(port or HTTPS)):
        way = f"--allow {host}{':' if port else ''}{port}" if own_api else "--allow @claude"
        return [Finding(Finding.NOTE, "--network names", f"claude does not reach its API: {way}")]
    return []
