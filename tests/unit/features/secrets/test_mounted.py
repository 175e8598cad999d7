"""Credentials in what somebody mounts."""

from pathlib import Path

import pytest

from claudebox.errors import Problem
from claudebox.features.secrets import mounted
from claudebox.model import HIDE, Finding
from errors.scene import Scene
from hosts.machine import Machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Scene(tmp_path, monkeypatch).machine


@pytest.mark.req("SAND-09")
def test_source_code_and_the_project_are_left_alone(machine: Machine) -> None:
    names = "auth.py session.json keys/a.txt .docker/x .env id_rsa.pub".split()
    machine.plant("\n".join(f"~/{place}/{name}" for place in ("code/lib", "code/shop") for name in names))
    machine.cwd = "/home/alice/code/shop"
    hidden = [mount.path for mount in machine.plan("--mount-ro", "~/code").mounts if mount.kind == HIDE]
    assert [path for path in hidden if "/code/" in path] == ["/home/alice/code/lib/.env"]


@pytest.mark.req("SAND-09", "SEC-01")
def test_agent_cannot_push_a_credential_out_of_sight(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounted, "MOST", 3)
    machine.plant("\n".join(f"~/.config/app/{name}" for name in ("a/token", "b", "c", "token")))
    plan = machine.plan("--mount-rw", "~/.config/app")
    text = "3 files were searched for credentials, and not all"
    assert Finding(Finding.RISK, "/home/alice/.config/app", text) in plan.flagged


@pytest.mark.req("SAND-09")
@pytest.mark.parametrize("variable", [{"XDG_CONFIG_HOME": "/data"}, {"ANTHROPIC_CONFIG_DIR": "/data/anthropic"}])
def test_secret_place_is_where_a_variable_puts_it(machine: Machine, variable: dict[str, str]) -> None:
    machine.plant("/data/anthropic/credentials/default.json")
    machine.plan("--mount-ro", "/data/anthropic")
    machine.environ |= variable
    with pytest.raises(Problem, match="/data/anthropic is secret"):
        machine.plan("--mount-ro", "/data/anthropic")


@pytest.mark.req("SAND-09")
@pytest.mark.parametrize(
    "name", ["ANTHROPIC_IDENTITY_TOKEN_FILE", "CLAUDE_CODE_HOST_CREDS_FILE", "CLAUDE_CODE_FEDERATION_CACHE_DIR"]
)
def test_login_is_secret_wherever_a_variable_names_it(machine: Machine, name: str) -> None:
    machine.plant("/data/logins/one: x")
    machine.plan("--mount-ro", "/data/logins/one")
    machine.environ[name] = "/data/logins/one"
    with pytest.raises(Problem, match=r"/data/logins/one is secret \(a login of Claude\)"):
        machine.plan("--mount-ro", "/data/logins/one")


@pytest.mark.req("SAND-09")
@pytest.mark.parametrize(
    "place", ["~/.claude/daemon/auth", "~/.claude/hfi-auth.json", "~/.config/anthropic/credentials"]
)
def test_newer_logins_of_claude_are_in_secret_places(machine: Machine, place: str) -> None:
    machine.plant(f"{place}: x")
    with pytest.raises(Problem, match="is secret"):
        machine.plan("--mount-ro", place)


@pytest.mark.req("SAND-09")
@pytest.mark.parametrize("drawer", ["", *"/.config /.local /.local/share /.local/state /.cache /.var /snap".split()])
def test_drawer_is_refused_and_a_directory_in_it_is_not(machine: Machine, drawer: str) -> None:
    machine.plant(f"~{drawer}/.tool/settings: x\n~{drawer}/.tool/token: x")
    with pytest.raises(Problem) as caught:
        machine.plan("--mount-ro", f"~{drawer}")
    assert caught.value.hint.startswith("mount only what the agent needs: a directory in it")
    hidden = [mount.path for mount in machine.plan("--mount-ro", f"~{drawer}/.tool").mounts if mount.kind == HIDE]
    assert f"/home/alice{drawer}/.tool/token" in hidden
