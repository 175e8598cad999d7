"""The project's file: takes away at once, and adds nothing without a yes to this content in this project."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from claudebox import start
from claudebox.host import Host
from claudebox.model import COVER, FROM_HOST, HIDE
from claudebox.plan import make_plan
from claudebox.prepare import prepare
from claudebox.problem import Problem
from claudebox.remembered import write
from claudebox.settings.files.project import FORM, MOST_DECISIONS, decisions, keeping_decision
from claudebox.settings.gather import Layers, gather
from claudebox.settings.values import PROJECT_FILE
from claudebox.settings.words import parse
from claudebox.view.text import Style
from claudebox.view.wishes import wishes_text
from hosts.machine import EVERYONE, TREES, Machine

WISHES = """\
extra_env_passthrough = ["EDITOR_TOKEN"]
network = "full"
mounts = [{ host = "~/other" }]
"""
STATE = "home/alice/.claudebox"
DECISIONS = "decisions"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    made.uid = os.getuid()
    made.plant("/usr/bin/pasta*\n/usr/sbin/nft*\n~/shop/.env: X=1\n~/shop/data/x")
    return made


def says(machine: Machine, text: str | bytes, project: str = "shop") -> Path:
    path = machine.root / "home/alice" / project / PROJECT_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def layers(machine: Machine, *words: str) -> Layers:
    return gather(machine.host(), parse(list(words)))


def granted(machine: Machine) -> bool | None:
    project = layers(machine).project
    assert project is not None
    return project.granted


def answer(machine: Machine, *, granted: bool) -> None:
    """As the question does it."""
    project = layers(machine).project
    assert project is not None
    host = machine.host()
    for one in keeping_decision(host, project.content_id, granted=granted):
        prepare((one.replace(path=f"{machine.root}{one.path}"),), "")


def refusal(machine: Machine, *words: str) -> Problem:
    with pytest.raises(Problem) as caught:
        machine.plan(*words)
    return caught.value


def own_config(machine: Machine, text: str) -> None:
    path = machine.root / STATE / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# --- what counts at once


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
    own_config(machine, f'network = "{users}"')
    says(machine, f'network = "{projects}"')
    order = ["full", "inet", "none"]
    assert machine.plan().network.tier == max(users, projects, key=order.index)


@pytest.mark.req("EXT-01", "NET-03")
def test_option_goes_over_the_project(machine: Machine) -> None:
    says(machine, 'network = "none"\nauth = "none"')
    found = layers(machine, "--network", "inet", "--auth", "passthrough").settings
    assert (found.network.tier, found.auth) == ("inet", "passthrough")


@pytest.mark.req("EXT-01")
@pytest.mark.parametrize(("users", "projects"), [("passthrough", "none"), ("none", "passthrough"), ("none", "none")])
def test_login_is_only_taken_away(machine: Machine, users: str, projects: str) -> None:
    own_config(machine, f'auth = "{users}"')
    says(machine, f'auth = "{projects}"')
    assert machine.plan().login is None


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


# --- what needs a yes


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
    own_config(machine, 'network = "inet"')
    before = machine.plan()
    says(machine, wish)
    after, found = machine.plan(), layers(machine).project
    assert found is not None
    assert (found.is_undecided, found.in_force) == (True, ())
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
    own_config(machine, 'network = "inet"')
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
        b"\xff\xfe",
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
    assert ([wish.name for wish in found.env], found.mounts) == (["A"], ())


@pytest.mark.req("EXT-01", "SEC-01")
def test_file_that_appears_after_a_look_is_not_mounted_and_not_read(machine: Machine) -> None:
    host, request = machine.host(), parse([])
    assert gather(host, request).project is None
    says(machine, WISHES)
    assert gather(host, request).project is None


# --- what an agent can plant


def symlink_to_a_file(path: Path) -> None:
    (path.parent / "other.toml").write_text(WISHES)
    path.symlink_to("other.toml")


def symlink_to_a_trusted_file(path: Path) -> None:
    path.symlink_to("/home/alice/other/.claudebox.toml")


def symlink_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.req("EXT-01", "SEC-01", "FAIL-01")
@pytest.mark.parametrize(
    "plant", [symlink_to_a_file, symlink_to_a_trusted_file, symlink_to_a_device, dangling, fifo, directory]
)
def test_only_a_plain_file_is_read(machine: Machine, plant: Callable[[Path], None]) -> None:
    says(machine, WISHES, "other")
    plant(machine.root / "home/alice/shop" / PROJECT_FILE)
    assert refusal(machine).message == f"/home/alice/shop/{PROJECT_FILE} is not a plain file that can be read"


@pytest.mark.slow("megabytes are read")
@pytest.mark.req("EXT-01", "FAIL-01")
@pytest.mark.parametrize(
    "content",
    [
        b"x" * (1 << 21),
        b'hide = ["a"]\n' * 100_000,
        b"\0" * 1000,
        b"[" * 100_000,
        b"hide = [" + b'"a",' * 60_000 + b"]",
        b"mounts = [" + b'{host="a"},' * 20_000 + b"]",
        b"a." * 100_000,
        b'hide = ["' + b"$A" * 100_000 + b'"]',
    ],
    ids=["long", "repeated", "nul", "nested", "hides", "mounts", "dotted", "variables"],
)
def test_huge_file_is_refused(machine: Machine, content: bytes) -> None:
    says(machine, content)
    assert PROJECT_FILE in refusal(machine).message


@pytest.mark.req("EXT-01", "FAIL-01")
def test_many_lines_are_no_trouble(machine: Machine) -> None:
    says(machine, "\n" * 100_000 + 'hide = [".env"]')
    assert layers(machine).settings.hides[0].origin.shown == f"{PROJECT_FILE}:100001"


@pytest.mark.req("EXT-01", "SEC-01")
def test_file_of_the_directory_above_does_not_count(machine: Machine) -> None:
    says(machine, WISHES, ".")
    says(machine, "broken [", "shop/sub")
    assert layers(machine).project is None


@pytest.mark.req("EXT-01", "SEC-01")
@pytest.mark.parametrize("host", ["data", "./data", "data/", "~/shop/data", "$HOME/shop/data/x"])
def test_agreed_mount_cannot_be_turned_into_another(machine: Machine, host: str) -> None:
    """The yes is to the words of the file. What they mean must not be the agent's choice."""
    machine.plant("~/private/x: diary")
    says(machine, f'mounts = [{{ host = "{host}", sandbox = "/opt/data" }}]')
    answer(machine, granted=True)
    assert "/opt/data" in {mount.path for mount in machine.plan().mounts}
    (machine.root / "home/alice/shop/data").rename(machine.root / "home/alice/shop/old")
    (machine.root / "home/alice/shop/data").symlink_to("/home/alice/private")
    assert "a symlink that an agent can change" in refusal(machine).message


@pytest.mark.req("EXT-01", "SEC-01")
def test_host_and_sandbox_are_never_one_name(machine: Machine) -> None:
    machine.plant("~/private/x: diary\n~/shop/data:/opt/data -> ~/private")
    says(machine, 'mounts = [{ host = "data", sandbox = "/opt/data" }]')
    answer(machine, granted=True)
    assert [mount.source for mount in machine.plan().mounts if mount.path == "/opt/data"] == ["/home/alice/shop/data"]
    assert "/home/alice/private" not in {mount.source for mount in machine.plan().mounts}


@pytest.mark.req("EXT-01", "SEC-01")
@pytest.mark.parametrize("place", ["~/.claudebox", "~/.claudebox/decisions", "~/.claudebox/profiles"])
@pytest.mark.parametrize("option", ["--mount-ro", "--mount-rw"])
def test_memory_cannot_be_mounted(machine: Machine, place: str, option: str) -> None:
    machine.plant("~/.claudebox/decisions: {}\n~/.claudebox/profiles/a.toml: x")
    assert "secret" in refusal(machine, option, place).message


@pytest.mark.req("EXT-01", "SEC-01")
def test_memory_is_in_no_mount(machine: Machine) -> None:
    machine.plant("~/.claudebox/decisions: {}")
    shown = [mount.source for mount in machine.plan().mounts if mount.kind in FROM_HOST]
    assert not any(f"/{STATE}/{DECISIONS}".startswith(f"{source}/") for source in shown)


# --- what the user is shown


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


def shown(host: Host) -> str:
    project = gather(host, parse([])).project
    assert project is not None
    return wishes_text(project.wishes, Style(False))


@pytest.mark.req("EXT-01", "UX-02")
@pytest.mark.parametrize(
    "wish",
    ["host_ports = [5432]", 'mounts = [{ host = "~/.ssh" }]', 'mounts = [{ host = "/gone" }]', 'profiles = ["no"]'],
)
def test_nobody_is_asked_for_the_impossible(machine: Machine, monkeypatch: pytest.MonkeyPatch, wish: str) -> None:
    """A yes to it would be remembered, and nothing would start any more."""
    says(machine, wish)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(start, "says_yes", lambda _: pytest.fail("asked"))
    host, request = machine.host(), parse([])
    layers = start.ask_about_project(host, request, gather(host, request))
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
