"""Decides for `--auth broker` which credential stays outside, what the box gets in its place, and starts the broker.

The broker is a process beside the box that holds the credential, and listens for the box. It ends when the parent of
the box does, and the parent ends the box when the broker has ended.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem, quote
from claudebox.facts import ClaudeHome, Contribution, Draft, Facts, find_login
from claudebox.features.broker import AUTH_LIMITS, BROKER, BROKER_FETCH
from claudebox.files import c_call
from claudebox.host import Host
from claudebox.host.tree import Tree
from claudebox.host.variables import (
    API_KEY,
    AUTH_TOKEN,
    BASE_URL,
    DEVICE_TOKEN,
    FEDERATION,
    LOGIN_FILES,
    LOGIN_TOKENS,
    OAUTH_TOKEN,
    PROFILE,
    PROFILES,
    SHORTEST_SECRET,
    is_loopback,
    read_address,
    shown_way,
    split_port,
)
from claudebox.model import HIDE, Address, Broker, EnvVar, Finding, Grant, Launch, Mount, Origin, Proxy, Step
from claudebox.output.section import Section
from claudebox.paths import absolute, shorten_home
from claudebox.process.companion import Companion, enter_as_owner, start_beside, watch_own_end
from claudebox.process.isolation import NEW_NETWORK_NAMESPACE
from claudebox.record import Record
from claudebox.settings import Amount, EnvWish, Settings
from claudebox.settings.table import ENV, FULL, HOST_PORTS, INET, NETWORK, ON, PUBLISH
from claudebox.state import LOGIN_FILE
from claudebox.state.reach import host_certificates
from claudebox.text import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from claudebox.model import Deed

API = "https://api.anthropic.com"
RENEWAL = "https://platform.claude.com/v1/oauth/token"
TOKEN_URL = "CLAUDEBOX_TOKEN_URL"  # a variable: where a login is renewed, if it is not the usual place
PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
MOST_PORTS = 1 << 16
# In a network of the box's own. The kernel gives out lower ones by itself, and programs ask for lower ones.
FIRST_PORT = 61_357
EXTRA_CERTIFICATES = "NODE_EXTRA_CA_CERTS"  # which Claude Code would trust as well
WITHOUT_EXTRA = f"env -u {EXTRA_CERTIFICATES} claudebox"
OTHERWISE = "choose: --auth passthrough, --auth none"
AT_START = "made-when-the-box-starts"
RULE = "broker"
ROUTE = Origin.of_rule(RULE, "the way to the API")
DUMMY = Origin.of_rule(RULE, "good for this box alone")
QUIET = Origin.of_rule(RULE, "what would go past the broker, and fail")
OLD_LOGIN = Origin.of_rule(RULE, "a login that an earlier box left")

# In the order in which Claude Code looks for them.
VARIABLES = (AUTH_TOKEN, API_KEY, OAUTH_TOKEN)
ROUTE_VARIABLES = ("ANTHROPIC_UNIX_SOCKET", BASE_URL)
STAYS_OUT = "stays outside with --auth broker"

# With one of these and none of those, Claude Code uses no login that it keeps.
OTHER_LOGINS = (*LOGIN_TOKENS, *LOGIN_FILES[:2], PROFILE, FEDERATION)
# With one of these, Claude Code talks to somebody else, in another way.
OTHER_PROVIDERS = tuple(
    f"CLAUDE_CODE_USE_{name}" for name in ("BEDROCK", "VERTEX", "FOUNDRY", "MANTLE", "ANTHROPIC_AWS")
)
OFF = ("", "0", "false", "no", "off")
TOKENS = ("accessToken", "refreshToken")


def decide(facts: Facts, _: Draft) -> Contribution:
    broker = plan_broker(facts)
    return Contribution(
        mounts=_hide_old_login(facts.claude, facts.tree),
        variables=tuple(broker_variables(broker, facts.tree)),
        kept_out=tuple(kept_out(broker, facts.host, facts.settings[ENV]).items()),
        findings=tuple(upstream_findings(facts, broker)),
        steps=(Step(Step.BESIDE, BROKER), Step(Step.MADE, BROKER)),
        grants=(_grant(broker, facts.home), *([FETCHING] if broker.fetches and not _reaches(facts.settings) else [])),
        records=(broker,),
    )


def plan_broker(facts: Facts) -> Broker:
    """Find the credential and the server that gets it. Raises a Problem if there is none that can be used."""
    environ, kept = facts.host.environ, facts.claude.all_projects
    for name in OTHER_PROVIDERS:
        if environ.get(name, "").lower() not in OFF:
            what = f"{name} is set: the broker knows only the Anthropic API"
            raise Problem(what, "choose: --auth passthrough, with --env for what that provider needs")
    variable = next((name for name in VARIABLES if environ.get(name)), "")
    other = next((name for name in OTHER_LOGINS if environ.get(name)), "")
    if other and not variable:
        what = f"{other} is set: the broker knows API keys, tokens and the login of `claude`, and no other kind"
        raise Problem(what, f"if there is another login: env -u {other} claudebox\n      {OTHERWISE}")
    url = find_upstream(facts, variable)
    login = find_login(facts)
    _check_credential(facts, variable, login.file)
    return Broker(
        shown=variable or login.file,
        variable=variable,
        file="" if variable else login.file,
        locks=login.locks,
        url=url,
        api=_find_way(BASE_URL, url or API, facts),
        renewal=_find_way(TOKEN_URL, environ.get(TOKEN_URL) or RENEWAL, facts),
        certificates=host_certificates(facts.reach, environ | dict(facts.users.leading)),
        extra_certificates=_extra_certificates(facts),
        # The first is for a Claude that is logged in with a subscription. Claude takes the other without a question.
        token_name=OAUTH_TOKEN if variable in ("", OAUTH_TOKEN) else AUTH_TOKEN,
        port=_find_port(facts.settings),
        lock=kept.broker_lock,
        journal=facts.claude.instance.journal,
        fetches=_may_fetch(facts.settings),
        limits=_limits(facts.settings[AUTH_LIMITS]),
        login=login.file,
    )


def _may_fetch(settings: Settings) -> bool:
    """A box that reaches the internet by itself gains nothing by the API, unless somebody says otherwise."""
    said = settings[BROKER_FETCH]
    return _reaches(settings) if said.origin.is_default else said.text == ON


def _reaches(settings: Settings) -> bool:
    """Whether the box reaches the internet by itself."""
    return settings[NETWORK].text in (FULL, INET)


def _check_credential(facts: Facts, variable: str, file: str) -> None:
    log_in = "log in: start `claude`, type /login\n      or choose: --auth none"
    if variable:
        value = facts.host.environ[variable]
        if not (value.isascii() and value.isprintable() and " " not in value):
            raise Problem(f"{variable} is no credential: it has spaces or other characters that none has")
    elif not file:
        what = "there is no credential for the broker to use: nobody is logged in, and ANTHROPIC_API_KEY is not set"
        unused = f" (of the profiles in {profiles} it can use none)" if (profiles := _profiles(facts)) else ""
        raise Problem(what + unused, log_in)
    elif not _login(facts.tree, file).get("accessToken"):
        raise Problem(f"{file} holds no login", log_in)


def _profiles(facts: Facts) -> str:
    """The directory in which Claude Code keeps logins of another kind; "" if there are none."""
    environ = facts.host.environ
    usual = f"{environ.get('XDG_CONFIG_HOME') or facts.home + '/.config'}/anthropic"
    path = environ.get(PROFILES) or usual
    return path if facts.tree.exists(f"{path}/credentials") else ""


def _find_port(settings: Settings) -> int:
    """The port of the box at which the broker listens; 0 if the box has this host's network: then any that is free."""
    if settings[NETWORK].text == FULL:
        return 0
    taken = {port.box for port in (*settings[PUBLISH], *settings[HOST_PORTS])}
    return next(port for port in range(FIRST_PORT, MOST_PORTS) if port not in taken)


def address_of(port: int) -> str:
    """The address for Claude. It has no name: `localhost` may be ::1, where another box of this host can listen."""
    return f"http://127.0.0.1:{port}"


def _extra_certificates(facts: Facts) -> str:
    """What Claude Code would trust besides. Raises a Problem if it cannot be read, or an agent can have written it."""
    said = facts.users.claudes_variables(facts.host.environ).get(EXTRA_CERTIFICATES, "")
    path = absolute(said, facts.project, facts.home) if said else ""
    if path and facts.reach.leads_through(path):
        what = f"{EXTRA_CERTIFICATES}: an agent can have written {path}, and could be believed in the place of the API"
        raise Problem(what, f"keep that file where no agent works\n      or do without it: {WITHOUT_EXTRA}")
    if path and facts.tree.read(path) is None:
        raise Problem(f"{EXTRA_CERTIFICATES}: the broker cannot read the certificates in {path}", WITHOUT_EXTRA)
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
        what = f"an agent can have written the Claude settings that say who gets {variable}"
        raise Problem(what, f"keep them where no agent works, or take {BASE_URL} out of them")
    if wish is None or wish.value is None:
        return hosts
    if wish.origin.is_projects:
        what = f"{wish.origin.shown}: a project's file cannot say who gets the credential"
        raise Problem(what, f"if you mean it: --env {BASE_URL}={quote(wish.value)}")
    if variable and hosts and wish.value.rstrip("/") != hosts.rstrip("/"):
        raise Problem(
            f"{wish.origin.shown}: {variable} belongs to the gateway that {BASE_URL} names on this host, and would go "
            "to another one",
            f"if the key is not the gateway's: env -u {BASE_URL} claudebox",
        )
    return wish.value


def _asked_for(facts: Facts) -> EnvWish | None:
    """Who asked for another address of the API: the last one counts."""
    return next((wish for wish in reversed(facts.settings[ENV]) if wish.name == BASE_URL), None)


def upstream_findings(facts: Facts, broker: Broker) -> list[Finding]:
    """Say which login is used if there are others, and who gets it if it is not who usually does."""
    wish, profiles = _asked_for(facts), "" if broker.variable else _profiles(facts)
    unused = f"the broker uses {broker.file}, and no profile of {profiles}"
    notes = [Finding(Finding.NOTE, "--auth broker", unused)] if profiles else []
    if not broker.url:
        return notes
    asked = f", as {wish.origin.shown} asks" if wish else ""
    text = f"the broker sends the box's requests to {broker.api.host}{asked}, and the credential with them"
    is_typed = wish is not None and wish.value is not None and wish.origin.is_typed
    return [*notes, Finding(Finding.NOTE if is_typed else Finding.RISK, BASE_URL, text)]


def _find_way(name: str, url: str, facts: Facts) -> Address:
    """The address in this variable, and the proxy on the way. Raises a Problem if it cannot be used.

    A box that can listen on this host's localhost would be taken for the API there, if that has no TLS.
    """
    address = parse_address(url, name)
    if not address.is_tls and (facts.settings[NETWORK].text == FULL or facts.settings[PUBLISH]):
        what = f"{name} has no https: a box that can listen on this host's localhost could take the credential there"
        raise Problem(what, "choose: --network none, --network inet (without --publish)")
    return address.replace(proxy=find_proxy(facts.host.environ, address))


def parse_address(url: str, name: str = BASE_URL) -> Address:
    """Parse a URL, which this variable has. Raises a Problem."""
    scheme, host, port = read_address(url) or ("", "", "")
    try:
        if scheme not in ("https", "http") or "://" not in url:
            raise ValueError("it is no plain http or https address")
        if scheme == "http" and not is_loopback(host):
            raise ValueError("without https, everybody on the way could read the credential")
        prefix = "/" + url.partition("://")[2].partition("/")[2].rstrip("/")
        return Address(host, _port(port, 443 if scheme == "https" else 80), scheme == "https", prefix.rstrip("/"))
    except ValueError as error:
        raise Problem(f"{name} is nothing that the broker can use: {error}", OTHERWISE) from None


def _port(text: str, usual: int) -> int:
    port = int(text or usual)
    if port >= MOST_PORTS:
        raise ValueError("there is no such port")
    return port


def find_proxy(environ: dict[str, str], address: Address) -> Proxy | None:
    """Find the proxy that Claude Code would use on the host. Raises a Problem."""
    url = next((environ[name] for name in PROXIES if environ.get(name)), "")
    if not url or not address.is_tls or _goes_around(environ, address):  # no tunnel for what is not encrypted
        return None
    scheme, has_scheme, rest = url.partition("://")
    account, has_account, place = (rest if has_scheme else url).partition("/")[0].rpartition("@")
    host, port = split_port(place)
    try:
        if has_scheme and scheme.lower() != "http":
            raise ValueError(f"a proxy of the kind {scheme}:// cannot be used")
        if read_address(place) is None:
            raise ValueError("it is no plain address")
        return Proxy(host, _port(port, 80), _basic(account) if has_account else "")
    except ValueError as error:
        raise Problem(f"the broker cannot use the proxy of this host: {error}", OTHERWISE) from None


def _basic(account: str) -> str:
    from base64 import b64encode
    from urllib.parse import unquote

    name, _, password = account.partition(":")
    return "Basic " + b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()


def _goes_around(environ: dict[str, str], address: Address) -> bool:
    """Whether NO_PROXY names the host, a domain that it is in, or everything."""
    words = (environ.get("no_proxy") or environ.get("NO_PROXY") or "").replace(",", " ").split()
    for word in words:
        name, _, port = word.rpartition(":") if word.count(":") == 1 else (word, "", "")
        domain = name.lower().removeprefix("*").lstrip(".")
        if port and port != str(address.port):
            continue
        if name == "*" or (domain and (address.host == domain or address.host.endswith(f".{domain}"))):
            return True
    return is_loopback(address.host)


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
        EnvVar(BASE_URL, address_of(broker.port) if broker.port else "http://localhost", ROUTE, is_ours=True),
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
    tokens = (*VARIABLES, *LOGIN_TOKENS, DEVICE_TOKEN)
    names = dict.fromkeys((*tokens, *LOGIN_FILES, PROFILE, PROFILES, FEDERATION, *ROUTE_VARIABLES), STAYS_OUT)
    login = _login(host.tree, broker.login) if broker.login else {}
    known = [*(host.environ.get(name) for name in tokens), *(login.get(name) for name in TOKENS)]
    secrets = [secret for secret in known if isinstance(secret, str) and len(secret) >= SHORTEST_SECRET]
    written = [(wish.name, wish.value) for wish in wishes if wish.value is not None]
    for name, value in (*host.environ.items(), *written):
        if any(secret in value for secret in secrets):
            names[name] = f"holds the credential, which {STAYS_OUT}"
    return names


def _hide_old_login(home: ClaudeHome, tree: Tree) -> tuple[Mount, ...]:
    old = home.instance.own_login
    if tree.lstat(old) is None or tree.is_link(old):
        return ()
    return (Mount(HIDE, f"{home.place}/{LOGIN_FILE}", OLD_LOGIN, is_dir=False),)


FETCHES = tuple("may fetch for the box: web search, MCP servers, addresses in requests".split())
NO_FETCHES = tuple("is asked to fetch nothing for the box".split())
FETCHING = Grant((("broker-fetch", "on"), ("network", INET), ("network", FULL)), "the API", FETCHES, widens=True)
NOT_PASTED = "--auth broker: only claudebox starts the broker. After pasting, nobody answers at its port."
TOLD = """
You talk to the Claude API through a process on the user's machine. The login is there, and no token in the box is
good for anything else. Only messages pass: not the account, its usage or files, and no `claude` login commands.
"""
TOLD_NOT_TO_FETCH = """\
The API fetches nothing for you: a request with a web search, an MCP server, a URL or a file of the account is refused
(status 400). Only the user can allow that: `--broker-fetch on`.
"""


def _grant(broker: Broker, home: str) -> Grant:
    way = ("to", shown_way(broker.url)) if broker.url else ()
    limits = f" at most {limits_text(broker.limits)}" if broker.limits else ""
    words = (shorten_home(broker.shown, home), *f"(the broker uses it for the box){limits}".split())
    return Grant((("broker", broker.shown, *way),), "credential", words)


def limits_text(limits: tuple[tuple[str, int], ...]) -> str:
    """Limits are named in the plural."""
    return ", ".join(counted(number, name.removesuffix("s")) for name, number in limits)


def sections(broker: Broker, home: str) -> tuple[Section, ...]:
    from claudebox.output.section import NETWORK, OUTSIDE, Row, Section

    grant, limits = _grant(broker, home), f"; at most {limits_text(broker.limits)}" if broker.limits else ""
    kept = Section(
        title=OUTSIDE,
        lines=((grant.label, grant.words),),
        rows=(Row("login", words=f"{shorten_home(broker.shown, home)} stays outside (broker){limits}"),),
        key="broker",
        value={
            "credential": broker.shown,
            "limits": dict(broker.limits),
            "journal": broker.journal,
            "fetches": broker.fetches,
        },
        told=((NETWORK, TOLD if broker.fetches else TOLD + TOLD_NOT_TO_FETCH),),
        comment=NOT_PASTED,
    )
    api = Section(title=NETWORK, lines=(("the API", FETCHES if broker.fetches else NO_FETCHES),))
    return kept, api


# The process

BACKLOG = 1024  # connections that wait to be accepted: beyond it, one fails at once
TOKEN_BYTES = 32
SET_DUMPABLE = 4


class Channel(Record):
    """Of this launch: the socket that leads to the broker."""

    to_broker: int


def beside(launch: Launch) -> Companion:
    """Start the broker. The launch gets a token, and the way to the broker."""
    from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair

    broker = launch.get(Broker)
    end = watch_own_end("for --auth broker", "--auth none")
    token, port = f"claudebox-{os.urandom(TOKEN_BYTES).hex()}", broker.port
    ours, theirs = (one.detach() for one in socketpair(AF_UNIX, SOCK_SEQPACKET))
    life = start_beside(lambda report: _serve(broker, token, end, report), (end,), (ours, theirs))
    if not port:  # the box has this host's network
        port = _listen(0, life)
    made = {broker.token_name: token, BASE_URL: address_of(port)}
    launch.environment = tuple(one.replace(value=made.get(one.name, one.value)) for one in launch.environment)
    launch.keep(Channel(life))
    return Companion(life, ended, failed)


def made(launch: Launch, root: str) -> Deed:
    """Make the broker's listener in the box's own network, before a program starts there."""
    port = launch.get(Broker).port
    if port:
        child = os.fork()
        if child == 0:
            try:
                if enter_as_owner(f"{os.path.dirname(root)}/ns/net", NEW_NETWORK_NAMESPACE):
                    _listen(port, launch.get(Channel).to_broker)
                    os._exit(0)
            finally:
                os._exit(1)
        if os.waitpid(child, 0)[1] != 0:
            raise Problem("the kernel does not let the broker listen in the box's network", OTHERWISE)
    return lambda _: None


def _listen(port: int, channel: int) -> int:
    """Listen in this network, and hand the listener over to the broker. Returns the port, which may be a new one."""
    import sys
    from _socket import AF_INET, AF_UNIX, SCM_RIGHTS, SOCK_SEQPACKET, SOCK_STREAM, SOL_SOCKET, socket

    listener = socket(AF_INET, SOCK_STREAM)
    listener.bind(("127.0.0.1", port))
    listener.listen(BACKLOG)
    descriptor = listener.fileno().to_bytes(4, sys.byteorder)
    other = socket(AF_UNIX, SOCK_SEQPACKET, 0, channel)
    try:
        other.sendmsg([b"listener"], [(SOL_SOCKET, SCM_RIGHTS, descriptor)])
    except OSError:
        pass  # it has ended, which the parent notices by itself
    other.detach()
    return int(listener.getsockname()[1])


def _serve(broker: Broker, token: str, end: int, channel: int) -> None:
    c_call("prctl", SET_DUMPABLE, 0, 0, 0, 0)  # no other program of the user looks into its memory
    from claudebox.servers.broker import run

    run(broker, token, end, channel)


def ended() -> Problem:
    return Problem("the broker was ended, and the box with it", "start it again, and go on with --continue")


def failed() -> Problem:
    return Problem("the broker ended before it had begun", OTHERWISE)
