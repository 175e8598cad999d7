"""Configuration, state and cache where XDG variables say: no box sees them, no variable makes claudebox forget them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from claudebox.state import State
from conftest import CLAUDEBOX, Account, Box
from patience import comes_true
from running.needs import needed

XDG = {"XDG_CONFIG_HOME": "apart/a/config", "XDG_STATE_HOME": "apart/b/state", "XDG_CACHE_HOME": "apart/c/cache"}
ALONE = ("--auth", "none", "--network", "full", "--review", "off")


@pytest.fixture
@needed("box")
def apart(user: Account) -> Box:
    """A project of somebody who has set the variables, and written settings there."""
    project = user.write(user.home / "src/shop/README.md").parent
    user.write(user.home / "apart/a/config/claudebox/config.toml", 'extra_env_passthrough = ["FROM_SETTINGS"]\n')
    user.environ["FROM_SETTINGS"] = "read"
    return Box(user, project)


def variables(user: Account) -> dict[str, str]:
    return {name: f"{user.home}/{path}" for name, path in XDG.items()}


# Everything that a box may try. What succeeds is named.
PROBE = """
cd ~
for place in apart/a/config/claudebox apart/b/state/claudebox apart/c/cache/claudebox .local/state/claudebox; do
    ls -A $place | grep . && echo "lists $place"
    touch $place/planted && ls $place/planted
    mv $place $place.moved && echo "moves $place"
    mv ${place%/*} ${place%/*}.moved && echo "moves ${place%/*}"
    above=${place%/*/*}
    mv $above $above.moved && echo "moves $above"
done
echo 'review = "off"' > apart/a/config/claudebox/config.toml
cat apart/b/state/claudebox/instances/*/project
cat .local/state/claudebox/places
true
"""


def listed(user: Account) -> set[str]:
    places = [user.home / path / "claudebox" for path in (*XDG.values(), ".local/state")]
    return {str(path) for place in places for path in place.rglob("*") if "/cache/" not in str(path.relative_to(place))}


@pytest.mark.req("SAND-08", "INST-01", "SEC-01")
def test_no_box_reads_writes_or_moves_the_places(apart: Box) -> None:
    """Not even if all above them is mounted writable."""
    user, environ = apart.account, variables(apart.account)
    user.write(user.home / ".local/share/x")
    mounts = tuple(word for path in ("apart", ".local") for word in ("--mount-rw", f"{user.home}/{path}"))
    assert apart.inside("true", env=environ).returncode == 0
    before = listed(user)
    done = apart.inside("sh", "-c", PROBE, options=mounts, env=environ)
    assert done.returncode == 0, done.stderr
    # What is touched there is in the empty directory that hides the place.
    said = [line for line in done.stdout.splitlines() if not line.endswith("claudebox/planted")]
    assert said == []
    assert listed(user) - before <= {path for path in listed(user) if "/writable-" in path}
    assert (user.home / "apart/a/config/claudebox/config.toml").read_text().startswith("extra_env")
    assert sorted(path.name for path in (user.home / "apart").iterdir()) == ["a", "b", "c"]


PLANT = """
cd ~
mkdir -p .local/state/claudebox .config/claudebox
echo 'network = "full"' > .config/claudebox/config.toml
echo planted > .local/state/claudebox/places
mv .local/state .local/state.moved
true
"""


@pytest.mark.req("SAND-08", "INST-01")
def test_box_leaves_no_note_and_no_settings_where_the_next_start_would_believe_them(apart: Box) -> None:
    """Nothing is kept yet, and the box is the first that may write where files of claudebox could be."""
    user = apart.account
    user.write(user.home / ".local/share/x")
    user.write(user.home / ".config/x")
    mounts = tuple(word for path in (".config", ".local") for word in ("--mount-rw", f"{user.home}/{path}"))
    assert apart.inside("sh", "-c", PLANT, options=mounts).returncode == 0
    assert list((user.home / ".local").rglob("places")) == []
    assert sorted(path.name for path in (user.home / ".local").iterdir()) == ["share", "state"]
    refused = apart.inside("touch", "started")
    assert refused.returncode == 125
    assert "an agent can have written it" in " ".join(refused.stderr.split())
    (user.home / ".config/claudebox/config.toml").unlink()
    assert apart.inside("true").returncode == 0


def test_box_works_with_a_mount_in_a_home_that_cannot_be_written(apart: Box) -> None:
    """What it can write cannot be noted, and nothing of claudebox is ever there."""
    user = apart.account
    user.write(user.home / "shared/x")
    user.home.chmod(0o555)
    try:
        done = apart.inside("touch", f"{user.home}/shared/y", options=("--mount-rw", f"{user.home}/shared"))
    finally:
        user.home.chmod(0o755)
    assert (done.returncode, (user.home / "shared/y").exists()) == (0, True), done.stderr


@pytest.mark.req("INST-01")
def test_uninstall_before_the_first_start_removes_nothing(apart: Box) -> None:
    """A variable says where files would be; what is there is not claudebox's."""
    user = apart.account
    done = apart.claudebox("--uninstall", "--yes", env=variables(user))
    assert (done.returncode, done.stdout.startswith("claudebox keeps nothing in ")) == (0, True)
    assert (user.home / "apart/a/config/claudebox/config.toml").exists()


@pytest.mark.req("SAND-08")
def test_cache_that_somebody_removed_is_hidden_again_before_the_box_sees_it(apart: Box) -> None:
    """What Nix said about packages is kept there: whoever writes it chooses what is in the next box."""
    user, environ = apart.account, variables(apart.account)
    assert apart.inside("true", env=environ).returncode == 0
    user.run("rm", "-r", str(user.home / "apart/c/cache/claudebox"))
    done = apart.inside(
        *("sh", "-c", f"ls {user.home}/apart/c/cache/claudebox/*"),
        options=("--mount-rw", f"{user.home}/apart/c"),
        env=environ,
    )
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert (user.home / "apart/c/cache/claudebox").is_dir()


@pytest.mark.req("INST-01", "FAIL-01")
def test_variable_that_changes_later_makes_claudebox_forget_nothing(apart: Box) -> None:
    user = apart.account
    assert apart.sh("echo $FROM_SETTINGS", env=variables(user)) == "read\n"
    flips: tuple[dict[str, str], ...] = (
        {},
        dict.fromkeys(XDG, f"{user.home}/elsewhere"),
        dict.fromkeys(XDG, str(apart.project)),
        dict.fromkeys(XDG, "relative"),
    )
    for environ in flips:
        assert apart.sh("echo $FROM_SETTINGS", env=environ) == "read\n"
    assert not (user.home / ".claudebox").exists()
    assert not (user.home / "elsewhere").exists()


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("value", ["{project}/.config", "/tmp/x", "relative", "{home}/../x", "{project}/link"])
def test_place_that_an_agent_could_choose_starts_nothing(apart: Box, value: str) -> None:
    user = apart.account
    (apart.project / "link").symlink_to(user.home / "apart")
    before = sorted(path for path in user.home.rglob("*"))
    path = value.format(project=apart.project, home=user.home)
    done = apart.inside("touch", "started", env={"XDG_STATE_HOME": path})
    assert (done.returncode, done.stdout) == (125, "")
    assert "XDG_STATE_HOME" in done.stderr
    assert sorted(user.home.rglob("*")) == before


@pytest.mark.req("INST-01")
def test_files_move_over_and_back(apart: Box, lonely: Account) -> None:
    """Settings, what was noted and what was downloaded are used from both places."""
    apart = replace(apart, account=lonely)
    user, environ = apart.account, variables(apart.account)
    user.run("mkdir", "-m", "700", f"{user.home}/.claudebox")
    user.run("mv", f"{user.home}/apart/a/config/claudebox/config.toml", f"{user.home}/.claudebox")
    store = "echo warm > ~/.cache/downloaded; echo $FROM_SETTINGS"
    assert apart.sh(store, options=("--cache", "project"), env=environ) == "read\n"
    told = apart.claudebox("--places", env=environ).stdout
    assert told.splitlines()[0] == "configuration  ~/.claudebox"
    for word, shown in (("xdg", "~/apart/a/config/claudebox"), ("home", "~/.claudebox")):
        done = apart.claudebox("--places", word, "--yes", env=environ)
        assert (done.returncode, done.stderr) == (0, "")
        told = apart.claudebox("--places").stdout
        assert told.splitlines()[0].split() == ["configuration", shown]
        assert (
            apart.sh("cat ~/.cache/downloaded; echo $FROM_SETTINGS", options=("--cache", "project")) == "warm\nread\n"
        )
        assert (user.home / ".claudebox").exists() == (word == "home")
    assert not (user.home / "apart/b/state/claudebox").exists()


@pytest.mark.req("INST-01")
@pytest.mark.parametrize("word", ["xdg", "home"])
def test_nothing_moves_without_a_yes(apart: Box, word: str) -> None:
    environ = variables(apart.account)
    if word == "home":
        apart.inside("true", env=environ)
    else:
        apart.account.run("mkdir", "-m", "700", f"{apart.account.home}/.claudebox")
    (apart.account.home / "apart/a/config/claudebox/config.toml").unlink()
    before = apart.claudebox("--places").stdout
    assert apart.claudebox("--places", word, env=environ).returncode == 125
    assert apart.claudebox("--places").stdout == before


@pytest.fixture
def running(apart: Box) -> Iterator[subprocess.Popen[str]]:
    user = apart.account
    started = subprocess.Popen(
        user.becoming(CLAUDEBOX, "--yes", *ALONE, "--run", "sh", "-c", "touch started; read line"),
        cwd=apart.project,
        env=user.environ | variables(user),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert comes_true(lambda: (apart.project / "started").exists() or started.poll() is not None)
    assert started.poll() is None, started.communicate()
    yield started
    started.communicate("the end\n" if started.poll() is None else None)


@pytest.mark.req("INST-01")
@pytest.mark.root
def test_nothing_moves_and_nothing_is_removed_while_a_box_runs(apart: Box, running: subprocess.Popen[str]) -> None:
    user, before = apart.account, listed(apart.account)
    for words in (("--places", "home"), ("--uninstall",)):
        refused = apart.claudebox(*words, "--yes")
        assert (refused.returncode, refused.stderr.startswith("error: a box is running (process ")) == (125, True)
    assert listed(user) == before
    running.communicate("the end\n")
    # All is gone, wherever it was, and nothing else.
    removed = apart.claudebox("--uninstall", "--yes")
    assert (removed.returncode, removed.stderr) == (0, "")
    assert list(user.home.rglob("*claudebox*")) == []
    assert (user.home / "apart/a/config").is_dir()
    assert not Path(State(str(user.home)).directory).exists()


@pytest.fixture
def other(apart: Box) -> Iterator[Path]:
    """A directory of the user on another file system than the home."""
    place = Path("/home") / f"disk-{os.getpid()}"
    place.mkdir()
    os.chown(place, apart.account.uid, apart.account.gid)
    yield place
    shutil.rmtree(place)


@pytest.mark.root
def test_files_move_to_another_file_system(apart: Box, other: Path) -> None:
    user = apart.account
    assert other.stat().st_dev != user.home.stat().st_dev
    environ = dict.fromkeys(XDG, str(other))
    user.run("mkdir", "-m", "700", f"{user.home}/.claudebox")
    (user.home / "apart/a/config/claudebox/config.toml").rename(user.home / ".claudebox/config.toml")
    apart.sh("echo warm > ~/.cache/downloaded", options=("--cache", "project"))
    for word in ("xdg", "home"):
        done = apart.claudebox("--places", word, "--yes", env=environ)
        assert (done.returncode, done.stderr) == (0, "")
        assert (user.home / ".claudebox").exists() == (word == "home") != any(other.iterdir())
        assert (
            apart.sh("cat ~/.cache/downloaded; echo $FROM_SETTINGS", options=("--cache", "project")) == "warm\nread\n"
        )
