"""Judges the variables that lead requests somewhere, make programs believe somebody, or hold a credential of Claude.

A credential belongs to who gets it on the host. If `ANTHROPIC_BASE_URL` names a gateway there, the gateway's key enters
only together with that address, and the address only together with a key that goes there: else a gateway's key would
reach somebody else, or the login would reach the gateway.
"""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.host.secrets import is_systems, refuse_readable
from claudebox.host.system import CERTIFICATE_VARIABLES, NIX_STORE, is_bundle
from claudebox.host.variables import (
    API_KEY,
    AROUND,
    AUTH_TOKEN,
    BASE_URL,
    BUNDLE,
    KINDS,
    PROXY,
    REASONS,
    ROUTE_OF,
    STAYS,
    is_loopback,
    may_hold_password,
    read_address,
)
from claudebox.model import FROM_HOST, RO, EnvVar, Finding, Mount, Origin
from claudebox.paths import is_inside
from claudebox.sandbox.mounts import find_holder
from claudebox.settings import EnvWish
from claudebox.settings.table import ALLOWLIST, DROP_ENV, ENV, FULL, HOST_PORTS, NETWORK, NO_NETWORK

GATEWAY = Origin.of_rule("gateway", REASONS[BASE_URL])
PROXIES = Origin.of_rule("proxy", REASONS["HTTPS_PROXY"])
CERTIFICATES = Origin.of_rule("certificates", REASONS["NODE_EXTRA_CA_CERTS"])
GOES_ELSEWHERE = "belongs to the gateway that ANTHROPIC_BASE_URL names on this host, and would go to somebody else"


def decide(facts: Facts, draft: Draft) -> Contribution:
    judged = RouteVariables(facts, dict(draft.kept_out))
    route = [EnvVar(BASE_URL, judged.route, GATEWAY)] if judged.route else []
    proxies, bundles = judged.proxies(), judged.bundles()
    return Contribution(
        variables=(*route, *proxies, *bundles),
        mounts=tuple(_mounts(bundles, draft.mounts)),
        kept_out=tuple(judged.strays().items()),
        findings=(*judged.findings(), *_risks(judged, bundles)),
    )


class RouteVariables:
    """The variables of this host that lead somewhere or hold a credential, and what is wrong with each."""

    def __init__(self, facts: Facts, kept_out: dict[str, str]) -> None:
        self.facts = facts
        self.kept_out = kept_out
        self.hosts = facts.users.claudes_variables(facts.host.environ)
        said = [wish for wish in facts.settings[ENV] if wish.value is not None or wish.name in self.hosts]
        self.wishes: dict[str, EnvWish] = {wish.name: wish for wish in said}  # the last one counts
        self.dropped = {word.text for word in facts.settings[DROP_ENV]}
        self.notes: dict[str, list[str]] = {}  # what is wrong, and the names for which it is
        self.route = self._admitted_route()

    def note(self, name: str, text: str) -> None:
        self.notes.setdefault(text.replace("{}", f"--env {name}"), []).append(name)

    def findings(self) -> list[Finding]:
        for name in self.hosts:
            if KINDS.get(name) == STAYS and not self.is_settled(name) and not self.is_noted(name):
                self.note(name, f"stays outside: {REASONS[name]}")
        return [Finding(Finding.NOTE, ", ".join(names), text) for text, names in self.notes.items()]

    def is_noted(self, name: str) -> bool:
        return any(name in names for names in self.notes.values())

    def is_settled(self, name: str) -> bool:
        """Whether somebody has said what becomes of it, or --auth broker does."""
        return name in self.wishes or name in self.dropped or name in self.kept_out

    def undecided(self, kind: str) -> list[tuple[str, str]]:
        return [
            (name, self.hosts[name]) for name in self.hosts if KINDS.get(name) == kind and not self.is_settled(name)
        ]

    # Who gets the requests, and the credential.

    def _admitted_route(self) -> str:
        """The gateway, if a key enters that goes there on the host."""
        url = self.route_on_host(BASE_URL)
        if not url or self.is_settled(BASE_URL):
            return ""
        belongings = [name for name in self.hosts if ROUTE_OF.get(name) == BASE_URL and not self.is_settled(name)]
        objection = self._objection_to_route(url, belongings)
        if objection:
            for name in (BASE_URL, *belongings):
                self.note(name, f"stays outside{objection}")
            return ""
        return url

    def _objection_to_route(self, url: str, belongings: list[str]) -> str:
        users = self.facts.users
        if BASE_URL in dict(users.foreign):
            return ": an agent can have written the settings of Claude that name this gateway"
        if trouble := trouble_with_route(url):
            return f": {trouble}"
        if any(name in self.wishes and name not in self.dropped for name in (API_KEY, AUTH_TOKEN)):
            return ""
        if users.holds:
            return (
                f": its credential is in the settings of Claude ({users.holds[0]}) and does not enter; "
                "export it as ANTHROPIC_AUTH_TOKEN, then --env ANTHROPIC_AUTH_TOKEN, or --auth broker"
            )
        if lacking := next((name for name in belongings if name != API_KEY), ""):
            return f", with what belongs to it: --env {lacking} lets all in, or --auth broker"
        if API_KEY not in belongings:
            return ", for Claude's login would go there: --env ANTHROPIC_BASE_URL if you mean that"
        return ""

    def route_on_host(self, route: str) -> str:
        """Where Claude on the host sends what belongs to this route."""
        return dict(self.facts.users.foreign).get(route) or self.hosts.get(route, "")

    def route_in_box(self, route: str) -> str:
        """Where Claude in the box will send it."""
        if route in self.dropped:
            return ""
        wish = self.wishes.get(route)
        if wish is not None:
            return self.hosts.get(route, "") if wish.value is None else wish.value
        return self.route if route == BASE_URL else ""

    def strays(self) -> dict[str, str]:
        """Credentials of the host that would go to somebody else than on the host. Raises if one was asked for."""
        strays: dict[str, str] = {}
        for name, route in ROUTE_OF.items():
            wish = self.wishes.get(name)
            is_hosts = name in self.facts.host.environ and (wish is None or wish.value is None)
            if not is_hosts or name in self.kept_out or name in self.dropped or not self._goes_astray(name, route):
                continue
            if wish is not None:
                raise Problem(
                    f"{wish.origin.shown}: {name} {GOES_ELSEWHERE.replace(BASE_URL, route)}",
                    f"let the address in, too: --env {route}\n      "
                    f"or, if the key is not the gateway's: env -u {route} claudebox",
                )
            if KINDS.get(name) != STAYS:
                strays[name] = GOES_ELSEWHERE
                if not self.is_noted(name):
                    self.note(name, f"stays outside: it {GOES_ELSEWHERE}")
        return strays

    def _goes_astray(self, name: str, route: str) -> bool:
        there = self.route_on_host(route).rstrip("/")
        # If Claude on the host takes another one from its settings, nobody knows whose this one is.
        is_other = name in self.facts.users.holds
        return bool(there) and (is_other or there != self.route_in_box(route).rstrip("/"))

    def credential(self) -> str:
        """What Claude in the box will send along."""
        hosts = [name for name in (AUTH_TOKEN, API_KEY) if name in self.wishes or name in self.facts.host.environ]
        asked = [name for name in hosts if name not in self.dropped and (name == API_KEY or name in self.wishes)]
        return asked[0] if asked else "Claude's login"

    # Proxies and certificates.

    def proxies(self) -> list[EnvVar]:
        entering = []
        for name, value in self.undecided(PROXY):
            objection = self._objection_to_proxy(value)
            if objection:
                self.note(name, objection)
            else:
                entering.append(EnvVar(name, value, PROXIES))
        is_used = bool(entering) or any(KINDS.get(name) == PROXY for name in self.wishes)
        around = self.undecided(AROUND) if is_used else []
        return entering + [EnvVar(name, value, PROXIES) for name, value in around if value.isprintable()]

    def _objection_to_proxy(self, value: str) -> str:
        tier = self.facts.settings[NETWORK].text
        if may_hold_password(value):
            return "stays outside, for it may hold a password: {} passes it as it is"
        address = read_address(value)
        if address is None:
            return "stays outside, for it is no plain address: {} passes it as it is"
        if tier == NO_NETWORK:
            return "stays outside: with --network none, no proxy can be reached"
        if tier == ALLOWLIST:
            return "stays outside: through a proxy, a box would reach more than --allow lists"
        _, host, port = address
        is_carried = is_loopback(host) and port in {str(one.host) for one in self.facts.settings[HOST_PORTS]}
        if tier != FULL and is_near(host) and not is_carried:
            way = f"--host-port {port}" if is_loopback(host) and port else "--network full"
            return f"stays outside: with --network {tier}, {host} cannot be reached; {way} reaches it"
        return ""

    def bundles(self) -> list[EnvVar]:
        entering = []
        for name, value in self.undecided(BUNDLE):
            objection = self.objection_to_bundle(value)
            if objection:
                self.note(name, f"stays outside: {objection}")
            else:
                entering.append(EnvVar(name, self.facts.tree.resolve(value) or value, CERTIFICATES))
        for name in CERTIFICATE_VARIABLES:
            value = self.hosts.get(name, "")
            if value and not self.is_settled(name) and self.facts.reach.leads_through(value):
                self.note(name, "is not followed: an agent can have written that file")
        return entering

    def objection_to_bundle(self, path: str) -> str:
        facts = self.facts
        real = facts.tree.resolve(path) if path.startswith("/") else None
        if real is None:
            return "it names no file of this host"
        if facts.reach.leads_through(path):
            return "an agent can have written that file, and could trust anybody"
        refusal = refuse_readable(real, facts.host.person.homes, facts.places)
        if refusal:
            return refusal
        return "" if is_bundle(facts.tree, real) else "the file holds no certificates, or more than certificates"


def trouble_with_route(url: str) -> str:
    """What is wrong with the address of a gateway; "" if nothing is."""
    if may_hold_password(url):
        return "the address may hold a password"
    address = read_address(url)
    if address is None or address[0] not in ("http", "https") or "://" not in url:
        return "the address is not plain"
    if address[0] == "http" and not is_loopback(address[1]):
        return "the address has no https, and everybody on the way could read the key"
    return ""


def is_near(host: str) -> bool:
    """Whether tier `inet` keeps the box away from this host, as far as its name tells."""
    from ipaddress import ip_address

    if is_loopback(host):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host  # such a name means somebody on the own network
    return not address.is_global


def _mounts(bundles: list[EnvVar], mounts: tuple[Mount, ...]) -> list[Mount]:
    """Show the files, unless another mount does."""
    shown = dict.fromkeys(bundle.value for bundle in bundles)
    holders = {path: find_holder(path, mounts) for path in shown}
    return [
        Mount(RO, path, CERTIFICATES, source=path, is_dir=False)
        for path, holder in holders.items()
        if holder is None or holder.kind not in FROM_HOST
    ]


def _risks(judged: RouteVariables, bundles: list[EnvVar]) -> list[Finding]:
    """What the user should see, because a project may have set such a variable: direnv runs its .envrc."""
    findings = []
    wishes = [wish for name, wish in judged.wishes.items() if KINDS.get(name) == BUNDLE and name not in judged.dropped]
    chosen = {
        wish.name: wish.value or judged.hosts.get(wish.name, "")
        for wish in wishes
        if wish.value is None or not wish.origin.is_typed
    }
    named = {CERTIFICATE_VARIABLES[0]: judged.facts.certificates, **{one.name: one.value for one in bundles}, **chosen}
    for name, path in named.items():
        objection = judged.objection_to_bundle(path) if name in chosen else ""
        is_foreign = bool(path) and not is_systems(path) and not is_inside(path, NIX_STORE)
        if objection or (is_foreign and name not in chosen):
            text = f"programs in the box believe whoever {path} names, also in the place of the API"
            findings.append(Finding(Finding.RISK, name, f"{text}; {objection}" if objection else text))
    wish, url = judged.wishes.get(BASE_URL), judged.route_in_box(BASE_URL)
    is_typed = wish is not None and wish.value is not None and wish.origin.is_typed
    if url and BASE_URL not in judged.kept_out and not is_typed:
        address = None if may_hold_password(url) else read_address(url)
        place = address[1] if address is not None else "another host than usual"
        text = f"Claude's requests go to {place}, and {judged.credential()} with them"
        findings.append(Finding(Finding.RISK, BASE_URL, text))
    return findings
