"""The agent changes what the host runs because something outside leads there: a link from the home, PATH."""

from dataclasses import replace
from pathlib import Path

import pytest

from attacks.conftest import TITLE, said
from attacks.test_host_runs_later import ALWAYS_POSSIBLE, state_of, tamper
from conftest import Account, Box

pytestmark = pytest.mark.req("REACH-01")

# What is in the home, by shell, and the place in the project to which it leads; one that ends in / is a directory.
WAYS = {
    "ln -s src/shop/bashrc .bashrc": "bashrc",
    "ln -s src/shop/vim .vim": "vim/",
    "mkdir -p .config; ln -s ../src/shop/nvim .config/nvim": "nvim/",
    "mkdir -p .config/fish/conf.d; ln -s ../../../src/shop/x.fish .config/fish/conf.d": "x.fish",
    "mkdir -p .local/bin; ln -s ~/src/shop/tools/deploy .local/bin/deploy": "tools/deploy",
    "mkdir -p bin; ln -s ~/elsewhere bin/other; ln -s src/shop/tools/other elsewhere": "tools/other",
    "mkdir -p .config/systemd/user; ln -s ~/src/shop/units/a.service .config/systemd/user": "units/a.service",
    "ln -s src/shop/gitconfig .gitconfig": "gitconfig",
    "ln src/shop/inputrc .inputrc": "inputrc",
    "mkdir -p .claude/agents; ln -s ~/src/shop/reviewer.md .claude/agents": "reviewer.md",
}
PLACES = [*WAYS.values(), "programs/"]


@pytest.fixture
def dotfiles(account: Account, project: Path) -> Path:
    """A project to which the home leads in many ways."""
    for place in PLACES:
        account.write(project / place / "file" if place.endswith("/") else project / place, "x\n", mode=0o755)
    account.own(project)
    for setup in WAYS:
        made = account.run("sh", "-c", setup, cwd=account.home)
        assert made.returncode == 0, made.stderr
    return project


@pytest.fixture
def on_path(box: Box, project: Path) -> Box:
    environ = {**box.account.environ, "PATH": f"{project}/programs:{box.account.environ['PATH']}"}
    return replace(box, account=replace(box.account, environ=environ))


def test_nothing_that_the_host_leads_to_can_be_changed(on_path: Box, dotfiles: Path) -> None:
    before = [state_of(dotfiles / place) for place in PLACES]
    assert {
        place: worked for place, worked in tamper(on_path, dotfiles, PLACES, "--review", "off").items() if worked
    } == {}
    assert [state_of(dotfiles / place) for place in PLACES] == before
    # In a layer the attempts succeed, and nothing of it is on the host.
    layered = {place.rstrip("/") for place in PLACES if place.endswith("/")}
    assert {place for place, worked in tamper(on_path, dotfiles, PLACES).items() if worked} == layered
    assert [state_of(dotfiles / place) for place in PLACES] == before


def test_it_can_where_the_user_says_so(on_path: Box, dotfiles: Path) -> None:
    worked = tamper(on_path, dotfiles, PLACES, "--writable", ".")
    assert {place: ALWAYS_POSSIBLE - {*attempts} for place, attempts in worked.items()} == {
        place.rstrip("/"): set() for place in PLACES
    }


def test_shell_of_the_host_would_have_obeyed(box: Box, account: Account, project: Path) -> None:
    """The attack is real: the next shell runs what the agent wrote."""
    account.write(project / "bashrc", "\n")
    (account.home / ".bashrc").symlink_to(project / "bashrc")
    attack = f"echo 'touch {account.home}/ran' >> bashrc"
    assert "Read-only" in box.inside("sh", "-c", attack).stderr
    account.run("bash", "-ic", "true")
    assert not (account.home / "ran").exists()
    assert "bashrc: --writable lets the agent change what this host runs later" in " ".join(
        box.inside("sh", "-c", attack, options=("--writable", "bashrc")).stderr.split()
    )
    account.run("bash", "-ic", "true")
    assert (account.home / "ran").exists()


def test_what_a_link_waits_for_is_named_when_it_appears(box: Box, account: Account, project: Path) -> None:
    (account.home / ".zshenv").symlink_to(project / "new/zshenv")
    done = box.inside("sh", "-c", "mkdir new; echo evil > new/zshenv")
    assert f"{TITLE}: 1 new new/zshenv (~/.zshenv leads here)" in said(done)


def test_link_in_the_project_on_the_way_is_said_and_named(box: Box, account: Account, project: Path) -> None:
    """No mount holds a symlink, so that turning it can only be told."""
    account.write(project / "v1/bashrc", "\n")
    (project / "current").symlink_to("v1")
    (account.home / ".bashrc").symlink_to(project / "current/bashrc")
    done = box.inside("sh", "-c", "mkdir v2; touch v2/bashrc; ln -sfn v2 current; echo x >> v1/bashrc")
    assert "current: leads through a symlink, which no mount can hold" in " ".join(done.stderr.split())
    assert "changed current (~/.bashrc leads here) -> v2" in said(done)
    assert (project / "v1/bashrc").read_text() == "\n"


def test_whole_project_is_read_only_if_all_of_it_is_led_to(box: Box, account: Account, project: Path) -> None:
    account.write(project / "init.lua", "\n")
    account.write(account.home / ".config/x", "")
    (account.home / ".config/nvim").symlink_to(project)
    script = "echo x >> init.lua; touch new; true"
    done = box.inside("sh", "-c", script)
    assert "all of it is read-only in the box, since ~/.config/nvim leads here" in " ".join(done.stderr.split())
    assert ((project / "init.lua").read_text(), (project / "new").exists()) == ("\n", False)
    box.inside("sh", "-c", script, options=("--writable", "."))
    assert ((project / "init.lua").read_text(), (project / "new").exists()) == ("\nx\n", True)


def test_program_that_takes_the_name_of_another_is_named(box: Box, account: Account, project: Path) -> None:
    """A virtual environment on PATH has to be writable: what is installed there is no news, a new `ls` is."""
    account.write(project / ".venv/bin/tool", "x\n", mode=0o755)
    environ = {**account.environ, "PATH": f"{project}/.venv/bin:{account.environ['PATH']}"}
    active = replace(box, account=replace(account, environ=environ))
    done = active.inside("sh", "-c", "echo x > .venv/bin/tool; echo x > .venv/bin/other-tool")
    assert ".venv/bin: is on your PATH" in " ".join(done.stderr.split())
    assert said(done) == ""
    planted = "cd .venv/bin; for i in $(seq 400); do echo > a$i; done; echo evil > ls"
    assert f"{TITLE}: 1 new .venv/bin/ls (your PATH has it before" in said(active.inside("sh", "-c", planted))


def test_what_is_built_is_shown_but_not_held(box: Box, account: Account, project: Path) -> None:
    """People link to what they build, and building is what agents do."""
    account.write(project / "target/release/shop", "old\n", mode=0o755)
    account.run("sh", "-c", "mkdir -p .local/bin; ln -s ~/src/shop/target/release/shop .local/bin", cwd=account.home)
    done = box.inside("sh", "-c", "echo new > built; mv built target/release/shop")
    assert "target/release/shop: ~/.local/bin/shop leads here, and it is not held" in " ".join(done.stderr.split())
    assert said(done) == ""


def test_directory_that_is_on_path_before_it_exists(box: Box, account: Account, project: Path) -> None:
    environ = {**account.environ, "PATH": f"{project}/bin:{account.environ['PATH']}"}
    done = replace(box, account=replace(account, environ=environ)).inside("sh", "-c", "mkdir bin; echo evil > bin/ls")
    assert "new bin/ls (it is on your PATH)" in said(done)


def test_directory_that_is_mounted_besides_is_looked_at(box: Box, account: Account, project: Path) -> None:
    rc = account.write(account.home / "dotfiles/rc", "\n")
    (account.home / ".bashrc").symlink_to(rc)
    attack = f"echo evil >> {rc}; echo work >> {rc.parent}/notes"
    box.inside("sh", "-c", attack, options=("--mount-rw", str(rc.parent)))
    assert (rc.read_text(), (rc.parent / "notes").read_text()) == ("\n", "work\n")
    box.inside("sh", "-c", attack, options=("--mount-rw", str(rc.parent), "--writable", str(rc)))
    assert rc.read_text() == "\nevil\n"
