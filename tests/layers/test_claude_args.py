"""Words for claude in a file: what they name enters the box as if the file had asked for the mount itself."""

import pytest

from claudebox.errors import Problem
from claudebox.model import RW, Origin, Plan
from claudebox.plan import make_plan
from claudebox.settings import PROJECT_FILE
from hosts.machine import Machine
from saying import gather, parse

STATE = "home/alice/.claudebox"
TURNED = "a symlink that an agent can change"
WAYS = [
    ["--add-dir", "~/work/data"],
    ["--add-dir=~/work/data"],
    ["--add-dir", "~/notes", "~/work/data"],
    ["--mcp-config", "~/work/data/mcp.json"],
    ["--settings", "~/work/data/mcp.json"],
    ["--debug-file", "~/work/data/new.log"],
]


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """`~/work` is a project of another box, whose agent has made a symlink to what is private."""
    machine.plant("~/private/mcp.json: {}\n~/notes/today: a note\n~/work/data -> ~/private")
    return machine.plant("~/.claudebox/instances/0123456789abcdef/project: /home/alice/work\\n")


def configure(machine: Machine, words: list[str]) -> None:
    (machine.root / STATE / "config.toml").write_text(f"claude_args = {words}".replace("'", '"'))


def granted(machine: Machine, words: list[str]) -> Plan:
    """The project's file asks for it, and the user says yes."""
    text = f"claude_args = {words}".replace("'", '"')
    (machine.root / "home/alice/shop" / PROJECT_FILE).write_text(text)
    host, request = machine.host(), parse([])
    project = gather(host, request).project
    assert project is not None
    return make_plan(host, request, gather(host, request, project.replace(granted=True)).settings)


@pytest.mark.req("EXT-01", "SEC-01")
@pytest.mark.parametrize("words", WAYS, ids=" ".join)
def test_agent_cannot_choose_what_a_file_names_for_claude(machine: Machine, words: list[str]) -> None:
    configure(machine, words)
    with pytest.raises(Problem, match=TURNED):
        machine.plan()


@pytest.mark.req("EXT-01", "SEC-01")
@pytest.mark.parametrize("words", WAYS, ids=" ".join)
def test_agent_cannot_choose_what_its_own_file_names_for_claude(machine: Machine, words: list[str]) -> None:
    with pytest.raises(Problem, match=TURNED):
        granted(machine, words)


@pytest.mark.req("EXT-01")
@pytest.mark.parametrize("words", WAYS, ids=" ".join)
def test_what_is_typed_is_meant(machine: Machine, words: list[str]) -> None:
    sources = {mount.source for mount in machine.plan(*(word.replace("~", machine.home) for word in words)).mounts}
    assert any(source.startswith("/home/alice/private") for source in sources)


@pytest.mark.req("EXT-01")
def test_option_of_a_file_takes_no_typed_word_for_meant(machine: Machine) -> None:
    """Who types a prompt did not mean the directory that it is called like."""
    configure(machine, ["--add-dir"])
    with pytest.raises(Problem, match=TURNED):
        machine.plan("/home/alice/work/data")


@pytest.mark.req("EXT-01", "UX-02")
def test_mount_says_which_line_named_it(machine: Machine) -> None:
    configure(machine, ["--add-dir", "~/notes"])
    (mount,) = [mount for mount in machine.plan().mounts if mount.source == "/home/alice/notes"]
    reason = "named by an option of claude"
    assert mount.kind == RW
    assert mount.origin == Origin("file", "~/.claudebox/config.toml", reason, 1)


@pytest.mark.req("ARGS-01")
def test_words_of_one_line_are_all_passed_on(machine: Machine) -> None:
    words = ["--add-dir", "~/notes", "--mcp-config", "a", "--mcp-config", "b", "-p", "a"]
    configure(machine, words)
    assert machine.plan("typed").program.argv[2:] == (*words, "typed")
