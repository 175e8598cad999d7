"""By which ways of its own the host runs what lies in the project: found in files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from claudebox.agreement import News, agreement, find_news
from claudebox.features.guard import ways
from claudebox.features.guard.ways import find_ways
from claudebox.host.tree import Tree
from claudebox.host.walk import find_links
from claudebox.model import Plan
from claudebox.view.audit import audit
from claudebox.view.text import Style
from hosts.machine import EVERYONE, TREES, Machine

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
        ("~/.bashrc: . $HOME/shop/env\\n", ("env", "~/.bashrc names it")),
        ("~/.bashrc: . ${HOME}/shop/env;ls\\n", ("env", "~/.bashrc names it")),
        ('~/.bashrc: . "$HOME/shop/env"\\n', ("env", "~/.bashrc names it")),
        ('~/.bashrc: . "$HOME"/shop/env\\n', ("env", "~/.bashrc names it")),
        ("~/.bashrc: if x; then . /home/alice/shop/env; fi\\n", ("env", "~/.bashrc names it")),
        ("~/.config/fish/config.fish: set -x D ~/shop\\nsource $D/env\\n",
         ("env", "~/.config/fish/config.fish names it")),
        ("~/.vimrc: set runtimepath+=~/shop/vim\\n\n~/shop/vim/x", ("vim", "~/.vimrc names it")),
        ("~/.bashrc: . ~/shop/now/env\\n\n~/shop/now -> v1\n~/shop/v1/env", ("v1/env", "~/.bashrc names it")),
        ("/var/spool/cron/crontabs/alice: @daily cd ~/shop && ./x.sh\\n\n~/shop/x.sh",
         ("x.sh", "/var/spool/cron/crontabs/alice names it")),
        ("~/.config/systemd/user/a.service.d/x.conf: ExecStart=%h/shop/x -y\\n",
         ("x", "~/.config/systemd/user/a.service.d/x.conf names it")),
        ("/usr/local/bin/x -> /home/alice/shop/x", ("x", "/usr/local/bin/x leads here")),
        ("/etc/systemd/system/x.service: ExecStart=/home/alice/shop/x\\n",
         ("x", "/etc/systemd/system/x.service names it")),
        ("/etc/cron.daily/x -> /home/alice/shop/x", ("x", "/etc/cron.daily/x leads here")),
        ("~/.bashrc: . ~/shop/a\\n\n~/shop/a: . ~/shop/b\\n", ("b", "~/shop/a names it")),
        ("~/.bashrc -> shop/rc\n~/shop/rc: . ~/shop/b\\n", ("b", "~/.bashrc names it")),
        ("~/.zshenv: export D=~/shop\\n\n~/.zshrc: . $D/b\\n", ("b", "~/.zshrc names it")),
        ("~/.config/systemd/user/x.service: WorkingDirectory=%h/shop/src\\nExecStart=/usr/bin/python3 x\\n",
         ("src/x", "~/.config/systemd/user/x.service names it")),
        ("~/.bashrc: . $DOT/a; . ${SRC}/shop/b\\n", ("b", "~/.bashrc names it")),
        ("~/.bashrc: . $DOT/a; . ${SRC}/shop/b\\n", ("a", "~/.bashrc names it")),
        ("~/.local/bin/go: #!/bin/sh\\nexec ~/shop/go\\n", ("go", "~/.local/bin/go names it")),
        ('~/.claude/settings.json: {\\n"command": "~/shop/hook.sh"}',
         ("hook.sh", "~/.claude/settings.json names it")),
    ],
)  # fmt: skip
def test_way_is_found(tmp_path: Path, description: str, expected: tuple[str, str]) -> None:
    environ = {"PATH": "/opt/mine:/usr/bin", "DOT": P, "SRC": "/home/alice"}
    assert expected in found(
        tmp_path, f"/etc/passwd: alice:x:1000:1000::/home/alice:/bin/sh\\n\n{description}", **environ
    )


@pytest.mark.parametrize(
    "description",
    [
        "~/work -> shop",
        "~/.bashrc: alias s='cd ~/shop'\\n",
        "~/.bashrc: alias s='cd ~/shop/src'\\n",
        "~/.bashrc: # . ~/shop/env\\n",
        "~/.bashrc: . ~/shop2/env\\n",
        "~/.bashrc: . /mnt/home/alice/shop/env\\n",
        "~/.bashrc: . ~/shop/../other/env\\n",
        "~/.bashrc: export CDPATH=~/shop/src\\n",
        "~/.bash_history: . ~/shop/env\\n",
        "~/.viminfo: ~/shop/src/x\\n",
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
        ({"BASH_ENV": f"{P}/env"}, [("env", "your variable BASH_ENV names it")]),
        ({"LD_PRELOAD": f"/x.so {P}/y.so"}, [("y.so", "your variable LD_PRELOAD names it")]),
        ({"NODE_OPTIONS": f"--require={P}/x.js"}, [("x.js", "your variable NODE_OPTIONS names it")]),
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
    assert shown.splitlines()[-4:] == [
        "  read-only        rc0 (~/.rc0 leads here)",
        "                   rc1 (~/.rc1 leads here)",
        "                   rc2 (~/.rc2 leads here)",
        "                   (if that is what the agent is to work on: --writable PATH)",
    ]


def test_many_ways_are_held_by_their_directories(tmp_path: Path) -> None:
    many = "\n".join(f"~/.config/f{number} -> ../shop/d{number % 3}/{number}" for number in range(ways.MOST_WAYS + 1))
    assert [path for path, _ in found(tmp_path, many)] == ["d0", "d1", "d2"]


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
