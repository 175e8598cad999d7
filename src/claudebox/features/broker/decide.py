"""Decides for `--auth broker` which credential stays outside, and what the box gets in its place."""

from __future__ import annotations

from claudebox.errors import Problem, quote
from claudebox.facts import ClaudeHome, Contribution, Draft, Facts, find_login
from claudebox.features.broker import BROKER
from claudebox.features.broker.forwarder import forwarder
from claudebox.host import Host
from claudebox.host.tree import Tree
from claudebox.host.variables import BASE_URL, read_address, shown_way
from claudebox.model import HIDE, RO, UNSEEN, Broker, EnvVar, Finding, Grant, Mount, Origin, Step
from claudebox.paths import absolute, shorten_home
from claudebox.settings.table import FULL
from claudebox.settings.values import Amount, EnvWish, Settings
from claudebox.state import LOGIN_FILE
from claudebox.state.reach import host_certificates
from claudebox.text import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from claudebox.output.section import Section

SOCKET = "api.sock"
TOKEN_URL = "CLAUDEBOX_TOKEN_URL"  # a variable: where a login is renewed, if it is not the usual place
EXTRA_CERTIFICATES = "NODE_EXTRA_CA_CERTS"  # which Claude Code would trust as well
SHORTEST_SECRET = 8  # what is shorter occurs in every text, and is no secret
OTHERWISE = "choose: --auth passthrough, --auth none"
AT_START = "made-when-the-box-starts"
RULE = "broker"
ROUTE = Origin.of_rule(RULE, "the way to the API")
DUMMY = Origin.of_rule(RULE, "good for this box alone")
QUIET = Origin.of_rule(RULE, "what would go past the broker, and fail")
OLD_LOGIN = Origin.of_rule(RULE, "a login that an earlier box left")

# In the order in which Claude Code looks for them.
VARIABLES = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")
# The first is for a Claude that is logged in with a subscription. Claude takes the other one without a question.
SUBSCRIPTION_TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"
PLAIN_TOKEN = "ANTHROPIC_AUTH_TOKEN"
ROUTE_VARIABLES = ("ANTHROPIC_UNIX_SOCKET", BASE_URL)
STAYS_OUT = "stays outside with --auth broker"

# With one of these, Claude Code talks to somebody else, in another way.
OTHER_PROVIDERS = tuple(
    f"CLAUDE_CODE_USE_{name}" for name in ("BEDROCK", "VERTEX", "FOUNDRY", "MANTLE", "ANTHROPIC_AWS")
)
OFF = ("", "0", "false", "no", "off")
TOKENS = ("accessToken", "refreshToken")


def decide(facts: Facts, _: Draft) -> Contribution:
    broker = plan_broker(facts)
    return Contribution(
        mounts=tuple(broker_mounts(broker, facts.claude, facts.tree)),
        variables=tuple(broker_variables(broker, facts.tree)),
        wrapper=forwarder(facts.host, f"{broker.place}/{SOCKET}"),
        kept_out=tuple(kept_out(broker, facts.host, facts.settings.env).items()),
        findings=tuple(upstream_findings(facts, broker)),
        steps=(Step(Step.BESIDE, BROKER),),
        grants=(_grant(broker, facts.home),),
        records=(broker,),
    )


def plan_broker(facts: Facts) -> Broker:
    """Find the credential. Raises a Problem if there is none that can be used."""
    host, settings, claude = facts.host, facts.settings, facts.claude
    environ, kept = host.environ, claude.all_projects
    for name in OTHER_PROVIDERS:
        if environ.get(name, "").lower() not in OFF:
            raise Problem(
                f"{name} is set: the broker knows only the Anthropic API",
                "choose: --auth passthrough, with --env for what that provider needs",
            )
    variable = next((name for name in VARIABLES if environ.get(name)), "")
    url = find_upstream(facts, variable)
    _check_way({BASE_URL: url, TOKEN_URL: environ.get(TOKEN_URL, "")}, settings)
    login = find_login(facts)
    if not variable and not login.file:
        raise Problem(
            "there is no credential for the broker to use: nobody is logged in, and ANTHROPIC_API_KEY is not set",
            "log in: start `claude`, type /login\n      or choose: --auth none",
        )
    if variable and not _can_be_sent(environ[variable]):
        raise Problem(f"{variable} is no credential: it has spaces or other characters that none has")
    if not variable and not _login(host.tree, login.file).get("accessToken"):
        raise Problem(
            f"{login.file} holds no login", "log in: start `claude`, type /login\n      or choose: --auth none"
        )
    return Broker(
        shown=variable or login.file,
        variable=variable,
        file="" if variable else login.file,
        locks=login.locks,
        url=url,
        certificates=host_certificates(facts.reach, facts.host.environ | dict(facts.users.leading)),
        extra_certificates=_extra_certificates(facts),
        token_name=SUBSCRIPTION_TOKEN if variable in ("", SUBSCRIPTION_TOKEN) else PLAIN_TOKEN,
        sockets=kept.broker,
        place=f"/run/user/{facts.person.uid}/claude-broker",
        lock=kept.broker_lock,
        journal=claude.instance.journal,
        limits=_limits(settings.auth_limits),
        login=login.file,
    )


def _extra_certificates(facts: Facts) -> str:
    """What Claude Code would trust besides. Raises a Problem if an agent can have written it."""
    said = facts.users.claudes_variables(facts.host.environ).get(EXTRA_CERTIFICATES, "")
    path = absolute(said, facts.project, facts.home) if said else ""
    if path and facts.reach.leads_through(path):
        raise Problem(
            f"{EXTRA_CERTIFICATES}: an agent can have written {path}, and could be believed in the place of the API",
            f"keep that file where no agent works\n      or do without it: env -u {EXTRA_CERTIFICATES} claudebox",
        )
    return path


def find_upstream(facts: Facts, variable: str) -> str:
    """The address of the API: the one that Claude on the host uses, or another that somebody asked for.

    Raises a Problem if the credential belongs to somebody else than who would get it.
    """
    users, wish = facts.users, _asked_for(facts)
    hosts = users.claudes_variables(facts.host.environ).get(BASE_URL, "")
    foreign = dict(users.foreign).get(BASE_URL, "")
    if hosts and users.holds:
        raise Problem(
            f"the credential for {BASE_URL} is in your Claude settings ({users.holds[0]}), not in a variable",
            "take it out of ~/.claude/settings.json, and set it in your shell:\n      export ANTHROPIC_AUTH_TOKEN=…",
        )
    if foreign and variable:
        raise Problem(
            f"an agent can have written the Claude settings that say who gets {variable}",
            f"keep them where no agent works, or take {BASE_URL} out of them",
        )
    if wish is None or wish.value is None:
        return hosts
    if wish.origin.is_projects:
        raise Problem(
            f"{wish.origin.shown}: a project's file cannot say who gets the credential",
            f"if you mean it: --env {BASE_URL}={quote(wish.value)}",
        )
    if variable and hosts and wish.value.rstrip("/") != hosts.rstrip("/"):
        raise Problem(
            f"{wish.origin.shown}: {variable} belongs to the gateway that {BASE_URL} names on this host, and would go "
            "to another one",
            f"if the key is not the gateway's: env -u {BASE_URL} claudebox",
        )
    return wish.value


def _asked_for(facts: Facts) -> EnvWish | None:
    """Who asked for another address of the API: the last one counts."""
    return next((wish for wish in reversed(facts.settings.env) if wish.name == BASE_URL), None)


def upstream_findings(facts: Facts, broker: Broker) -> list[Finding]:
    """Say who gets the credential, if it is not who usually does."""
    wish = _asked_for(facts)
    if not broker.url:
        return []
    address = read_address(broker.url)
    place = address[1] if address is not None else "another host than usual"
    asked = f", as {wish.origin.shown} asks" if wish else ""
    text = f"the broker sends the box's requests to {place}{asked}, and the credential with them"
    is_typed = wish is not None and wish.value is not None and wish.origin.is_typed
    return [Finding(Finding.NOTE if is_typed else Finding.RISK, BASE_URL, text)]


def _check_way(addresses: dict[str, str], settings: Settings) -> None:
    """Refuse addresses without TLS if the box can listen on this host's localhost: it would be taken for the API."""
    if settings.network.text != FULL and not settings.publish:
        return
    for name, address in addresses.items():
        if address.lower().startswith("http:"):
            raise Problem(
                f"{name} has no https: a box that can listen on this host's localhost could take the credential there",
                "choose: --network none, --network inet (without --publish)",
            )


def _can_be_sent(value: str) -> bool:
    return value.isascii() and value.isprintable() and " " not in value


def _limits(said: tuple[Amount, ...]) -> tuple[tuple[str, int], ...]:
    """The limits by name. If one is set twice, the lower one counts."""
    lowest: dict[str, int] = {}
    for limit in said:
        lowest[limit.of] = min(lowest.get(limit.of, limit.number), limit.number)
    return tuple(lowest.items())


def broker_variables(broker: Broker, tree: Tree) -> list[EnvVar]:
    """Variables that make Claude Code talk to the broker alone."""
    subscription = _subscription(tree, broker.file) if broker.file else ""
    return [
        EnvVar(BASE_URL, "http://localhost", ROUTE, is_ours=True),
        EnvVar(broker.token_name, AT_START, DUMMY, is_ours=True),
        # By this Claude knows which models and features there are.
        *([EnvVar("CLAUDE_CODE_SUBSCRIPTION_TYPE", subscription, ROUTE, is_ours=True)] if subscription else []),
        EnvVar("ENABLE_TOOL_SEARCH", "true", ROUTE, is_ours=True),
        EnvVar("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1", QUIET, is_ours=True),
        EnvVar("CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL", "1", QUIET, is_ours=True),
    ]


def _subscription(tree: Tree, file: str) -> str:
    value = _login(tree, file).get("subscriptionType")
    return value if isinstance(value, str) and value.isidentifier() else ""


def _login(tree: Tree, file: str) -> dict[str, Any]:
    from claudebox.state.login import login_in, parse

    return login_in(parse(tree.read(file) or b""))


def kept_out(broker: Broker, host: Host, wishes: tuple[EnvWish, ...]) -> dict[str, str]:
    """Variables that stay outside, whoever asks for them: credentials, the way to them, and copies of one."""
    names = dict.fromkeys((*VARIABLES, *ROUTE_VARIABLES), STAYS_OUT)
    login = _login(host.tree, broker.login) if broker.login else {}
    known = [*(host.environ.get(name) for name in VARIABLES), *(login.get(name) for name in TOKENS)]
    secrets = [secret for secret in known if isinstance(secret, str) and len(secret) >= SHORTEST_SECRET]
    written = [(wish.name, wish.value) for wish in wishes if wish.value is not None]
    for name, value in (*host.environ.items(), *written):
        if any(secret in value for secret in secrets):
            names[name] = f"holds the credential, which {STAYS_OUT}"
    return names


def broker_mounts(broker: Broker, home: ClaudeHome, tree: Tree) -> list[Mount]:
    mounts = [Mount(RO, broker.place, ROUTE, source=broker.sockets, identity=UNSEEN)]
    old = home.instance.own_login
    if tree.lstat(old) is not None and not tree.is_link(old):
        mounts.append(Mount(HIDE, f"{home.place}/{LOGIN_FILE}", OLD_LOGIN, is_dir=False))
    return mounts


NOT_PASTED = "--auth broker: only claudebox starts the broker. After pasting, nobody answers at its socket."
TOLD = """
You talk to the Claude API through a socket of the user's machine. The login is there, and no token in the box is good
for anything else. Only messages pass: not the account, its usage or files, and no `claude` login commands.
"""


def _grant(broker: Broker, home: str) -> Grant:
    way = ("to", shown_way(broker.url)) if broker.url else ()
    limits = f" at most {limits_text(broker.limits)}" if broker.limits else ""
    words = (shorten_home(broker.shown, home), *f"(the broker uses it for the box){limits}".split())
    return Grant((("broker", broker.shown, *way),), "credential", words)


def limits_text(limits: tuple[tuple[str, int], ...]) -> str:
    """Limits are named in the plural."""
    return ", ".join(counted(number, name.removesuffix("s")) for name, number in limits)


def section(broker: Broker, home: str) -> Section:
    from claudebox.output.section import NETWORK, OUTSIDE, Row, Section

    grant, limits = _grant(broker, home), f"; at most {limits_text(broker.limits)}" if broker.limits else ""
    return Section(
        title=OUTSIDE,
        lines=((grant.label, grant.words),),
        rows=(Row("login", words=f"{shorten_home(broker.shown, home)} stays outside (broker){limits}"),),
        key="broker",
        value={"credential": broker.shown, "limits": dict(broker.limits), "journal": broker.journal},
        told=((NETWORK, TOLD),),
        comment=NOT_PASTED,
    )
