"""Where package managers keep what they download: one mount, links to it, and nothing of the files beside it."""

from pathlib import Path

import pytest

from claudebox.features.caches import CACHES, HOSTS, PLACE, PLACES, Cache, inside, name_of
from claudebox.host.secrets import SECRET_PLACES
from claudebox.model import RW, SYMLINK, Finding, Plan, Step
from claudebox.paths import is_inside
from hosts.machine import TREES, Machine

pytestmark = pytest.mark.req("WORK-01")

STATE = "/home/alice/.claudebox/instances"


def links(plan: Plan) -> dict[str, str]:
    made = [mount for mount in plan.mounts if mount.origin.is_rule("cache") and mount.kind == SYMLINK]
    return {mount.path: mount.source for mount in made}


def mounted(plan: Plan) -> list[tuple[str, str, str]]:
    found = [mount for mount in plan.mounts if mount.origin.is_rule("cache") and mount.kind != SYMLINK]
    return [(mount.kind, mount.path, mount.source.removeprefix(STATE).partition("/")[2][17:]) for mount in found]


def test_one_mount_and_a_link_for_each_place(machine: Machine) -> None:
    plan = machine.plan()
    assert mounted(plan) == [(RW, PLACE, "cache")]
    assert links(plan) == {
        f"/home/alice{path[1:]}": f"{PLACE}/{name_of('/home/alice' + path[1:], '/home/alice')}" for path, _ in PLACES
    }
    assert links(plan)["/home/alice/.cargo/registry"] == f"{PLACE}/cargo-registry"


def test_no_two_places_have_one_name() -> None:
    names = [name_of(path[2:], "") for path, _ in PLACES]
    assert sorted(set(names)) == sorted(names)


def test_no_place_holds_or_is_a_secret_one() -> None:
    secret = [path for path, _ in SECRET_PLACES if path != "~/.cache/huggingface/token"]
    for path in (*(path for path, _ in PLACES), *HOSTS):
        assert not [place for place in secret if is_inside(place, path) or is_inside(path, place)], path
    # The agent's own may get there; the host's is not underneath.
    assert not [path for path in HOSTS if is_inside("~/.cache/huggingface/token", path)]


def test_each_cache_of_the_host_lies_below_a_link() -> None:
    names = [name_of(path[2:], "") for path, _ in PLACES]
    assert [path for path in HOSTS if not inside(path, names)] == []


def test_worktrees_share_the_cache_and_projects_do_not(machine: Machine) -> None:
    first = [mount.source for mount in machine.plan().mounts if mount.path == PLACE]
    machine.plant("~/other/file")
    machine.cwd = "/home/alice/other"
    assert [mount.source for mount in machine.plan().mounts if mount.path == PLACE] != first


def test_none_keeps_nothing(machine: Machine) -> None:
    plan = machine.plan("--cache", "none")
    assert (links(plan), mounted(plan), plan.get(Cache)) == ({}, [], None)


def test_box_without_claude_leaves_no_state_behind_unless_asked(tmp_path: Path) -> None:
    bare = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant("/usr/bin/bwrap*\n~/shop/file")
    bare.environ["PATH"] = "/usr/bin"
    assert (bare.plan("--run", "true").get(Cache), bare.plan("--run", "true").preparations) == (None, ())
    assert mounted(bare.plan("--cache", "project", "--run", "true")) == [(RW, PLACE, "cache")]


@pytest.mark.parametrize("place", [".cargo", ".cache/pip", ".npm"])
def test_what_somebody_mounts_is_there_instead_of_a_link(machine: Machine, place: str) -> None:
    """A link in a directory of the host would be made on the host, and a mount below a link made elsewhere."""
    machine.plant(f"~/{place}/file")
    made = links(machine.plan("--mount-ro", f"~/{place}"))
    assert not [
        path for path in made if is_inside(path, f"/home/alice/{place}") or is_inside(f"/home/alice/{place}", path)
    ]
    assert len(made) > len(PLACES) - 3


@pytest.mark.req("SEC-01")
@pytest.mark.parametrize("place", [".cache/pip", ".npm", ".cargo", "go"])
def test_writable_cache_of_the_host_is_flagged(machine: Machine, place: str) -> None:
    machine.plant(f"~/{place}/file")
    flagged = [finding for finding in machine.plan("--mount-rw", f"~/{place}").flagged if "run later" in finding.text]
    assert [(finding.kind, finding.subject) for finding in flagged] == [(Finding.RISK, f"/home/alice/{place}")]
    assert not machine.plan("--mount-ro", f"~/{place}").flagged


@pytest.mark.req("SEC-01")
def test_host_underneath_is_flagged_and_shows_caches_alone(machine: Machine) -> None:
    machine.plant("~/.cache/pip/http/x\n~/.cache/mozilla/x\n~/.npm/_cacache/x\n~/.npm/_logs/x\n~/.cargo/registry/x")
    plan = machine.plan("--cache", "host")
    assert (plan.get(Cache) or Cache("")).lower == (
        ("/home/alice/.cache/pip", "cache/pip"),
        ("/home/alice/.npm/_cacache", "npm/_cacache"),
        ("/home/alice/.cargo/registry", "cargo-registry"),
    )
    assert mounted(plan) == [(RW, PLACE, "cache-host")]
    assert [finding.text for finding in plan.flagged] == [
        "the box reads what this host has downloaded, private packages too"
    ]
    assert {Step(Step.BESIDE, CACHES), Step(Step.MOUNT, CACHES)} <= {*plan.steps}


@pytest.mark.req("SEC-01")
def test_cache_of_the_host_that_holds_a_secret_is_not_underneath(machine: Machine) -> None:
    machine.plant("~/.gnupg -> .cache/pip/keys\n~/.cache/pip/keys/x\n~/.npm/_cacache/x")
    plan = machine.plan("--cache", "host")
    assert (plan.get(Cache) or Cache("")).lower == (("/home/alice/.npm/_cacache", "npm/_cacache"),)


def test_host_is_not_underneath_where_an_agent_could_have_written(machine: Machine) -> None:
    machine.plant("~/shop/elsewhere/x\n~/.cache/pip -> ~/shop/elsewhere")
    plan = machine.plan("--cache", "host")
    assert (plan.get(Cache) or Cache("")).lower == ()


def test_project_gets_nothing_of_the_host_underneath_by_itself(machine: Machine) -> None:
    machine.plant('~/shop/.claudebox.toml: cache = "host"')
    assert mounted(machine.plan()) == [(RW, PLACE, "cache")]


def test_project_may_do_without_a_cache(machine: Machine) -> None:
    machine.plant('~/shop/.claudebox.toml: cache = "none"')
    assert machine.plan().get(Cache) is None
