"""By which ways of its own the host runs what lies in the project: found in files alone."""

from pathlib import Path

import pytest

from claudebox.consent import News, agreement, find_news
from claudebox.host.tree import Tree
from claudebox.host.walk import find_links
from claudebox.model import Plan
from claudebox.overlay import ways
from claudebox.overlay.ways import find_ways
from claudebox.text import Style
from hosts.machine import EVERYONE, TREES, Machine
from shown import audit

pytestmark = pytest.mark.req("REACH-01", "UX-02", "INST-02")

P = "/home/alice/shop"


def found(tmp_path: Path, description: str, **environ: str) -> list[tuple[str, str]]:
    machine = Machine(tmp_path, environ=environ).plant(f"~/shop/src/x\n{description}")
    return [(one.path.removeprefix(f"{P}/"), one.reason) for one in find_ways(machine.host(), (P,)).guarded]


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("~/.bashrc -> shop/bashrc", ("bashrc", "~/.bashrc leads here")),
        ("~/.vimrc -> /nix/store/x\n/nix/store/x -> /home/alice/shop/vimrc", ("vimrc", "~/.vimrc leads here")),
        ("~/.config/nvim/lua/my/a.lua -> /home/alice/shop/a", ("a", "~/.config/nvim/lua/my/a.lua leads here")),
        ("~/.config -> shop/config\n~/shop/config/x", ("config", "~/.config leads here")),
        ("~/.tool/plugin -> ../shop/plugin", ("plugin", "~/.tool/plugin leads here")),
        ("/opt/mine/x -> /home/alice/shop/x", ("x", "/opt/mine/x leads here")),
        ("/usr/local/bin/x -> /home/alice/shop/x", ("x", "/usr/local/bin/x leads here")),
    ],
)
def test_way_is_found(tmp_path: Path, description: str, expected: tuple[str, str]) -> None:
    assert expected in found(tmp_path, description, PATH="/opt/mine:/usr/local/bin:/usr/bin")


@pytest.mark.parametrize(
    "description",
    [
        "~/work -> shop",
        "~/.bashrc: . ~/shop/env\\n",  # scripts named in the text of a file are not looked for
        "~/.local/bin/x -> /usr/bin/x\n/usr/bin/x",
        "~/.bashrc -> .bashrc",
        "~/.config/a/b/c/d/e -> /home/alice/shop/x",
        "~/.cache/x -> /home/alice/shop/x",
    ],
)
def test_what_is_no_way(tmp_path: Path, description: str) -> None:
    assert found(tmp_path, description) == []


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"PATH": f"/usr/bin:{P}/bin"}, [("bin", ways.ON_PATH)]),
        ({"PATH": f"{P}/./bin/"}, [("bin", ways.ON_PATH)]),
        ({"PATH": "tools:/usr/bin"}, [("tools", ways.ON_PATH)]),
        ({"PATH": f"{P}"}, [(P, ways.ON_PATH)]),
        ({"OLDPWD": P, "PWD": f"{P}/src"}, []),
        ({"PATH": f"{P}/node_modules/.bin:{P}/.venv/bin:{P}/target/debug"}, []),
        ({"PATH": ":/usr/bin"}, []),
    ],
)
def test_variables(tmp_path: Path, environ: dict[str, str], expected: list[tuple[str, str]]) -> None:
    assert found(tmp_path, "~/shop/bin/x", **environ) == expected


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("~/.config/x -> ..", {}),
        ("~/.config/nvim -> /home/alice/shop\n~/.config/y", {}),
        ("~/.dropbox -> /home/alice/shop", {}),
        (
            "~/.config/nvim -> ../dotfiles/nvim\n~/dotfiles/nvim/lua/x",
            {"/home/alice/dotfiles/nvim/lua": "~/.config/nvim"},
        ),
        ("~/.config -> dotfiles\n~/dotfiles/nvim/lua/x", {"/home/alice/dotfiles/nvim/lua": "~/.config"}),
    ],
)
def test_project_that_lies_in_what_is_obeyed_is_known(
    tmp_path: Path, description: str, expected: dict[str, str]
) -> None:
    machine = Machine(tmp_path).plant(f"~/shop/x\n{description}")
    roots = (P, "/home/alice/dotfiles/nvim/lua")
    assert dict(find_ways(machine.host(), roots).above) == expected


def test_project_in_the_configuration_of_a_program_is_a_risk(tmp_path: Path) -> None:
    machine = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    machine.plant("~/.config/nvim/init.lua").cwd = "/home/alice/.config/nvim"
    said = [finding.text for finding in machine.plan("--run", "true").flagged]
    assert "lies in ~/.config: programs of this host obey what is there, and the agent can change it" in said


def test_audit_names_the_ways_and_how_to_open_them(tmp_path: Path) -> None:
    machine = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    machine.plant("\n".join(f"~/.rc{number} -> shop/rc{number}\n~/shop/rc{number}" for number in range(3)))
    shown = audit(machine.plan("--run", "true"), Style(False)).partition("Guarded")[2].partition("Network")[0]
    assert all(f" rc{number} (~/.rc{number} leads here)\n" in shown for number in range(3))
    assert " (if that is what the agent is to work on: --writable PATH)\n" in shown


def test_look_at_the_home_has_an_end(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}" / "link").symlink_to("x")
    room = [1000]
    assert 0 < len(list(find_links(Tree(str(tmp_path)), "", 2, room))) < 100
    assert room[0] <= 0


def test_home_that_cannot_be_read_is_no_reason_to_fail(tmp_path: Path) -> None:
    machine = Machine(tmp_path).plant("~/shop/x")
    assert find_ways(machine.host(), (P,)).guarded == ()


# What is guarded follows from the files that there are: it is nothing new to agree to, unless somebody opens it.


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())


def since(plan: Plan, *agreed: Plan) -> News:
    return find_news(plan, tuple(frozenset(agreement(one)) for one in agreed))


def test_new_guard_asks_nothing(machine: Machine) -> None:
    before = machine.plan()
    machine.plant("~/shop/.git/hooks/pre-commit*\n~/shop/lib/.envrc\n~/shop/.vscode/tasks.json")
    assert since(machine.plan(), before).amount == 0


def test_guarded_file_that_is_gone_asks_nothing(machine: Machine) -> None:
    machine.plant("~/shop/.envrc")
    before = machine.plan()
    (machine.root / "home/alice/shop/.envrc").unlink()
    assert since(machine.plan(), before).amount == 0


def test_guard_that_is_opened_is_new_and_grave(machine: Machine) -> None:
    machine.plant("~/shop/.vscode/tasks.json")
    closed, opened = machine.plan(), machine.plan("--writable", ".vscode")
    assert since(opened, closed).is_grave
    assert since(opened, opened).amount == 0
    assert since(closed, opened).amount == 0
    machine.plant("~/shop/.vscode/more.json")
    assert since(machine.plan("--writable", ".vscode"), opened).amount == 0


def test_opened_part_is_new_and_grave(machine: Machine) -> None:
    machine.plant("~/shop/.vscode/tasks.json")
    opened = machine.plan("--writable", ".vscode/tasks.json")
    assert since(opened, machine.plan()).is_grave


def test_hidden_file_that_is_only_guarded_now_is_noticed(machine: Machine) -> None:
    """The mount that guards it shows it: it must not pass for the one that hid it."""
    machine.plant("~/shop/.envrc\n~/shop/lib/.envrc")
    for path in (".envrc", "lib"):
        news = since(machine.plan(), machine.plan("--hide", path))
        assert news.lost == (("without", f"/home/alice/shop/{path}"),)


def test_read_only_directory_that_is_only_pinned_now_is_noticed(machine: Machine) -> None:
    machine.plant("~/shop/lib/.envrc")
    news = since(machine.plan(), machine.plan("--mount-ro", "/home/alice/shop/lib"))
    assert news.lost == (("read-only", "/home/alice/shop/lib"),)
