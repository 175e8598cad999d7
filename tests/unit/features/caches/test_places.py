"""Where package managers keep what they download: one mount, links to it, and nothing of the files beside it."""

from pathlib import Path

import pytest

from claudebox.features.caches import PLACE, PLACES, name_of
from claudebox.host.secrets import SECRET_PLACES
from claudebox.model import RW, SYMLINK, Finding, Plan
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
    for path, _ in PLACES:
        assert not [place for place in secret if is_inside(place, path) or is_inside(path, place)], path


def test_worktrees_share_the_cache_and_projects_do_not(machine: Machine) -> None:
    first = [mount.source for mount in machine.plan().mounts if mount.path == PLACE]
    machine.plant("~/other/file")
    machine.cwd = "/home/alice/other"
    assert [mount.source for mount in machine.plan().mounts if mount.path == PLACE] != first


def test_none_keeps_nothing(machine: Machine) -> None:
    plan = machine.plan("--cache", "none")
    assert (links(plan), mounted(plan)) == ({}, [])


def test_box_without_claude_leaves_no_state_behind_unless_asked(tmp_path: Path) -> None:
    bare = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant("/usr/bin/bwrap*\n~/shop/file")
    bare.environ["PATH"] = "/usr/bin"
    assert (mounted(bare.plan("--run", "true")), bare.plan("--run", "true").preparations) == ([], ())
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


def test_project_may_do_without_a_cache(machine: Machine) -> None:
    machine.plant('~/shop/.claudebox.toml: cache = "none"')
    assert mounted(machine.plan()) == []
