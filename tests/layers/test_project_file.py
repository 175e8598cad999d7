"""The project's file: takes away at once, and shows the user what it wants."""

import sys

import pytest

from claudebox import consent
from claudebox.errors import Problem
from claudebox.features.table import SETTINGS
from claudebox.model import COVER, HIDE, Login
from claudebox.plan import make_plan
from claudebox.settings import PROJECT_FILE
from claudebox.settings.table import AUTH, NETWORK
from hosts.machine import Machine
from layers.files import STATE, layers, own_file, says, shown
from saying import gather, parse


@pytest.mark.req("EXT-01", "SEC-01")
def test_hide_counts_at_once(machine: Machine) -> None:
    says(machine, 'hide = [".env", "~/shop/data"]')
    plan = machine.plan()
    hidden = {mount.path: mount.origin.shown for mount in plan.mounts if mount.kind == HIDE}
    assert hidden == {f"/home/alice/shop/{name}": f"{PROJECT_FILE}:1" for name in (".env", "data")}


@pytest.mark.req("EXT-01", "ENV-01")
def test_dropped_variable_is_out_at_once(machine: Machine) -> None:
    machine.environ["EDITOR"] = "vim"
    says(machine, 'drop_env = ["EDITOR"]')
    assert "EDITOR" not in {variable.name for variable in machine.plan().environment}


@pytest.mark.req("EXT-01", "NET-03")
@pytest.mark.parametrize("users", ["full", "inet", "none"])
@pytest.mark.parametrize("projects", ["full", "inet", "none"])
def test_network_only_goes_down(machine: Machine, users: str, projects: str) -> None:
    own_file(machine, "config.toml", f'network = "{users}"')
    says(machine, f'network = "{projects}"')
    order = ["full", "inet", "none"]
    assert machine.plan().network.tier == max(users, projects, key=order.index)


@pytest.mark.req("EXT-01", "NET-03")
def test_option_goes_over_the_project(machine: Machine) -> None:
    says(machine, 'network = "none"\nauth = "none"')
    found = layers(machine, "--network", "inet", "--auth", "passthrough").settings
    assert (found[NETWORK].text, found[AUTH].text) == ("inet", "passthrough")


@pytest.mark.req("EXT-01")
@pytest.mark.parametrize(("users", "projects"), [("passthrough", "none"), ("none", "passthrough"), ("none", "none")])
def test_login_is_only_taken_away(machine: Machine, users: str, projects: str) -> None:
    own_file(machine, "config.toml", f'auth = "{users}"')
    says(machine, f'auth = "{projects}"')
    assert machine.plan().get(Login) is None


@pytest.mark.req("EXT-01", "SEC-01")
@pytest.mark.parametrize("hide", ["/etc/claude-code", "/etc/claude-code/managed-settings.json", "/etc", "policy"])
def test_policy_is_not_for_a_project_to_hide(machine: Machine, hide: str) -> None:
    machine.plant("/etc/claude-code/managed-settings.json: {}\n~/shop/policy -> /etc/claude-code")
    says(machine, f'hide = ["{hide}"]')
    policy = "/etc/claude-code/managed-settings.json"
    assert [mount.source for mount in machine.plan().mounts if mount.path == policy] == [policy]
    assert [mount.kind for mount in machine.plan("--hide", hide).mounts if mount.path == policy] == [HIDE]


@pytest.mark.req("EXT-01", "SEC-01")
@pytest.mark.parametrize("hide", ["~/.claude", "~/.claude/hooks", "~/dotfiles", "~/.claudebox"])
def test_hooks_of_the_user_are_not_for_a_project_to_hide(machine: Machine, hide: str) -> None:
    machine.plant("~/dotfiles/hooks/deny.sh*\n~/.claude/hooks -> ../dotfiles/hooks\n~/.claudebox/")
    says(machine, f'hide = ["{hide}"]')
    mounts = {mount.path: mount.source for mount in machine.plan().mounts}
    assert mounts["/home/alice/.claude/hooks"] == "/home/alice/dotfiles/hooks"


@pytest.mark.req("EXT-01", "SEC-01")
def test_question_shows_every_wish_and_its_line(machine: Machine) -> None:
    says(
        machine,
        'profiles = ["go"]\nmounts = [{ host = "~/other", sandbox = "/opt/o", mode = "rw" }]\n'
        'publish = ["80:8080"]\nclaude_args = ["--model", "opus"]\nenv = { A = "1" }\nhide = ["x"]\n',
    )
    assert shown(machine.host()).splitlines() == [
        "This project asks for more than it gets by itself:",
        "  + profiles             go (.claudebox.toml:1)",
        "  + mounts               ~/other as /opt/o, writable (.claudebox.toml:2)",
        "  + publish              80:8080 (.claudebox.toml:3)",
        "  + claude_args          --model (.claudebox.toml:4)",
        "  + claude_args          opus (.claudebox.toml:4)",
        "  + env                  A=1 (.claudebox.toml:5)",
    ]


@pytest.mark.req("EXT-01", "SEC-01")
@pytest.mark.parametrize(
    "line",
    [
        r'env = { A = "\u001b[2J\u001b[H" }',
        r'env = { A = "x\nLet it have these? [y/N] y" }',
        r'env = { A = "a\rb" }',
        r'env = { A = "\u202etxt.exe" }',
        r'claude_args = ["\u0007", "\u009b2J"]',
        r'mounts = [{ host = "/a\u200bb\u2066c" }]',
        r'path = ["/a\u2028b"]',
    ],
)
def test_question_cannot_be_forged(machine: Machine, line: str) -> None:
    says(machine, line)
    text = shown(machine.host())
    assert text.replace("\n", "").isprintable()
    assert all(row.startswith(("This project", "  + ", " " * 25)) for row in text.splitlines())


@pytest.mark.req("EXT-01", "UX-02")
@pytest.mark.parametrize(
    "wish",
    ["host_ports = [5432]", 'mounts = [{ host = "~/.ssh" }]', 'mounts = [{ host = "/gone" }]', 'profiles = ["no"]'],
)
def test_nobody_is_asked_for_the_impossible(machine: Machine, monkeypatch: pytest.MonkeyPatch, wish: str) -> None:
    """A yes to it would be remembered, and nothing would start any more."""
    says(machine, wish)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(consent, "says_yes", lambda _: pytest.fail("asked"))
    host, request = machine.host(), parse([])
    layers = consent.ask_about_project(SETTINGS, host, request, gather(host, request))
    plan = make_plan(host, request, layers.settings)
    assert any("impossible" in finding.text for finding in plan.findings)


@pytest.mark.req("EXT-01", "SEC-01")
def test_project_cannot_ask_what_a_variable_holds(machine: Machine) -> None:
    """By looking at what is hidden in the box, and without a yes."""
    machine.environ["PIN"] = "4711"
    says(machine, 'hide = ["guess/$PIN"]')
    with pytest.raises(Problem, match="hides nothing by variable"):
        machine.plan()


@pytest.mark.req("EXT-01", "SEC-01")
def test_project_file_is_covered_by_its_content(machine: Machine) -> None:
    """A bind of the file itself would show whatever it has become a symlink to by then."""
    says(machine, 'hide = ["x"]\n')
    (cover,) = [mount for mount in machine.plan().mounts if mount.path.endswith(PROJECT_FILE)]
    assert (cover.kind, cover.source, cover.content) == (COVER, "", b'hide = ["x"]\n')


@pytest.mark.req("EXT-01")
@pytest.mark.parametrize("name", ["HOME", "CLAUDE_CONFIG_DIR", "DISABLE_AUTOUPDATER"])
def test_what_the_box_needs_is_not_dropped(machine: Machine, name: str) -> None:
    says(machine, f'drop_env = ["{name}"]')
    with pytest.raises(Problem, match="made by the box"):
        machine.plan()


@pytest.mark.req("SEC-01")
def test_box_without_claude_is_noted_as_well(machine: Machine) -> None:
    """Where it could write, no symlink of the user's own files is believed later."""
    machine.environ["PATH"] = "/usr/bin"
    assert machine.plan("--run", "true").preparations == ()
    (machine.root / STATE).mkdir(parents=True)
    noted = [item.content for item in machine.plan("--mount-rw", "~/other", "--run", "true").preparations]
    assert b"/home/alice/shop\n" in noted
    assert b"/home/alice/other\n" in noted
