"""Decides what a box reaches by name, and what it will find there of DNS."""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features.allowlist.rules import HostList, is_address, read_allowed
from claudebox.model import FILE, Allowed, Allowlist, Finding, Mount, Origin, Plan, Step
from claudebox.problem import Problem
from claudebox.settings.table import ALLOWLIST, OFF
from claudebox.trust.programs import choose_uplink
from claudebox.trust.variables import BASE_URL, is_loopback, read_address

# Addresses inside of the box only. Those of names are made up, from the rest of the same range: the internet has none
# of them.
BOX = "198.18.0.1"
RESOLVER = "198.18.0.2"
RESOLV_CONF = f"nameserver {RESOLVER}\n"  # no search list: a name that fails would be asked for again, with more labels
BY_RULE = Origin.of_rule("resolver", "knows the names that this box may reach")
API = "api.anthropic.com"
HTTPS = 443
NOTIFIERS = ("/usr/bin/notify-send", "/bin/notify-send", "/run/current-system/sw/bin/notify-send")


def decide(facts: Facts, _: Draft) -> Contribution:
    settings, host = facts.settings, facts.host
    (nft,) = choose_uplink(host.tree, {"nft": settings.nft}, host.environ.get("PATH", ""), host.cwd, facts.reach)
    near = host.neighbourhood(host.tree).everything
    allowed = read_allowed(settings.allow)
    for row in allowed:
        _refuse_private(row, near)
    journal = facts.state.network_journal if facts.state is not None else ""
    return Contribution(
        mounts=(Mount(FILE, "/etc/resolv.conf", BY_RULE, content=RESOLV_CONF.encode(), mode=0o444),),
        steps=(Step(Step.BESIDE, "allowlist"), Step(Step.INSIDE, "allowlist"), Step(Step.AFTER, "allowlist")),
        decided=(("allowlist", Allowlist(allowed, nft, near, journal, _notifier(facts))),),
    )


def refuse_without_effect(facts: Facts, _: Draft) -> Contribution:
    """Refuse a list that was typed for a box on another tier. One in a file waits for a box on this tier, if it is
    right: nobody should find out on the day on which it matters that it is not."""
    for word in (*facts.settings.allow, facts.settings.ask):
        if word.origin.is_typed:
            tier = facts.settings.network.text
            raise Problem(f"{word.origin.shown} has no meaning with --network {tier}", f"--network {ALLOWLIST}")
    read_allowed(facts.settings.allow)
    return Contribution()


def _notifier(facts: Facts) -> str:
    """The program that asks on the desktop, if somebody wants that. It has to be the system's own."""
    how, tree, bus = facts.settings.ask, facts.tree, f"/run/user/{facts.host.person.uid}/bus"
    if how.text == OFF:
        return ""
    program = next(filter(tree.is_executable, NOTIFIERS), "")
    if not program or not tree.exists(bus):
        raise Problem(
            f"{how.origin.shown} {how.text}: nobody can be asked here: there is no {bus if program else 'notify-send'}",
            "on a desktop of Debian: sudo apt install libnotify-bin\n      or look afterwards: --network-log",
        )
    return program


def _refuse_private(row: Allowed, near: tuple[str, ...]) -> None:
    """Refuse an address that is not on the internet: the box would not get there."""
    if not is_address(row.host):
        return
    from ipaddress import ip_address

    from claudebox.host.ranges import rejected_range

    rejected = rejected_range(ip_address(row.host), near)
    if rejected is not None:
        raise Problem(
            f"{row.origin.shown}: {row.host} is not on the internet: {rejected[0]} is rejected ({rejected[1]})",
            "for a port of this host: --host-port PORT\n      for the LAN: --network full",
        )


def complete(_: Facts, __: Draft, plan: Plan) -> Plan:
    """Say what will not work."""
    assert plan.allowlist is not None
    allowed, text = plan.allowlist.allowed, ""
    own_api = next((variable.value for variable in plan.environment if variable.name == BASE_URL), "")
    host, port = (read_address(own_api) or ("https", API, ""))[1:]
    needs_api = plan.program.title == "claude" and plan.broker is None and not (own_api and is_loopback(host))
    if not allowed:
        text = "the list is empty, so the box reaches nothing; --network-log --suggest says afterwards what it needed"
    elif needs_api and not HostList(allowed).permits(host, int(port or HTTPS)):
        way = f"{host}{':' if port else ''}{port}" if own_api else "@claude"
        text = f"claude does not reach its API: --allow {way}"
    return plan.replace(findings=(*plan.findings, Finding(Finding.NOTE, "--network allowlist", text))) if text else plan
