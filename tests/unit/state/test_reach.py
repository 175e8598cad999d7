"""Where agents can write: every way to ask, about every kind of place."""

from pathlib import Path

import pytest

from claudebox.host.tree import Tree
from claudebox.state import State
from claudebox.state.reach import Reach
from hosts.machine import plant

HOME = "/home/alice"
STATE = f"{HOME}/.claudebox"
INSTANCE = f"{STATE}/instances/0123456789abcdef"

# This project is `shop`, that of another box `work`, which could write `shared` and the file `log`, too.
TREE = f"""\
~/shop/bin/tool*
~/shop/link -> /usr/bin/tool
~/work/bin/tool*
~/work/data -> ~/private
~/shared/tool*
~/log
~/private/tool*
~/bin/tool -> ../work/bin/tool
~/bin/shared -> /home/alice/shared
~/bin/plain -> /usr/bin/tool
~/bin/twice -> turned
~/bin/turned -> ../work/data/tool
~/bin/loop -> loop
~/workshop/tool*
~/dotfiles/config.toml
/usr/bin/tool*
/usr/local/src/other/tool*
/nix/store/x/bin/tool*
/data/alice/
{STATE}/config.toml
{STATE}/profiles/aws.toml
{STATE}/profiles/mine.toml -> ~/dotfiles/config.toml
{STATE}/profiles/theirs.toml -> ~/work/aws.toml
~/work/aws.toml
{STATE}/.credentials.json
{STATE}/auth/.credentials.json
{STATE}/cache/x
{STATE}/config.toml.old
{INSTANCE}/project: {HOME}/work\\n
{INSTANCE}/writable-1: {HOME}/shared\\n
{INSTANCE}/writable-2: {HOME}/log\\n
{INSTANCE}/writable-3: /usr/local/src/other\\n
{INSTANCE}/agreed: {HOME}/private\\n
{INSTANCE}/claude/x
"""

NEVER = (False, False, False)
PLAIN = (True, True, False)  # it is where an agent can write, and nothing leads there
PATHS = {
    # path: (holds, leads_through, can_turn)
    "/": NEVER,
    "/usr/bin/tool": NEVER,
    "/nix/store/x/bin/tool": NEVER,
    "/usr/local/src/other/tool": PLAIN,
    "/usr/local/src": NEVER,
    HOME: NEVER,
    f"{HOME}/private/tool": NEVER,
    f"{HOME}/workshop/tool": NEVER,
    f"{HOME}/missing": NEVER,
    f"{HOME}/shop": PLAIN,
    f"{HOME}/shop/bin/tool": PLAIN,
    f"{HOME}/shop/missing": PLAIN,
    f"{HOME}/shop/link": (True, True, True),
    f"{HOME}/work/bin/tool": PLAIN,
    f"{HOME}/shared/tool": PLAIN,
    f"{HOME}/log": PLAIN,
    f"{HOME}/work/data/tool": (True, True, True),
    f"{HOME}/work/data/missing": (True, True, True),
    f"{HOME}/bin/tool": (False, True, False),
    f"{HOME}/bin/shared/tool": (False, True, False),
    f"{HOME}/bin/plain": NEVER,
    f"{HOME}/bin/turned": (False, True, True),
    f"{HOME}/bin/twice": (False, True, True),
    f"{HOME}/bin/loop": NEVER,
    f"{HOME}/private/../work/bin/tool": (False, True, False),
    # claudebox's own state, and what of it is the user's
    STATE: PLAIN,
    f"{STATE}/config.toml": NEVER,
    f"{STATE}/profiles": NEVER,
    f"{STATE}/profiles/aws.toml": NEVER,
    f"{STATE}/profiles/mine.toml": NEVER,
    f"{STATE}/profiles/theirs.toml": (False, True, False),
    f"{STATE}/.credentials.json": NEVER,
    f"{STATE}/config.toml.old": PLAIN,
    f"{STATE}/cache/x": PLAIN,
    f"{STATE}/auth/.credentials.json": PLAIN,
    f"{INSTANCE}/claude/x": PLAIN,
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return plant(tmp_path, TREE)


@pytest.fixture
def reach(tree: Tree) -> Reach:
    return Reach(tree, f"{HOME}/shop", (State(HOME),))


@pytest.mark.req("SEC-01")
@pytest.mark.parametrize("path", PATHS)
def test_every_question_about_every_place(reach: Reach, path: str) -> None:
    assert (reach.holds(path), reach.leads_through(path), reach.can_turn(path)) == PATHS[path]


@pytest.mark.parametrize("path", PATHS)
def test_answers_agree_with_each_other(reach: Reach, path: str) -> None:
    if reach.holds(path) or reach.can_turn(path):
        assert reach.leads_through(path)
    if reach.holds(path):
        assert reach.enters(path)


@pytest.mark.parametrize(
    ("directory", "is_entered"),
    [(HOME, True), ("/usr/local/src", True), (f"{HOME}/bin", False), (f"{HOME}/dotfiles", False), ("/usr/bin", False)],
)
def test_directory_is_entered_if_something_in_it_is_the_agents(reach: Reach, directory: str, is_entered: bool) -> None:
    assert reach.enters(directory) == is_entered


@pytest.mark.parametrize("project", ["/", "/home", HOME, STATE])
def test_what_holds_the_state_is_no_project(tree: Tree, project: str) -> None:
    """No box starts there. The user's own files are still read, so that a message can say so."""
    reach = Reach(tree, project, (State(HOME),))
    assert not reach.holds(f"{HOME}/private/tool")
    assert not reach.holds(f"{STATE}/config.toml")
    assert reach.holds(f"{HOME}/work/bin/tool")


def test_home_behind_a_symlink(tmp_path: Path) -> None:
    text = TREE.replace("~", "/data/alice").replace("/home/alice/.claudebox", "/data/alice/.claudebox")
    reach = Reach(plant(tmp_path, f"/home -> data\n{text}"), "/data/alice/shop", (State("/home/alice"),))
    for home in ("/home/alice", "/data/alice"):
        assert reach.holds(f"{home}/.claudebox/cache/x")
        assert not reach.holds(f"{home}/.claudebox/config.toml")
    assert reach.leads_through("/home/alice/.claudebox/auth/.credentials.json")


def test_every_home_of_the_user_counts(tree: Tree) -> None:
    """Who sets HOME for one start has the state of all others elsewhere."""
    reach = Reach(tree, "/srv/shop", (State("/srv/home"), State(HOME)))
    assert reach.holds(f"{HOME}/work/bin/tool")
    assert reach.holds(f"{INSTANCE}/claude/x")


@pytest.mark.parametrize(("home", "is_agents"), [(f"{HOME}/shared", True), (f"{HOME}/shared/x", True), ("/srv", False)])
def test_settings_in_a_home_where_a_box_could_write_are_not_the_users(tree: Tree, home: str, is_agents: bool) -> None:
    """A file of the project may have set HOME."""
    reach = Reach(tree, "/srv/shop", (State(home), State(HOME)))
    assert reach.holds(f"{home}/.claudebox/config.toml") == is_agents


def test_records_are_read_only_when_they_matter(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    entries = tree.entries

    def noted(path: str) -> list[str]:
        listed.append(path)
        return entries(path)

    monkeypatch.setattr(tree, "entries", noted)
    reach = Reach(tree, f"{HOME}/shop", (State(HOME),))
    for path in ("/usr/bin/tool", "/nix/store/x/bin/tool", f"{STATE}/config.toml", f"{STATE}/profiles/aws.toml"):
        assert not reach.leads_through(path)
    assert listed == []
    for path in PATHS:
        reach.leads_through(path)
    assert listed.count(f"{STATE}/instances") == 1
