"""The network of the box: the host's, the internet alone, or none."""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.model import RO, Grant, Launch, Mount, Network, Origin, Plan, Port, Uplink
from claudebox.settings import Settings
from claudebox.settings.table import ALLOWLIST, FULL, HOST_PORTS, INET, NETWORK, NO_NETWORK, PUBLISH, TIERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features import Answer, CheckRow, Host, Question, Section

RESOLVER = Origin.of_rule("resolver", "name servers")
MEANING = {
    FULL: "the host's network: internet, LAN, VPNs and this host's localhost",
    INET: "the internet alone: no LAN, no VPN, nothing of this host",
    ALLOWLIST: "the hosts in a list, by name: nothing else, and no DNS for other names",
    NO_NETWORK: "nothing but the box's own localhost",
}
WHAT_TO_EXPECT = {
    FULL: "Servers that you start are on the user's own machine: bind them to localhost.",
    INET: 'Private addresses are rejected at once ("No route to host", "Connection refused"), whatever name leads to '
    "them; retrying will not help. Nobody can reach servers that you start, unless the user publishes their port.",
    ALLOWLIST: "Nobody can reach servers that you start, unless the user publishes their port.",
    NO_NETWORK: "Nothing can be downloaded. Nobody can reach servers that you start, unless the user publishes a port.",
}
OPTIONS = """\
- another network: `--network full|inet|allowlist|none`; a port of the box opened for the user: `--publish PORT`; a
  server on the user's machine: `--host-port PORT` (neither with `full`)
"""


class NetworkFeature(Feature):
    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        check_ports(facts.settings)
        if facts.settings[NETWORK].text != FULL:
            from claudebox.features.network import uplink

            return uplink.decide(facts)
        network = plan_network(facts.settings, None)
        # The file at the end of the chain of symlinks that /etc/resolv.conf often is.
        real = facts.tree.resolve("/etc/resolv.conf")
        mounts = (Mount(RO, "/etc/resolv.conf", RESOLVER, source=real),) if real is not None else ()
        return Contribution(mounts=mounts, network=network, grants=grants(network))

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        if plan.network.is_hosts:
            return plan
        from claudebox.features.network import uplink

        return uplink.complete(facts, plan)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import ASK, Row, Section, fields
        from claudebox.output.section import NETWORK as HEADING

        network, near = plan.network, plan.network.uplink.near if plan.network.uplink else ()
        rest = "(this host and its links) and everything private" if near else "everything else"
        rejected = (*near, *f"{rest}; --dry-run shows the filter".split())
        tier = " ".join((f"{network.tier}:", *_meaning(network)))
        ports = [f"{one.box} of the box is localhost:{one.host} here" for one in network.published]
        ports += [f"localhost:{one.box} in the box is 127.0.0.1:{one.host} here" for one in network.host_ports]
        told = [f"- port {one.box} of the box is the user's `localhost:{one.host}`" for one in network.published]
        told += [f"- `localhost:{one.box}` is a server on the user's machine" for one in network.host_ports]
        return (
            Section(
                title=HEADING,
                lines=(
                    *((grant.label, grant.words) for grant in grants(network)),
                    *([("rejected", rejected)] if network.uplink else []),
                ),
                rows=(Row("network", words=tier), Row("ports", tuple(ports))),
                key="network",
                value={
                    **fields(network, "tier", "meaning", "rule"),
                    "published": [fields(port, "host", "box") for port in network.published],
                    "host_ports": [port.host for port in network.host_ports],
                    "rejected": near,
                },
                told=(
                    (HEADING, f"Tier `{network.tier}`: {network.meaning}. {WHAT_TO_EXPECT[network.tier]}\n"),
                    *([(HEADING, "\n" + "\n".join(told) + "\n")] if told else []),
                    (ASK, OPTIONS),
                ),
            ),
        )

    def explain(self, question: Question) -> list[Answer]:
        from claudebox.features.network import diagnosis

        return diagnosis.explain(question)

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        from claudebox.features.network import diagnosis

        return diagnosis.check(host, settings)

    def inside(self, launch: Launch, life: int, others_end: int) -> None:
        from claudebox.features.network import uplink

        uplink.inside(launch, life, others_end)


NETWORK_FEATURE = NetworkFeature()


def check_ports(settings: Settings) -> None:
    """Raise a Problem if the ports that are asked for have no meaning, or lead to two places or in a circle."""
    seen: dict[int, Port] = {}
    for port in settings[PUBLISH]:
        first = seen.setdefault(port.host, port)
        if first.box != port.box:
            raise Problem(
                f"{port.origin.shown}: port {port.host} of the host already leads to port {first.box} of the box "
                f"({first.origin.shown})",
                "choose another",
            )
    if settings[NETWORK].text == FULL:
        _refuse_with_hosts_network(settings)
    # A port of the box that leads to the host cannot lead back: one connection would open thousands.
    taken = {port.box for port in settings[HOST_PORTS]}
    for port in settings[PUBLISH]:
        if port.box in taken:
            raise Problem(
                f"port {port.box} of the box is named by --publish and by --host-port: it is either a server in the "
                "box or one of this host",
                "choose one of the two",
            )


def _refuse_with_hosts_network(settings: Settings) -> None:
    """Say that nothing has to be joined where both have the same ports, and what would give the box its own."""
    for port in settings[PUBLISH]:
        spec = str(port.host) if port.host == port.box else f"{port.host}:{port.box}"
        raise Problem(
            f"{port.origin.shown}: the box has this host's own network, so a server in it is on this host already: "
            f"localhost:{port.box}",
            f"leave it out, and open localhost:{port.box}\n"
            f"      or give the box a network of its own: --network inet --publish {spec}",
        )
    for port in settings[HOST_PORTS]:
        raise Problem(
            f"{port.origin.shown}: the box has this host's own network, and reaches localhost:{port.host} already",
            f"leave it out\n      or give the box a network of its own: --network inet --host-port {port.host}",
        )


def plan_network(settings: Settings, uplink: Uplink | None) -> Network:
    tier = settings[NETWORK].text
    return Network(tier, MEANING[tier], settings[NETWORK].origin, settings[PUBLISH], settings[HOST_PORTS], uplink)


def grants(network: Network) -> tuple[Grant, ...]:
    """What the user agrees to: this tier, or one that reaches more; and each port."""
    tiers = tuple(("network", tier) for tier in TIERS[TIERS.index(network.tier) :: -1])
    found = [Grant(tiers, network.tier, _meaning(network), widens=True)]
    for one in network.published:
        what = f"port {one.box} of the box is localhost:{one.host} of this host"
        found.append(Grant((("publish", f"{one.host}:{one.box}"),), one.origin.shown, (what,)))
    for one in network.host_ports:
        what = f"localhost:{one.box} in the box is this host's 127.0.0.1:{one.host}"
        found.append(Grant((("host-port", str(one.host)),), one.origin.shown, (what,)))
    return tuple(found)


def _meaning(network: Network) -> tuple[str, ...]:
    said = "" if network.origin.is_default else f" ({network.origin.shown})"
    return tuple(f"{network.meaning}{said}".split())
