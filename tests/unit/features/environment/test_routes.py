"""What leads requests somewhere, and what holds a credential: which of it enters, and beside what."""

import json
from pathlib import Path
from typing import Any

import pytest

from claudebox.consent import agreement, find_news
from claudebox.errors import Problem
from claudebox.model import RO, Finding, Plan
from hosts.machine import EVERYONE, TREES, Machine

pytestmark = pytest.mark.req("SEC-01")

GATEWAY = "https://gateway.example/v1"
OTHER = "https://other.example"
BASE_URL, API_KEY, AUTH_TOKEN = "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"
KEY, TOKEN = "key-of-the-gateway", "token-of-the-gateway"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\\nMIIB\\n-----END CERTIFICATE-----\\n"
PROXY = "http://proxy.example:3128"


class Desk:
    """A Debian on which somebody has set variables."""

    def __init__(self, root: Path) -> None:
        login = json.dumps({"claudeAiOauth": {"accessToken": "sk-ant-oat01-login-of-alice", "expiresAt": 1}})
        self.machine = Machine(root).plant(f"~/.claude/.credentials.json: {login}\n/usr/bin/pasta*\n/usr/sbin/nft*")

    def plan(self, *words: str, settings: Any = None, plant: str = "", **environ: str) -> Plan:
        if settings is not None:
            text = settings if isinstance(settings, str) else json.dumps(settings)
            self.machine.plant(f"~/.claude/settings.json: {text}")
        self.machine.plant(plant)
        self.machine.plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
        self.machine.environ |= environ
        return self.machine.plan(*words)

    def project_file(self, path: str, text: str) -> None:
        self.machine.plant(f"~/shop/{path}: {text}")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def entering(plan: Plan, *names: str) -> dict[str, str]:
    """The values of these variables in the box."""
    return {variable.name: variable.value for variable in plan.environment if variable.name in names}


def about(plan: Plan, name: str) -> list[str]:
    """What the user is told about a variable."""
    return [f"{one.kind}: {one.text}" for one in plan.findings if name in one.subject.split(", ")]


HARMLESS = {
    "COLORTERM": "truecolor",
    "TERM_PROGRAM": "WezTerm",
    "TERM_PROGRAM_VERSION": "20240203",
    "TZ": "Europe/Berlin",
    "LC_TIME": "de_DE.UTF-8",
    "ANTHROPIC_MODEL": "opus",
    "ANTHROPIC_SMALL_FAST_MODEL": "haiku",
    "ANTHROPIC_DEFAULT_SONNET_MODEL": "sonnet",
    "NO_COLOR": "1",
}


@pytest.mark.req("SAND-03")
def test_harmless_variables_enter_by_a_rule_that_says_why(desk: Desk) -> None:
    plan = desk.plan(**HARMLESS)
    assert entering(plan, *HARMLESS) == HARMLESS
    origins = {variable.name: variable.origin for variable in plan.environment}
    assert all(origins[name].is_rule("allowed") and origins[name].reason for name in HARMLESS)


@pytest.mark.req("SAND-03")
@pytest.mark.parametrize(
    ("name", "value"),
    [("TZ", "/home/alice/.ssh/id"), ("TZ", ":/etc/shadow"), ("TZ", "../x"), ("LC_TIME", "/tmp/x"), ("LANGUAGE", "a/b")],
)
def test_value_that_makes_the_c_library_read_a_file_stays_outside(desk: Desk, name: str, value: str) -> None:
    assert entering(desk.plan(**{name: value}), name) == {}


# A key and the address that it belongs to.


@pytest.mark.req("SAND-03")
def test_key_enters_with_the_gateway_that_it_belongs_to(desk: Desk) -> None:
    plan = desk.plan(**{BASE_URL: GATEWAY, API_KEY: KEY})
    assert entering(plan, BASE_URL, API_KEY) == {BASE_URL: GATEWAY, API_KEY: KEY}
    assert about(plan, BASE_URL) == [f"risk: Claude's requests go to gateway.example, and {API_KEY} with them"]


def test_gateway_of_the_settings_counts_as_claude_counts_it(desk: Desk) -> None:
    """Claude puts the settings above the variables."""
    plan = desk.plan(settings={"env": {BASE_URL: GATEWAY}}, **{BASE_URL: OTHER, API_KEY: KEY})
    assert entering(plan, BASE_URL, API_KEY) == {BASE_URL: GATEWAY, API_KEY: KEY}


STRAY = {
    "dropped": ("--drop-env", BASE_URL),
    "changed": ("--env", f"{BASE_URL}={OTHER}"),
}


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("words", STRAY.values(), ids=STRAY)
@pytest.mark.parametrize("place", ["variable", "settings"])
def test_key_of_a_gateway_goes_to_nobody_else(desk: Desk, words: tuple[str, ...], place: str) -> None:
    settings = {"env": {BASE_URL: GATEWAY}} if place == "settings" else None
    plan = desk.plan(*words, settings=settings, **{API_KEY: KEY}, **({} if settings else {BASE_URL: GATEWAY}))
    assert entering(plan, API_KEY) == {}
    assert "belongs to the gateway" in about(plan, API_KEY)[0]


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("words", STRAY.values(), ids=STRAY)
@pytest.mark.parametrize("name", [API_KEY, AUTH_TOKEN, "CLAUDE_CODE_GATEWAY_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"])
def test_asking_for_the_key_without_its_gateway_starts_nothing(desk: Desk, words: tuple[str, ...], name: str) -> None:
    with pytest.raises(Problem, match="belongs to the gateway") as caught:
        desk.plan(*words, "--env", name, **{BASE_URL: GATEWAY, name: KEY})
    assert caught.value.status == 125


@pytest.mark.parametrize(
    ("name", "route"),
    [
        ("AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_BEDROCK_BASE_URL"),
        ("ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_BASE_URL"),
    ],
)
def test_key_of_another_provider_has_a_gateway_too(desk: Desk, name: str, route: str) -> None:
    with pytest.raises(Problem, match="belongs to the gateway"):
        desk.plan("--env", name, **{name: KEY, route: GATEWAY})
    plan = desk.plan("--env", name, "--env", route)
    assert entering(plan, name, route) == {name: KEY, route: GATEWAY}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ANTHROPIC_IDENTITY_TOKEN", "stays outside: --env ANTHROPIC_IDENTITY_TOKEN"),
        ("CLAUDE_CODE_OAUTH_REFRESH_TOKEN", "stays outside: --env CLAUDE_CODE_OAUTH_REFRESH_TOKEN"),
        ("CLAUDE_CODE_GATEWAY_TOKEN", "stays outside: --env CLAUDE_CODE_GATEWAY_TOKEN"),
        ("CLAUDE_TRUSTED_DEVICE_TOKEN", "stays outside: --env CLAUDE_TRUSTED_DEVICE_TOKEN"),
        ("ANTHROPIC_PROFILE", "never enter; /login in the box"),
        ("ANTHROPIC_CONFIG_DIR", "never enter; /login in the box"),
        ("ANTHROPIC_FEDERATION_RULE_ID", "never enter; /login in the box"),
        ("ANTHROPIC_IDENTITY_TOKEN_FILE", "never enter; /login in the box"),
        ("CLAUDE_CODE_HOST_CREDS_FILE", "never enter; /login in the box"),
    ],
)
def test_newer_login_stays_outside_and_a_note_says_so(desk: Desk, name: str, says: str) -> None:
    plan = desk.plan(**{name: "/somewhere/else"})
    assert entering(plan, name) == {}
    assert says in about(plan, name)[0]


def test_written_key_goes_where_it_was_written_to(desk: Desk) -> None:
    """It is not the host's."""
    words = ("--env", f"{BASE_URL}={OTHER}", "--env", f"{API_KEY}=another")
    plan = desk.plan(*words, **{BASE_URL: GATEWAY, API_KEY: KEY})
    assert entering(plan, BASE_URL, API_KEY) == {BASE_URL: OTHER, API_KEY: "another"}


def test_login_does_not_go_to_a_gateway_by_itself(desk: Desk) -> None:
    plan = desk.plan(**{BASE_URL: GATEWAY})
    assert entering(plan, BASE_URL) == {}
    assert "Claude's login would go there: --env ANTHROPIC_BASE_URL" in about(plan, BASE_URL)[0]
    asked = desk.plan("--env", BASE_URL)
    assert entering(asked, BASE_URL) == {BASE_URL: GATEWAY}
    assert about(asked, BASE_URL)[0].startswith("risk: ")


GATEWAYS_OWN: dict[str, tuple[dict[str, str], Any]] = {
    "token": ({BASE_URL: GATEWAY, AUTH_TOKEN: TOKEN}, None),
    "token-and-key": ({BASE_URL: GATEWAY, AUTH_TOKEN: TOKEN, API_KEY: KEY}, None),
    "headers": ({BASE_URL: GATEWAY, "ANTHROPIC_CUSTOM_HEADERS": "x: y", API_KEY: KEY}, None),
    "token-in-settings": ({API_KEY: KEY}, {"env": {BASE_URL: GATEWAY, AUTH_TOKEN: TOKEN}}),
    "key-in-settings": ({API_KEY: KEY, BASE_URL: GATEWAY}, {"env": {API_KEY: "another"}}),
    "helper": ({BASE_URL: GATEWAY, API_KEY: KEY}, {"apiKeyHelper": "/usr/bin/pass gateway"}),
}


@pytest.mark.parametrize("case", GATEWAYS_OWN)
def test_gateway_stays_outside_if_what_it_is_used_with_does(desk: Desk, case: str) -> None:
    """Else Claude in the box would send it what it has instead: the login."""
    environ, settings = GATEWAYS_OWN[case]
    plan = desk.plan(settings=settings, **environ)
    assert entering(plan, BASE_URL, API_KEY, AUTH_TOKEN, "ANTHROPIC_CUSTOM_HEADERS") == {}
    for name in environ:
        assert about(plan, name), name
    assert not any(value in finding.text for finding in plan.findings for value in (KEY, TOKEN, "another"))


@pytest.mark.req("EXT-01")
@pytest.mark.parametrize("name", [AUTH_TOKEN, API_KEY])
def test_project_that_drops_the_token_does_not_send_the_login_in_its_place(desk: Desk, name: str) -> None:
    """A project's file takes away without being asked."""
    plan = desk.plan(
        "--env", name, plant=f'~/shop/.claudebox.toml: drop_env = ["{name}"]', **{BASE_URL: GATEWAY, name: KEY}
    )
    assert entering(plan, BASE_URL, name) == {}


@pytest.mark.req("EXT-01")
def test_other_credential_for_the_same_gateway_is_news(desk: Desk) -> None:
    words = ("--env", AUTH_TOKEN, "--env", BASE_URL)
    first = desk.plan(*words, **{BASE_URL: GATEWAY, AUTH_TOKEN: TOKEN})
    news = find_news(desk.plan(*words, "--drop-env", AUTH_TOKEN), (frozenset(agreement(first)),))
    assert news.is_grave


def test_key_of_the_shell_enters_where_there_is_no_gateway(desk: Desk) -> None:
    plan = desk.plan(settings={"env": {API_KEY: "another"}}, **{API_KEY: KEY})
    assert entering(plan, API_KEY) == {API_KEY: KEY}


def test_token_that_was_asked_for_brings_its_gateway(desk: Desk) -> None:
    plan = desk.plan("--env", AUTH_TOKEN, **{BASE_URL: GATEWAY, AUTH_TOKEN: TOKEN})
    assert entering(plan, BASE_URL, AUTH_TOKEN) == {BASE_URL: GATEWAY, AUTH_TOKEN: TOKEN}


@pytest.mark.parametrize(
    "url",
    [
        "http://gateway.example",
        "http://127.0.0.1.evil.example",
        "https://me:secret@gateway.example",
        "https:me:secret@gateway.example",
        "https://me%3Asecret%40gateway.example",
        "gateway.example",
        "https://gateway.example\nX: y",
        "https://gateway.example?x=y",
        "https://gateway.example\\@evil.example",
        "ftp://gateway.example",
        "https://" + "a" * 5000,
        "https://",
    ],
)
def test_strange_gateway_enters_with_its_key_or_not_at_all(desk: Desk, url: str) -> None:
    plan = desk.plan(**{BASE_URL: url, API_KEY: KEY})
    assert entering(plan, BASE_URL, API_KEY) == {}
    assert len(about(plan, BASE_URL)) == len(about(plan, API_KEY)) == 1
    assert not any("secret" in finding.text for finding in plan.findings if BASE_URL in finding.subject)


def test_gateway_that_is_not_in_the_list_of_names_is_named(desk: Desk) -> None:
    words = ("--network", "allowlist", "--allow", "example.org")
    plan = desk.plan(*words, **{BASE_URL: GATEWAY, API_KEY: KEY})
    assert about(plan, "--network allowlist") == ["note: claude does not reach its API: --allow gateway.example"]
    listed = desk.plan(*words, "--allow", "gateway.example")
    assert about(listed, "--network allowlist") == []


def test_gateway_on_this_host_needs_no_tls(desk: Desk) -> None:
    plan = desk.plan(**{BASE_URL: "http://127.0.0.1:4000", API_KEY: KEY})
    assert entering(plan, BASE_URL, API_KEY) == {BASE_URL: "http://127.0.0.1:4000", API_KEY: KEY}


def test_password_in_an_address_is_never_shown(desk: Desk) -> None:
    for name in (BASE_URL, "HTTPS_PROXY"):
        plan = desk.plan("--env", name, **{name: "https:me:hunter2@gateway.example"})
        assert [one.secret for one in plan.environment if one.name == name] == ["it may hold a password"]
        assert not any("hunter2" in line for line in (*agreement(plan), *(one.text for one in plan.findings)))


@pytest.mark.req("SAND-03")
@pytest.mark.parametrize(
    ("name", "way"),
    [
        (AUTH_TOKEN, "--env ANTHROPIC_AUTH_TOKEN, or --auth broker"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "--env CLAUDE_CODE_OAUTH_TOKEN, or --auth broker"),
        ("CLAUDE_CODE_USE_BEDROCK", "--env CLAUDE_CODE_USE_BEDROCK"),
        ("CLAUDE_CODE_USE_VERTEX", "--env CLAUDE_CODE_USE_VERTEX"),
        ("ANTHROPIC_CUSTOM_HEADERS", "--env ANTHROPIC_CUSTOM_HEADERS"),
    ],
)
def test_what_stays_outside_is_named_with_the_way_to_pass_it(desk: Desk, name: str, way: str) -> None:
    plan = desk.plan(**{name: "1"})
    assert entering(plan, name) == {}
    assert way in about(plan, name)[0]
    assert about(desk.plan("--drop-env", name), name) == []


# Proxies.


@pytest.mark.req("SAND-03")
@pytest.mark.parametrize(
    "value", [PROXY, "proxy.example:3128", "socks5h://proxy.example:1080", "http://[2001:db8::1]:80/"]
)
def test_proxy_without_a_password_enters(desk: Desk, value: str) -> None:
    environ = {"https_proxy": value, "HTTP_PROXY": value, "no_proxy": ".example.org"}
    assert entering(desk.plan(**environ), *environ) == environ


@pytest.mark.req("SAND-03")
@pytest.mark.parametrize(
    "value",
    [
        "http://me:hunter2@proxy.example:3128",
        "http:me:hunter2@proxy.example:3128",
        "me:hunter2@proxy.example:3128",
        "http://me:hunter2%40proxy.example",
        "socks5h://me:hunter2@proxy.example",
        "http://proxy.example:3128/hunter2?x",
        "http://proxy.example hunter2",
        "http://proxy.example\nhunter2",
        "javascript:hunter2",
        "http://" + "hunter2" * 1000,
    ],
)
def test_proxy_that_may_hold_a_password_is_named_and_not_shown(desk: Desk, value: str) -> None:
    plan = desk.plan(https_proxy=value, NO_PROXY="x")
    assert entering(plan, "https_proxy", "NO_PROXY") == {}
    assert "--env https_proxy passes it" in about(plan, "https_proxy")[0]
    assert ("may hold a password" in about(plan, "https_proxy")[0]) is ("@" in value or "%" in value)
    assert not any("hunter2" in finding.text for finding in plan.findings)


@pytest.mark.req("SAND-03")
@pytest.mark.parametrize(
    ("value", "words", "says"),
    [
        (PROXY, ("--network", "none"), "no proxy can be reached"),
        (PROXY, ("--network", "allowlist", "--allow", "example.org"), "more than --allow lists"),
        ("http://10.0.0.1:3128", ("--network", "inet"), "--network full reaches it"),
        ("http://127.0.0.1:3128", ("--network", "inet"), "--host-port 3128 reaches it"),
        ("http://[::1]:3128", ("--network", "inet"), "cannot be reached"),
        ("http://proxy:3128", ("--network", "inet"), "--network full reaches it"),
    ],
)
def test_proxy_that_the_box_cannot_use_stays_outside(desk: Desk, value: str, words: tuple[str, ...], says: str) -> None:
    plan = desk.plan(*words, HTTPS_PROXY=value)
    assert entering(plan, "HTTPS_PROXY") == {}
    assert says in about(plan, "HTTPS_PROXY")[0]


def test_proxy_that_the_box_reaches_by_a_port_enters(desk: Desk) -> None:
    plan = desk.plan("--network", "inet", "--host-port", "3128", HTTPS_PROXY="http://127.0.0.1:3128")
    assert entering(plan, "HTTPS_PROXY") == {"HTTPS_PROXY": "http://127.0.0.1:3128"}


@pytest.mark.parametrize("words", [(), ("--auth", "broker")], ids=["gateway", "broker"])
def test_way_to_localhost_does_not_lead_through_the_proxy(desk: Desk, words: tuple[str, ...]) -> None:
    """Claude sends requests without TLS through HTTPS_PROXY, too, and the key with them."""
    url = {} if words else {BASE_URL: "http://127.0.0.1:4000"}
    plan = desk.plan(*words, HTTPS_PROXY=PROXY, NO_PROXY="example.org", **{API_KEY: KEY}, **url)
    assert entering(plan, "NO_PROXY") == {"NO_PROXY": "example.org,localhost,127.0.0.1,::1"}


# Certificates.

OWN_BUNDLE = f"~/certs/company.pem: {CERTIFICATE}"


@pytest.mark.req("SAND-13")
@pytest.mark.parametrize("name", ["NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_certificates_of_a_company_are_shown_read_only_and_flagged(desk: Desk, name: str) -> None:
    path = "/home/alice/certs/company.pem"
    plan = desk.plan(plant=OWN_BUNDLE, **{name: path})
    assert entering(plan, name) == {name: path}
    assert [(mount.kind, mount.source) for mount in plan.mounts if mount.path == path] == [(RO, path)]
    assert about(plan, name)[0].startswith("risk: programs in the box believe whoever")


@pytest.mark.req("SAND-13")
@pytest.mark.parametrize(
    ("plant", "path", "says"),
    [
        (f"~/shop/ca.pem: {CERTIFICATE}", "/home/alice/shop/ca.pem", "an agent can have written"),
        (f"~/shop/ca.pem: {CERTIFICATE}\n~/ca.pem -> shop/ca.pem", "/home/alice/ca.pem", "an agent can have written"),
        (f"~/.ssh/ca.pem: {CERTIFICATE}", "/home/alice/.ssh/ca.pem", "is secret"),
        (f"~/ca.pem: {CERTIFICATE}-----BEGIN PRIVATE KEY-----", "/home/alice/ca.pem", "more than certificates"),
        ("~/ca.pem: hello", "/home/alice/ca.pem", "no certificates"),
        ("", "/home/alice/gone.pem", "names no file"),
        (f"~/shop/ca.pem: {CERTIFICATE}", "ca.pem", "names no file"),
    ],
)
def test_certificates_that_cannot_be_trusted_stay_outside(desk: Desk, plant: str, path: str, says: str) -> None:
    plan = desk.plan(plant=plant, NODE_EXTRA_CA_CERTS=path)
    assert entering(plan, "NODE_EXTRA_CA_CERTS") == {}
    assert says in about(plan, "NODE_EXTRA_CA_CERTS")[0]
    assert not any(mount.path == path for mount in plan.mounts)


@pytest.mark.req("SAND-13")
def test_certificates_that_a_variable_chose_are_flagged_although_asked_for(desk: Desk) -> None:
    path = "/home/alice/shop/ca.pem"
    plan = desk.plan("--env", "NODE_EXTRA_CA_CERTS", plant=f"~/shop/ca.pem: {CERTIFICATE}", NODE_EXTRA_CA_CERTS=path)
    assert entering(plan, "NODE_EXTRA_CA_CERTS") == {"NODE_EXTRA_CA_CERTS": path}
    (risk,) = about(plan, "NODE_EXTRA_CA_CERTS")
    assert risk.startswith(f"risk: programs in the box believe whoever {path} names")
    assert risk.endswith("an agent can have written that file, and could trust anybody")
    typed = desk.plan("--env", f"NODE_EXTRA_CA_CERTS={path}")
    assert about(typed, "NODE_EXTRA_CA_CERTS") == []


@pytest.mark.req("SAND-13")
def test_bundle_that_an_agent_can_write_is_not_believed(desk: Desk) -> None:
    plan = desk.plan(plant=f"~/shop/ca.pem: {CERTIFICATE}", SSL_CERT_FILE="/home/alice/shop/ca.pem")
    assert entering(plan, "SSL_CERT_FILE") == {"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"}
    assert about(plan, "SSL_CERT_FILE") == ["note: is not followed: an agent can have written that file"]


# A variable may come from the project: direnv runs its .envrc.

CHANGES = {
    "gateway": ({BASE_URL: GATEWAY, API_KEY: KEY}, {BASE_URL: OTHER}),
    "port": ({BASE_URL: f"{OTHER}:1", API_KEY: KEY}, {BASE_URL: f"{OTHER}:2"}),
    "new-gateway": ({API_KEY: KEY}, {BASE_URL: OTHER}),
    "proxy": ({"HTTPS_PROXY": PROXY}, {"HTTPS_PROXY": "http://evil.example:3128"}),
    "around": ({"HTTPS_PROXY": PROXY, "NO_PROXY": "a"}, {"NO_PROXY": "*"}),
    "certificates": (
        {"NODE_EXTRA_CA_CERTS": "/home/alice/certs/company.pem"},
        {"NODE_EXTRA_CA_CERTS": "/home/alice/certs/other.pem"},
    ),
    "bundle": ({}, {"SSL_CERT_FILE": "/home/alice/certs/other.pem"}),
    "password": ({"HTTPS_PROXY": "http://me:a@proxy.example"}, {"HTTPS_PROXY": "http://me:a@evil.example"}),
}


@pytest.mark.req("UX-02")
@pytest.mark.parametrize("case", CHANGES)
@pytest.mark.parametrize("auth", ["passthrough", "broker"])
def test_change_of_who_gets_the_requests_is_news(desk: Desk, case: str, auth: str) -> None:
    before, after = CHANGES[case]
    words = ("--auth", auth, *(("--env", "HTTPS_PROXY") if case == "password" else ()))
    plant = f"{OWN_BUNDLE}\n~/certs/other.pem: {CERTIFICATE}"
    first = desk.plan(*words, plant=plant, **before)
    agreed = (frozenset(agreement(first)),)
    assert find_news(first, agreed).amount == 0
    assert find_news(desk.plan(*words, **after), agreed).amount > 0


@pytest.mark.parametrize("case", ["gateway", "new-gateway", "certificates", "bundle"])
def test_changed_gateway_or_trust_is_flagged(desk: Desk, case: str) -> None:
    before, after = CHANGES[case]
    plan = desk.plan(plant=f"{OWN_BUNDLE}\n~/certs/other.pem: {CERTIFICATE}", **(before | after))
    assert any(finding.kind == Finding.RISK for finding in plan.findings if finding.subject in after)
