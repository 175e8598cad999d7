"""The real Claude Code works on tiers `inet` and `names`: it finds its API by name, and nothing on the LAN."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from claude.api import StandIn
from claude.session import ANSWER, DUMMY_KEY, QUIET
from conftest import Box
from network.allowlist.world import make_certificate
from network.internet import Internet

# Asks a machine for its name, as programs do that know nothing of boxes.
VISIT = "bash -c 'exec 3<>/dev/tcp/{}/8080 && echo hello >&3 && cat <&3' 2>/dev/null || echo unreachable"
COMMANDS = (VISIT.format("internet.example"), VISIT.format("nas.lan"), VISIT.format("127.0.0.1"))


@contextmanager
def api_on_the_internet(internet: Internet, *commands: str, **how: Any) -> Iterator[StandIn]:
    """The stand-in for the API, which has Claude run these commands, on another machine than usual."""
    with ExitStack() as stack:
        with internet.internet.entered():
            api = stack.enter_context(StandIn(*commands, **{"address": ("198.51.100.10", 0), **how}))
        yield api


def talk(box: Box, claude: str, api: StandIn, *options: str) -> CompletedProcess[str]:
    address = ("--env", f"ANTHROPIC_BASE_URL=http://internet.example:{api.port}")
    patience = ("--env", "CLAUDE_CODE_MAX_RETRIES=1")
    words = ("--yes", *QUIET, *address, *patience, *options, "-p", "do it")
    return box.claudebox(*words, env=DUMMY_KEY | {"CLAUDEBOX_CLAUDE": claude})


@pytest.mark.req("NET-01", "SAND-01")
def test_claude_works_with_the_internet_alone(box: Box, claude: str, pasta: str, internet: Internet) -> None:
    with api_on_the_internet(internet, *COMMANDS) as api:
        done = talk(box, claude, api, "--network", "inet")
        results = api.results
    assert (done.returncode, done.stdout) == (0, ANSWER + "\n"), done.stderr
    assert results == ["internet", "unreachable", "unreachable"]


@pytest.mark.req("NAME-01", "SAND-01")
@pytest.mark.openssl
def test_claude_works_with_its_group_alone(box: Box, claude: str, internet: Internet, tmp_path: Path) -> None:
    """Without a broker and without another name: its own hosts are enough for it, and nothing else is reached."""
    certificate = make_certificate(tmp_path, "DNS:api.anthropic.com")
    # Under the name and at the port of the real one.
    own = {"certificate": certificate, "address": ("198.51.100.11", 443)}
    with api_on_the_internet(internet, *COMMANDS, **own) as api:
        _, begin, shown = certificate.read_text().partition("-----BEGIN CERTIFICATE-----")
        authority = box.account.write(box.project / "authority.pem", begin + shown)
        trust = ("--env", f"NODE_EXTRA_CA_CERTS={authority}", "--env", "CLAUDE_CODE_MAX_RETRIES=1")
        words = ("--yes", *QUIET, *trust, "--network", "allowlist", "--allow", "@claude", "-p", "do it")
        done = box.claudebox(*words, env=DUMMY_KEY | {"CLAUDEBOX_CLAUDE": claude})
        results = api.results
    assert (done.returncode, done.stdout) == (0, ANSWER + "\n"), done.stderr
    assert results == ["unreachable", "unreachable", "unreachable"]
    assert "internet.example" in done.stderr.replace("\n", " ").rpartition("refused by --network allowlist: ")[2]


@pytest.mark.req("NET-03")
def test_claude_does_not_find_its_api_without_a_network(box: Box, claude: str, internet: Internet) -> None:
    with api_on_the_internet(internet) as api:
        done = talk(box, claude, api, "--network", "none")
    assert done.returncode not in (0, 125), done.stderr
    assert api.requests == []
