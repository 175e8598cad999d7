"""The project's file adds nothing without a yes to this content in this project."""

import pytest

from claudebox.settings import PROJECT_FILE
from claudebox.settings.files import FORM, MOST_DECISIONS, decisions
from claudebox.settings.table import ENV, MOUNTS
from claudebox.state.memory import write
from hosts.machine import Machine
from layers.files import (
    DECISIONS,
    STATE,
    WISHES,
    answer,
    granted,
    layers,
    own_file,
    refusal,
    says,
)
from saying import gather, parse


@pytest.mark.req("EXT-01", "SEC-01")
@pytest.mark.parametrize(
    "wish",
    [
        'mounts = [{ host = "~/other" }]',
        'extra_env_passthrough = ["EDITOR_TOKEN"]',
        'env = { NODE_OPTIONS = "--require /home/alice/shop/x.js" }',
        "publish = [8080]",
        "host_ports = [5432]",
        'claude_args = ["--dangerously-skip-permissions"]',
        'path = ["node_modules/.bin"]',
        'profiles = ["aws-readonly"]',
        'packages = ["nixpkgs#hello"]',
    ],
)
def test_what_adds_is_not_granted_by_itself(machine: Machine, wish: str) -> None:
    machine.environ["EDITOR_TOKEN"] = "x"
    own_file(machine, "config.toml", 'network = "inet"')
    before = machine.plan()
    says(machine, wish)
    after, found = machine.plan(), layers(machine).project
    assert found is not None
    assert (found.is_undecided, found.tightening) == (True, ())
    assert after.environment == before.environment
    assert after.network == before.network
    assert after.program == before.program
    assert {mount.source for mount in after.mounts} == {mount.source for mount in before.mounts}
    assert any(finding.subject == PROJECT_FILE and "nobody was asked" in finding.text for finding in after.findings)


@pytest.mark.req("EXT-01", "SEC-01")
@pytest.mark.parametrize("key", ["bwrap", "claude", "pasta", "nft"])
def test_what_runs_on_the_host_is_not_even_asked_about(machine: Machine, key: str) -> None:
    machine.plant(f"~/shop/{key}*")
    says(machine, f'{key} = "./{key}"')
    assert refusal(machine).message.startswith(f"{PROJECT_FILE}:1: `{key}` decides what runs on this host")


@pytest.mark.req("EXT-01")
def test_yes_grants_and_no_does_not(machine: Machine) -> None:
    machine.environ["EDITOR_TOKEN"] = "x"
    own_file(machine, "config.toml", 'network = "inet"')
    says(machine, WISHES)
    answer(machine, granted=True)
    plan = machine.plan()
    assert plan.network.tier == "full"
    assert "EDITOR_TOKEN" in {variable.name for variable in plan.environment}
    assert "/home/alice/other" in {mount.source for mount in plan.mounts}
    answer(machine, granted=False)
    plan = machine.plan()
    assert (plan.network.tier, granted(machine)) == ("inet", False)
    assert any(finding.subject == PROJECT_FILE and "you said no" in finding.text for finding in plan.findings)


@pytest.mark.req("EXT-01")
def test_profile_is_below_the_project_that_builds_on_it(machine: Machine) -> None:
    path = machine.root / STATE / "profiles/base.toml"
    path.parent.mkdir(parents=True)
    path.write_text('network = "inet"\nenv = { A = "profile", B = "profile" }')
    says(machine, 'profiles = ["base"]\nnetwork = "none"\nenv = { A = "project" }')
    answer(machine, granted=True)
    plan = machine.plan()
    found = {variable.name: variable.value for variable in plan.environment}
    assert (found["A"], found["B"], plan.network.tier) == ("project", "profile", "none")


@pytest.mark.req("EXT-01", "SEC-01")
@pytest.mark.parametrize("change", ["\n", "# comment\n", 'hide = ["x"]\n'])
def test_yes_is_for_this_content(machine: Machine, change: str) -> None:
    says(machine, WISHES)
    answer(machine, granted=True)
    says(machine, WISHES + change)
    assert granted(machine) is None
    says(machine, WISHES)
    assert granted(machine) is True


@pytest.mark.req("EXT-01", "SEC-01")
def test_yes_is_for_this_project(machine: Machine) -> None:
    says(machine, WISHES)
    answer(machine, granted=True)
    says(machine, WISHES, "copy")
    machine.cwd = "/home/alice/copy"
    assert granted(machine) is None


@pytest.mark.req("EXT-01", "SEC-01")
@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"yes %s\nend\n",
        b'{"%s": true}\n',
        f"{FORM.header}\nyes %s\n".encode(),
        f"{FORM.header}\nyes %s\nend".encode(),
        f"{FORM.header}\nmaybe %s\nend\n".encode(),
        f"{FORM.header}\nyes\t%s\nend\n".encode(),
        f"{FORM.title} (format 2)\nyes %s\nend\n".encode(),
        write(FORM, ["yes %s", "x" * FORM.largest]),
    ],
)
def test_damaged_memory_means_that_nothing_was_said(machine: Machine, damage: bytes) -> None:
    says(machine, WISHES)
    project = layers(machine).project
    assert project is not None
    path = machine.root / STATE / DECISIONS
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(damage.replace(b"%s", project.content_id.encode()))
    assert granted(machine) is None
    answer(machine, granted=True)
    assert granted(machine) is True


@pytest.mark.req("EXT-01")
def test_memory_keeps_what_was_said_last(machine: Machine) -> None:
    says(machine, WISHES)
    path = machine.root / STATE / DECISIONS
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(write(FORM, [f"yes {number:064x}" for number in range(MOST_DECISIONS)]))
    answer(machine, granted=True)
    kept = decisions(machine.host())
    assert (len(kept), granted(machine), f"{0:064x}" in kept) == (MOST_DECISIONS, True, False)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.req("EXT-01", "SEC-01")
def test_file_swapped_after_the_question_gains_nothing(machine: Machine) -> None:
    says(machine, 'env = { A = "1" }')
    host, request = machine.host(), parse([])
    asked = gather(host, request).project
    assert asked is not None
    says(machine, 'mounts = [{ host = "~/other" }]')
    found = gather(host, request, asked.replace(granted=True)).settings
    assert ([wish.name for wish in found[ENV]], found[MOUNTS]) == (["A"], ())


@pytest.mark.req("EXT-01", "SEC-01")
def test_file_that_appears_after_a_look_is_not_mounted_and_not_read(machine: Machine) -> None:
    host, request = machine.host(), parse([])
    assert gather(host, request).project is None
    says(machine, WISHES)
    assert gather(host, request).project is None
