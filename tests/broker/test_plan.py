"""What the plan says with a broker, and the port that leads to it."""

from pathlib import Path

import pytest

from broker.standin import Server, hello
from claudebox.model import Broker
from conftest import Box
from hosts.machine import TREES, Machine


@pytest.mark.req("AUTH-03")
@pytest.mark.box
def test_way_to_the_broker_is_an_address_and_no_name(box: Box) -> None:
    """A name may mean ::1 as well: with the host's network, another box can listen there, at the same port."""
    claude = box.account.write(box.account.home / "opt" / "claude", "#!/bin/sh\n", mode=0o755)
    with Server(hello) as api:
        environ = {"ANTHROPIC_API_KEY": "the-real-key-0123456789", "ANTHROPIC_BASE_URL": api.url}
        environ["CLAUDEBOX_CLAUDE"] = str(claude)
        words = ("--yes", "--auth", "broker", "--network", "none")
        done = box.claudebox(*words, "--run", "sh", "-c", "echo $ANTHROPIC_BASE_URL", env=environ)
    assert done.stdout.startswith("http://127.0.0.1:"), done.stderr


def test_no_network_is_nothing_to_worry_about_with_a_broker(machine: Machine) -> None:
    machine.environ["ANTHROPIC_API_KEY"] = "x"
    subjects = {"--network none", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"}
    with_broker, without = (machine.plan("--network", "none", *words) for words in (("--auth", "broker"), ()))
    assert not subjects & {finding.subject for finding in with_broker.findings}
    assert "--network none" in {finding.subject for finding in without.findings}


@pytest.mark.parametrize(
    ("words", "address"),
    [
        (("--network", "full"), "http://localhost"),  # until the box starts
        (("--network", "none"), "http://127.0.0.1:61357"),
        (("--network", "inet", "--publish", "61357", "--host-port", "61358"), "http://127.0.0.1:61359"),
    ],
)
def test_port_that_leads_to_the_broker_is_no_other_one(machine: Machine, words: tuple[str, ...], address: str) -> None:
    machine.plant("/usr/bin/pasta*\n/usr/sbin/nft*")
    machine.environ["ANTHROPIC_API_KEY"] = "x"
    plan = machine.plan("--auth", "broker", *words)
    variables = {variable.name: variable.value for variable in plan.environment}
    assert (variables["ANTHROPIC_BASE_URL"], "ANTHROPIC_UNIX_SOCKET" in variables) == (address, False)


@pytest.mark.req("AUTH-03")
def test_key_stays_outside_although_there_is_no_claude(tmp_path: Path) -> None:
    """What somebody says about the credential holds for every program of the box."""
    machine = Machine(tmp_path).plant((TREES / "debian12.txt").read_text())
    machine.environ["ANTHROPIC_API_KEY"] = "sk-ant-canary"
    plan = machine.plan("--auth", "broker", "--run", "env")
    assert "sk-ant-canary" not in {variable.value for variable in plan.environment}
    assert plan.get(Broker) is not None
