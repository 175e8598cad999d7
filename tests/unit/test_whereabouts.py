"""Where claudebox keeps its files: what is there counts, then the variables, and nothing that an agent could lead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claudebox.problem import Problem
from claudebox.remembered import write
from claudebox.settings.gather import gather
from claudebox.settings.words import parse
from claudebox.state import Apart, State, find_state, find_states
from claudebox.trust.reach import reach_of
from claudebox.trust.secret_places import secret_places
from claudebox.whereabouts import NOTE, Note
from hosts.machine import Machine

HOME = "/home/alice"
IN_HOME = State(HOME)
DEFAULTS = Apart(f"{HOME}/.config/claudebox", f"{HOME}/.local/state/claudebox", f"{HOME}/.cache/claudebox")
ELSEWHERE = Apart("/data/c/claudebox", "/data/s/claudebox", "/data/x/claudebox")
ALL = {"XDG_CONFIG_HOME": "/data/c", "XDG_STATE_HOME": "/data/s/", "XDG_CACHE_HOME": "/data/x"}
KEPT = "~/.claudebox/instances/\n"
THERE = "/data/c/claudebox/\n/data/s/claudebox/\n/data/x/claudebox/\n"


def noted(apart: Apart, before: Apart | None = None) -> str:
    text = write(NOTE, Note(apart, before).lines()).decode().replace("\n", "\\n")
    return f"~/.local/state/claudebox/places: {text}\n"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    tmp_path.chmod(0o755)
    return Machine(tmp_path, uid=os.getuid()).plant("~/shop/\n")


# What is there, the variables, and what follows.
DECISIONS: dict[str, tuple[str, dict[str, str], State]] = {
    "nothing": ("", {}, IN_HOME),
    "nothing, and empty variables": ("", dict.fromkeys(ALL, ""), IN_HOME),
    "nothing, and one variable": (
        "",
        {"XDG_STATE_HOME": "/data/s"},
        State(HOME, Apart(DEFAULTS.configuration, ELSEWHERE.state, DEFAULTS.cache), is_noted=False),
    ),
    "nothing, and all variables": ("", ALL, State(HOME, ELSEWHERE, is_noted=False)),
    "settings in ~/.config": ("~/.config/claudebox/config.toml", {}, State(HOME, DEFAULTS, is_noted=False)),
    "~/.claudebox": (KEPT, {}, IN_HOME),
    "~/.claudebox, and variables": (KEPT, ALL, IN_HOME),
    "~/.claudebox, and hostile variables": (KEPT, dict.fromkeys(ALL, f"{HOME}/shop"), IN_HOME),
    "~/.claudebox, with settings linked to ~/.config": (
        f"{KEPT}~/.config/claudebox/config.toml\n~/.claudebox/config.toml -> ../.config/claudebox/config.toml",
        {},
        IN_HOME,
    ),
    "a note": (THERE + noted(ELSEWHERE), {}, State(HOME, ELSEWHERE)),
    "a note, and other variables": (THERE + noted(ELSEWHERE), {"XDG_STATE_HOME": "/x"}, State(HOME, ELSEWHERE)),
    "a note, and hostile variables": (
        THERE + noted(ELSEWHERE),
        dict.fromkeys(ALL, f"{HOME}/shop"),
        State(HOME, ELSEWHERE),
    ),
    "a note, and no cache any more": (
        THERE.replace("/data/x/claudebox/\n", "") + noted(ELSEWHERE),
        {},
        State(HOME, ELSEWHERE),
    ),
}


@pytest.mark.req("INST-01", "SAND-08")
@pytest.mark.parametrize("name", DECISIONS)
def test_what_is_there_decides_before_the_variables(machine: Machine, name: str) -> None:
    tree, environ, state = DECISIONS[name]
    machine.plant(tree).environ |= environ
    assert find_state(machine.host()) == state


# What is there, the variables, and a part of the message.
REFUSALS: dict[str, tuple[str, dict[str, str], str]] = {
    "relative": ("", {"XDG_CONFIG_HOME": "config"}, "not an absolute path"),
    "up and down": ("", {"XDG_CONFIG_HOME": "/data/../home/alice/shop"}, "`..`"),
    "two slashes": ("", {"XDG_CONFIG_HOME": "//data"}, "`//`"),
    "invisible": ("", {"XDG_CONFIG_HOME": "/data/\u200b"}, "do not show"),
    "in the project": ("", {"XDG_STATE_HOME": f"{HOME}/shop/.state"}, "inside of /home/alice/shop"),
    "the project": ("", {"XDG_CACHE_HOME": f"{HOME}/shop"}, "inside of /home/alice/shop"),
    "through the project": (
        "~/shop/link -> /data\n/data/",
        {"XDG_CACHE_HOME": f"{HOME}/shop/link"},
        "a symlink that an agent can have made",
    ),
    "into the project": ("/data -> home/alice/shop", {"XDG_CACHE_HOME": "/data"}, "inside of /home/alice/shop"),
    "in a loop": ("/data -> data", {"XDG_CACHE_HOME": "/data"}, "lead nowhere"),
    "in the system": ("", {"XDG_STATE_HOME": "/run/user/1000"}, "belongs to the system"),
    "in ~/.claudebox": ("", {"XDG_STATE_HOME": f"{HOME}/.claudebox"}, "is in /home/alice/.claudebox"),
    "a file": ("/data: x", {"XDG_STATE_HOME": "/data"}, "/data is not a directory"),
    "one in another": (
        "",
        {"XDG_CONFIG_HOME": "/data", "XDG_CACHE_HOME": "/data/claudebox"},
        "lie inside each other",
    ),
    "two states": (KEPT + THERE + noted(ELSEWHERE), {}, "two states"),
    "a move that was ended": (KEPT + THERE + noted(ELSEWHERE, DEFAULTS), {}, "was moving its files"),
    "a note without its end": ("~/.local/state/claudebox/places: x", {}, "is damaged"),
    "a note that is none": ("~/.local/state/claudebox/places/", {}, "is damaged"),
    "a note without lines": (
        f"~/.local/state/claudebox/places: {write(NOTE, ['state /x']).decode()}".replace("\n", "\\n"),
        {},
        "lines are missing",
    ),
    "a disk that is missing": (noted(ELSEWHERE), {}, "/data/c/claudebox, which is not there"),
    "a link in the place of the state": (
        f"/data/c/claudebox/\n/data/s/claudebox -> ../c\n{noted(ELSEWHERE)}",
        {},
        "/data/s/claudebox, which is not a directory of yours",
    ),
    "settings that would not be read": (f"{KEPT}~/.config/claudebox/config.toml", {}, "would not be read"),
    "settings where the variable says": (
        f"{KEPT}/data/c/claudebox/config.toml",
        {"XDG_CONFIG_HOME": "/data/c"},
        "would not be read",
    ),
    "settings that an agent wrote, where the variable says": (
        f"{KEPT}~/shop/x/claudebox/config.toml",
        {"XDG_CONFIG_HOME": f"{HOME}/shop/x"},
        "an agent can have written it",
    ),
    "settings in what another box could write": (
        f"~/.claudebox/instances/x/writable-y: {HOME}/.config\\n\n~/.config/claudebox/config.toml",
        {},
        "an agent can have written it",
    ),
    "a note that leads up and down": (noted(ELSEWHERE.replace(cache="/data/x/../y")), {}, "is damaged"),
    "a link to a name that does not show": (
        "/data -> da\u200bta\n/da\u200bta/",
        {"XDG_STATE_HOME": "/data"},
        "do not show",
    ),
    "somebody else's": ("/data/claudebox/README.md", {"XDG_CACHE_HOME": "/data"}, "README.md is in it"),
    "settings beside a note": (f"{THERE}{noted(ELSEWHERE)}~/.config/claudebox/config.toml", {}, "would not be read"),
}


@pytest.mark.req("INST-01", "SAND-08", "FAIL-01")
@pytest.mark.parametrize("name", REFUSALS)
def test_nothing_starts_where_the_place_is_in_doubt(machine: Machine, name: str) -> None:
    tree, environ, part = REFUSALS[name]
    machine.plant(tree).environ |= environ
    with pytest.raises(Problem) as refused:
        find_state(machine.host())
    assert part in refused.value.message


@pytest.mark.parametrize(
    ("path", "mode", "owner", "part"),
    [
        ("/data", 0o1777, None, "others can write /data"),
        ("/data/s", 0o777, None, "others can write /data/s"),
        ("/data/s/claudebox", 0o757, None, "others can write /data/s/claudebox"),
        ("/data", 0o755, 4711, "/data belongs to another user (uid 4711)"),
        ("/data/s/claudebox", 0o755, 4711, "belongs to another user"),
    ],
)
def test_place_where_others_can_put_something_is_refused(
    machine: Machine, path: str, mode: int, owner: int | None, part: str
) -> None:
    machine.plant("/data/s/claudebox/").environ["XDG_STATE_HOME"] = "/data/s"
    machine.give(f"{path}/", os.getuid() if owner is None else owner, mode)
    machine.owners[path] = os.getuid() if owner is None else owner
    with pytest.raises(Problem) as refused:
        find_state(machine.host())
    assert part in refused.value.message


@pytest.mark.parametrize("path", ["/data", "/data/s", "/data/s/claudebox"])
def test_place_where_a_group_of_others_can_put_something_is_refused(machine: Machine, path: str) -> None:
    machine.plant("/data/s/claudebox/").environ["XDG_STATE_HOME"] = "/data/s"
    machine.give("/data/s/claudebox/", machine.uid, 0o755)
    machine.owners["/data/s/claudebox"] = machine.uid
    (machine.root / path.lstrip("/")).chmod(0o775)
    machine.groups[path] = 4711
    with pytest.raises(Problem) as refused:
        find_state(machine.host())
    assert f"others can write {path}" in refused.value.message
    machine.groups[path] = machine.uid
    find_state(machine.host())


def test_place_that_a_box_of_another_project_could_write_is_refused(machine: Machine) -> None:
    """Also if that box has ended, and one of another project is started now."""
    machine.plant(f"{THERE}{noted(ELSEWHERE)}/data/s/claudebox/instances/x/writable-y: /srv/shared\\n\n/srv/shared/")
    machine.environ["XDG_CONFIG_HOME"] = "/srv/shared/settings"
    from claudebox.whereabouts import choose

    with pytest.raises(Problem) as refused:
        choose(machine.host(), find_states(machine.host()))
    assert "boxes could write there" in refused.value.message


@pytest.mark.parametrize(
    ("tree", "environ"),
    [
        (f"{KEPT}~/shop/x/claudebox/config.toml", {"XDG_CONFIG_HOME": f"{HOME}/shop/x"}),
        (f"{KEPT}~/.claudebox/config.toml\n~/.config/claudebox/config.toml", {}),
    ],
)
def test_hint_puts_no_settings_of_an_agent_and_none_over_the_users_own(
    machine: Machine, tree: str, environ: dict[str, str]
) -> None:
    """Whoever is told what to type may type it."""
    machine.plant(tree).environ |= environ
    with pytest.raises(Problem) as refused:
        find_state(machine.host())
    assert "config.toml.old" in refused.value.hint
    assert f"{HOME}/.claudebox" not in refused.value.hint


def test_place_that_a_box_could_write_is_refused_also_if_home_is_another_now(machine: Machine) -> None:
    """What was noted with the home of the account still counts."""
    machine.plant(f"{THERE}{noted(ELSEWHERE)}/data/s/claudebox/instances/x/writable-y: /srv/shared\\n\n/srv/shared/")
    machine.plant(f"/etc/passwd: alice:x:{os.getuid()}:1000::{HOME}:/bin/sh\\n\n/home/other/")
    machine.environ |= {"HOME": "/home/other", "XDG_CONFIG_HOME": "/srv/shared/settings"}
    host = machine.host()
    assert host.person.homes == ("/home/other", HOME)
    with pytest.raises(Problem) as refused:
        find_state(host)
    assert "boxes could write there" in refused.value.message


@pytest.mark.req("SEC-01")
def test_what_is_apart_is_as_secret_and_as_doubtful_as_ever(machine: Machine) -> None:
    host = machine.plant(THERE + noted(ELSEWHERE)).host()
    secret = [place.path for place in secret_places(host.tree, (HOME,), find_states(host))]
    mine = (ELSEWHERE.configuration, ELSEWHERE.state, ELSEWHERE.cache, f"{HOME}/.local/state/claudebox")
    assert set(mine) <= set(secret)
    reach = reach_of(host)
    assert not reach.holds("/data/c/claudebox/config.toml")
    assert not reach.holds("/data/c/claudebox/profiles/aws.toml")
    assert not reach.holds("/data/s/claudebox/.credentials.json")
    assert reach.holds("/data/s/claudebox/instances/x/claude/y")
    assert reach.holds("/data/x/claudebox/instances/x/cache/y")


@pytest.mark.parametrize("project", ["/data", "/data/c", "/data/s/claudebox", "/data/x/claudebox/instances/x/cache"])
def test_no_project_is_or_holds_such_a_place(tmp_path: Path, project: str) -> None:
    machine = Machine(tmp_path, uid=os.getuid()).plant(THERE + noted(ELSEWHERE)).plant(f"{project}/")
    machine.cwd = project
    with pytest.raises(Problem) as refused:
        machine.facts("--run", "true")
    assert "cannot be a project" in refused.value.message


@pytest.mark.parametrize("kind", ["--mount-ro", "--mount-rw"])
@pytest.mark.parametrize("path", ["/data/c/claudebox", "/data/s/claudebox/instances", "~/.local/state/claudebox"])
def test_no_mount_shows_such_a_place(machine: Machine, kind: str, path: str) -> None:
    machine.plant(THERE + noted(ELSEWHERE)).plant("/data/s/claudebox/instances/\n/usr/bin/bwrap*\n/usr/bin/env*")
    with pytest.raises(Problem) as refused:
        machine.plan(kind, path, "--run", "true")
    assert "is secret (state of all boxes)" in refused.value.message


def test_every_name_moves_to_where_it_is_looked_for() -> None:
    """The names that `--places` sorts are those of the module with the paths."""
    from claudebox.moving import CACHE, CACHES, CONFIGURATION

    apart = State("/h", ELSEWHERE)
    paths = [getattr(apart, name) for name, value in vars(State).items() if isinstance(value, property)]
    for place, names in ((ELSEWHERE.configuration, CONFIGURATION), (ELSEWHERE.cache, CACHE)):
        assert {path for path in paths if path.startswith(f"{place}/")} == {f"{place}/{name}" for name in names}
    instance = apart.instance("/p")
    inside = [getattr(instance, name) for name, value in vars(type(instance)).items() if isinstance(value, property)]
    assert {path for path in inside if path.startswith(f"{ELSEWHERE.cache}/")} == {
        f"{instance.caches}/{name}" for name in CACHES
    }


def test_words_after_the_option_say_where_to() -> None:
    assert parse(["--places", "xdg"]).said == (("places", "xdg"),)
    with pytest.raises(Problem):
        parse(["--places", "elsewhere"])


@pytest.mark.parametrize(
    ("tree", "directory"),
    [
        ("~/.claudebox/", f"{HOME}/.claudebox"),
        ("~/.claudebox -> /data/boxes\n/data/boxes/", "/data/boxes"),
        (f"{THERE}{noted(ELSEWHERE)}", ELSEWHERE.configuration),
        (f"{THERE}{noted(ELSEWHERE)}", ELSEWHERE.state),
    ],
)
def test_nothing_starts_if_others_can_write_settings(machine: Machine, tree: str, directory: str) -> None:
    """Not even a box that needs no state of its own: it obeys the settings, too."""
    machine.plant(tree)
    gather(machine.host(), parse(["--run", "true"]))
    (machine.root / directory.lstrip("/")).chmod(0o757)
    with pytest.raises(Problem, match="others can write"):
        gather(machine.host(), parse(["--run", "true"]))
