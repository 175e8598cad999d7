"""Who gets the credential that the broker keeps: what Claude on the host uses, or what the user asked for."""

import json
from pathlib import Path
from typing import Any

import pytest

from claudebox.errors import Problem
from claudebox.model import Broker, Finding, Plan
from hosts.machine import EVERYONE, TREES, Machine

GATEWAY = "https://gateway.example"
OTHER = "https://other.example"
KEY = {"ANTHROPIC_API_KEY": "key-of-alice"}
BASE_URL = "ANTHROPIC_BASE_URL"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\\nMIIB\\n-----END CERTIFICATE-----\\n"


def plan(root: Path, *words: str, settings: Any = None, plant: str = "", environ: dict[str, str] | None = None) -> Plan:
    login = json.dumps({"claudeAiOauth": {"accessToken": "sk-ant-oat01-login-of-alice"}})
    machine = Machine(root, environ=environ or {}).plant(f"~/.claude/.credentials.json: {login}").plant(plant)
    if settings is not None:
        machine.plant(f"~/.claude/settings.json: {json.dumps(settings)}")
    machine.plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    return machine.plan("--auth", "broker", *words)


def url(made: Plan) -> str:
    broker = made.get(Broker)
    assert broker is not None
    return broker.url


def inside(made: Plan) -> list[str]:
    return [variable.value for variable in made.environment if variable.name == BASE_URL]


ASKING: dict[str, tuple[tuple[str, ...], dict[str, str], str]] = {
    "variable": ((), {"CLAUDEBOX_EXTRA_ENV": BASE_URL, BASE_URL: GATEWAY}, "CLAUDEBOX_EXTRA_ENV"),
    "option": (("--env", BASE_URL), {BASE_URL: GATEWAY}, "--env"),
    "value": (("--env", f"{BASE_URL}={GATEWAY}"), {}, "--env"),
}


@pytest.mark.req("AUTH-03")
@pytest.mark.parametrize("case", ASKING)
@pytest.mark.parametrize("credential", [KEY, {}], ids=["key", "login"])
def test_address_that_is_asked_for_becomes_the_brokers(tmp_path: Path, case: str, credential: dict[str, str]) -> None:
    words, environ, origin = ASKING[case]
    made = plan(tmp_path, *words, environ=credential | environ)
    assert (url(made), inside(made)) == (GATEWAY, ["http://localhost"])
    said = [finding for finding in made.findings if finding.subject == BASE_URL]
    text = f"the broker sends the box's requests to gateway.example, as {origin} asks, and the credential with them"
    assert said == [Finding(Finding.NOTE if case == "value" else Finding.RISK, BASE_URL, text)]


@pytest.mark.req("AUTH-03")
def test_profile_can_name_the_address(tmp_path: Path) -> None:
    profile = f'~/.claudebox/profiles/work.toml: env = {{ {BASE_URL} = "{GATEWAY}" }}\\n'
    made = plan(tmp_path, "--profile", "work", plant=profile, environ=KEY)
    assert (url(made), inside(made)) == (GATEWAY, ["http://localhost"])
    assert [finding.kind for finding in made.findings if finding.subject == BASE_URL] == [Finding.RISK]


@pytest.mark.req("AUTH-03", "SEC-01")
def test_address_of_the_users_settings_is_where_the_key_belongs(tmp_path: Path) -> None:
    """Without it, the gateway's key went to the usual API."""
    made = plan(tmp_path, settings={"env": {BASE_URL: GATEWAY}}, environ=KEY)
    assert url(made) == GATEWAY


# Others are in tests/errors.
REFUSED: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "token-in-settings": (
        (),
        {"settings": {"env": {BASE_URL: GATEWAY, "ANTHROPIC_AUTH_TOKEN": "x"}}},
        "is in your Claude settings",
    ),
    "relative-certificates": (
        (),
        {"plant": f"~/shop/ca.pem: {CERTIFICATE}", "environ": KEY | {"NODE_EXTRA_CA_CERTS": "ca.pem"}},
        "an agent can have written",
    ),
}


@pytest.mark.req("AUTH-03", "FAIL-01")
@pytest.mark.parametrize("case", REFUSED)
def test_credential_that_would_go_to_somebody_else_starts_nothing(tmp_path: Path, case: str) -> None:
    words, how, says = REFUSED[case]
    with pytest.raises(Problem, match=says) as caught:
        plan(tmp_path, *words, **how)
    assert caught.value.status == 125
    assert caught.value.hint


# Logins of another kind

OTHER_LOGINS = (
    *("ANTHROPIC_PROFILE", "ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_IDENTITY_TOKEN_FILE"),
    *("CLAUDE_CODE_HOST_CREDS_FILE", "CLAUDE_CODE_OAUTH_REFRESH_TOKEN", "CLAUDE_CODE_GATEWAY_TOKEN"),
)


@pytest.mark.req("AUTH-03", "FAIL-01")
@pytest.mark.parametrize("name", OTHER_LOGINS)
def test_login_that_the_broker_does_not_know_is_no_reason_to_use_another(tmp_path: Path, name: str) -> None:
    """Claude on the host uses it, and not the login that is there, too. A key comes first for both."""
    with pytest.raises(Problem, match=f"{name} is set: the broker knows") as caught:
        plan(tmp_path, environ={name: "/somewhere/else"})
    assert f"env -u {name} claudebox" in caught.value.hint
    assert "/somewhere" not in caught.value.message + caught.value.hint
    broker = plan(tmp_path / "again", environ={name: "/somewhere/else"} | KEY).get(Broker)
    assert broker is not None
    assert broker.variable == "ANTHROPIC_API_KEY"


@pytest.mark.req("AUTH-03")
@pytest.mark.parametrize("name", [*OTHER_LOGINS, "CLAUDE_TRUSTED_DEVICE_TOKEN", "ANTHROPIC_CONFIG_DIR"])
def test_login_of_another_kind_stays_outside_whoever_asks_for_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(Problem, match="stays outside with --auth broker"):
        plan(tmp_path, "--env", name, environ={name: "something-0123456789"} | KEY)


@pytest.mark.req("AUTH-03")
@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, "/home/alice/.config/anthropic"),
        ({"XDG_CONFIG_HOME": "/data"}, "/data/anthropic"),
        ({"ANTHROPIC_CONFIG_DIR": "/data/own"}, "/data/own"),
    ],
)
def test_profile_beside_a_login_is_mentioned(tmp_path: Path, environ: dict[str, str], place: str) -> None:
    made = plan(tmp_path, plant=f"{place}/credentials/default.json", environ=environ)
    text = f"the broker uses /home/alice/.claude/.credentials.json, and no profile of {place}"
    assert Finding(Finding.NOTE, "--auth broker", text) in made.findings
    with_key = plan(tmp_path / "key", plant=f"{place}/credentials/default.json", environ=environ | KEY)
    assert not any("no profile" in one.text for one in with_key.findings)


@pytest.mark.req("AUTH-03", "FAIL-01")
def test_profile_alone_is_not_enough(tmp_path: Path) -> None:
    profile = "~/.claude/.credentials.json/\n~/.config/anthropic/credentials/default.json"
    machine = Machine(tmp_path).plant(profile)
    machine.plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    with pytest.raises(Problem, match="it can use none"):
        machine.plan("--auth", "broker")
