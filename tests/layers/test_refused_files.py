"""Names and files of settings that are refused, and what an agent can write, which is not believed."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from claudebox.state import instance_name
from conftest import Account, Box
from hosts.machine import Machine
from layers.files import own_file, profile, refusal, variables


@pytest.mark.req("EXT-03", "FAIL-01")
@pytest.mark.parametrize("name", ["../x", "/etc/passwd", ".hidden", ".", "..", "a/b", "a b", "ä", "x\n", "-", "~"])
def test_bad_name_is_refused(machine: Machine, name: str) -> None:
    profile(machine, "x.toml", "")
    assert "cannot be the name of a profile" in refusal(machine, f"--profile={name}").message


@pytest.mark.req("EXT-03", "FAIL-01")
def test_bad_name_in_a_file_is_refused_with_its_line(machine: Machine) -> None:
    profile(machine, "top.toml", '\nprofiles = ["../../shop/x"]')
    machine.plant("~/shop/x.toml: network = 'full'")
    assert refusal(machine, "--profile", "top").message.startswith("~/.claudebox/profiles/top.toml:2: `../../shop/x`")


@pytest.mark.req("EXT-03", "FAIL-01")
def test_circle_is_refused_and_shown(machine: Machine) -> None:
    profile(machine, "a.toml", 'profiles = ["b"]')
    profile(machine, "b.toml", 'profiles = ["c"]')
    profile(machine, "c.toml", 'profiles = ["b"]')
    assert refusal(machine, "--profile", "a").message.endswith("profiles build on each other: b → c → b")


@pytest.mark.req("EXT-03", "FAIL-01")
def test_unknown_name_gets_the_nearest_one(machine: Machine) -> None:
    profile(machine, "database.toml", "")
    problem = refusal(machine, "--profile", "datebase")
    assert (problem.message, problem.hint) == (
        "--profile: there is no profile `datebase`",
        "did you mean `database`?",
    )


@pytest.mark.req("EXT-03", "FAIL-01")
def test_unknown_name_like_no_other_gets_the_place_for_its_file(machine: Machine) -> None:
    assert refusal(machine, "--profile", "staging").hint.endswith("to write it: ~/.claudebox/profiles/staging.toml")


@pytest.mark.req("EXT-03", "FAIL-01")
def test_name_of_the_file_gets_the_name_of_the_profile(machine: Machine) -> None:
    profile(machine, "aws.toml", "")
    assert refusal(machine, "--profile", "aws.toml").hint == "did you mean `aws`?"


@pytest.mark.req("EXT-03", "FAIL-01")
def test_two_files_of_one_name_are_refused(machine: Machine) -> None:
    profile(machine, "aws.toml", "")
    profile(machine, "aws.json", "{}")
    assert "there are two profiles `aws`" in refusal(machine, "--profile", "aws").message


def directory(path: Path) -> None:
    path.mkdir()


def fifo(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the address of a socket has to be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def dangling(path: Path) -> None:
    path.symlink_to("/nowhere")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.req("EXT-03", "FAIL-01")
@pytest.mark.parametrize("make", [directory, fifo, listening, dangling, loop])
@pytest.mark.parametrize("name", ["config.toml", "profiles/default.toml", "profiles/aws.json"])
def test_what_is_no_file_is_refused_and_not_waited_for(
    machine: Machine, make: Callable[[Path], None], name: str
) -> None:
    path = machine.root / "home/alice/.claudebox" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)
    words = ("--profile", "aws") if name.endswith("json") else ()
    assert refusal(machine, *words).message == f"/home/alice/.claudebox/{name} cannot be read"


@pytest.mark.req("EXT-03", "FAIL-01")
@pytest.mark.box
def test_unreadable_file_is_refused(user: Account) -> None:
    project = user.write(user.home / "src/shop/README.md").parent
    user.write(user.home / ".claudebox/config.toml", "", mode=0)
    result = Box(user, project).claudebox("--audit")
    assert (result.returncode, result.stdout) == (125, "")
    assert f"{user.home}/.claudebox/config.toml cannot be read" in result.stderr


def linked(machine: Machine, target: str, name: str = "config.toml") -> None:
    path = machine.root / "home/alice/.claudebox" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def known_to_an_agent(machine: Machine, path: str) -> None:
    """A box could write there once."""
    machine.plant(f"~/.claudebox/instances/{instance_name(path)}/project: {path}\\n")


@pytest.mark.req("EXT-03", "SEC-01")
def test_file_from_this_project_is_refused(machine: Machine) -> None:
    machine.plant("~/shop/config.toml: hide = []")
    linked(machine, "/home/alice/shop/config.toml")
    assert "comes from where an agent can write" in refusal(machine).message


@pytest.mark.req("EXT-03", "SEC-01")
@pytest.mark.parametrize("name", ["config.toml", "profiles/default.toml"])
def test_file_from_another_project_is_refused(machine: Machine, name: str) -> None:
    machine.plant("~/dotfiles/box.toml: hide = []")
    known_to_an_agent(machine, "/home/alice/dotfiles")
    linked(machine, "/home/alice/dotfiles/box.toml", name)
    assert "comes from where an agent can write" in refusal(machine).message


@pytest.mark.req("EXT-03", "SEC-01")
def test_way_through_a_project_is_refused(machine: Machine) -> None:
    """The agent can turn the link around."""
    machine.plant("~/mine/box.toml: hide = []\n~/dotfiles/current -> ../mine")
    known_to_an_agent(machine, "/home/alice/dotfiles")
    linked(machine, "/home/alice/dotfiles/current/box.toml")
    assert "comes from where an agent can write" in refusal(machine).message


@pytest.mark.req("EXT-03", "SEC-01")
def test_profiles_directory_from_a_project_is_refused(machine: Machine) -> None:
    machine.plant("~/shop/profiles/aws.toml: hide = []\n~/.claudebox/profiles -> ../shop/profiles")
    assert "comes from where an agent can write" in refusal(machine, "--profile", "aws").message


@pytest.mark.req("EXT-03", "SEC-01")
@pytest.mark.parametrize("target", ["/nix/store/abc-home/config.toml", "/home/alice/dotfiles/config.toml"])
def test_file_from_where_no_agent_was_works(machine: Machine, target: str) -> None:
    machine.plant(f'{target}: env = {{ A = "1" }}')
    known_to_an_agent(machine, "/home/alice/other")
    linked(machine, target)
    assert variables(machine)["A"] == "1"


@pytest.mark.req("EXT-03", "FAIL-01")
def test_home_as_project_is_refused_for_what_it_is(machine: Machine) -> None:
    own_file(machine, "config.toml", "")
    machine.cwd = "/home/alice"
    assert "is your home" in refusal(machine).message
