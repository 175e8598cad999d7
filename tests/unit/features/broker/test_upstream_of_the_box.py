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
