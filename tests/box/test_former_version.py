"""A home that claudebox 0.2.0 left: what is in ~/.claudebox counts as before; with files elsewhere nothing starts."""

import json
import os
import time
from pathlib import Path

import pytest

from claudebox.host.tree import sha256
from conftest import Account, Box
from running.needs import needed
from terminal.pseudoterminal import PLAIN, claudebox_terminal

REFUSED = 125
SECRET = "cAnArY7x9hunter2"
WISH = 'extra_env_passthrough = ["WISHED"]\n'
SYSTEM = ("*", "etc/*", "etc/*/*")
OPTIONS = ("--review", "--cache", "project")
# What 0.2.0 wrote, with NAME for the state of the project and HOME for the home.
KEPT = {
    "config.toml": 'network = "full"\nauth = "none"\n',
    "profiles/mine.toml": 'extra_env_passthrough = ["OF_PROFILE"]\n',
    "decisions": (
        "What you said about settings of projects. Remove this file to be asked again. (format 1)\nyes DECIDED\nend\n"
    ),
    "instances/NAME/project": "HOME/src/shop\n",
    "instances/NAME/writable-NAME": "HOME/src/shop\n",
    "instances/NAME/masked": (
        "Files that boxes saw with made-up values. (format 2)\n"
        "INODE\tvalues\tvariables of the program\tHOME/src/shop/env.old\n"
        "end\n"
    ),
    "instances/NAME/decoys": (
        "The key with which made-up values are drawn. No box sees it. (format 1)\n"
        "key 4435c056e911c9c3480813904a5ffece15ef121940d18ef719d6d6b15d3774dc\n"
        "weak f5615a75b49c2d96cdb0adcabd777d9a\n"
        "end\n"
    ),
    "instances/NAME/cache/cache/warm": "warm\n",
    "instances/NAME/layers/last": "1",
    "instances/NAME/layers/1/upper/new": "by the agent\n",
    "instances/NAME/agreed": (
        "What you agreed to: claudebox asks when a box has more. Remove this file to be asked again. (format 1)\n"
        "\n"
        "runs command\n"
        "network full\n"
        "SYSTEM"
        "layer HOME/src/shop\n"
        "variable HOME from box\n"
        "variable USER from box\n"
        "variable SHELL from box\n"
        "variable PATH from box\n"
        "variable TMPDIR from box\n"
        "variable XDG_RUNTIME_DIR from box\n"
        "variable TERM from allowed\n"
        "variable LANG from allowed\n"
        "variable SSL_CERT_FILE from certificates\n"
        "variable NIX_SSL_CERT_FILE from certificates\n"
        "variable WISHED from .claudebox.toml\n"
        "note git: no identity found: commits are by claudebox <claudebox@localhost>\n"
        "\n"
        "end\n"
    ),
}


@pytest.fixture
@needed("box")
def box(user: Account) -> Box:
    project = user.write(user.home / "src/shop/README.md", "a shop\n").parent
    user.write(project / ".claudebox.toml", WISH)
    user.write(project / ".env", f"PORT=3000\nDB_PASSWORD={SECRET}\n")
    user.environ |= {"WISHED": "granted", "OF_PROFILE": "read"}
    return Box(user, project)


@pytest.fixture
def kept(box: Box) -> Path:
    """The state of 0.2.0. A masked file has another name now: what is in it tells."""
    user, state = box.account, box.account.home / ".claudebox"
    moved = user.write(box.project / "notes.txt", f"DB_PASSWORD={SECRET}\n")
    words = {
        "NAME": sha256(str(box.project).encode())[:16],
        "DECIDED": sha256(f"{box.project}\0{WISH}".encode()),
        "INODE": str(moved.stat().st_ino),
        # More than any host has: what was agreed to and is not there is no news.
        "SYSTEM": "".join(
            f"ro {path}\n" for path in ("/proc/sys", *(each for one in SYSTEM for each in Path("/").glob(one)))
        ),
    }
    for name, text in KEPT.items():
        for word, value in words.items():
            name, text = name.replace(word, value), text.replace(word, value)
        # Lines begin with a variable of this name, too.
        user.write(state / name, text.replace("HOME/", f"{user.home}/"), mode=0o600)
    layer = state / "instances" / words["NAME"] / "layers/1"
    user.own(layer.parent)
    note = {"form": 1, "project": str(box.project), "git": "", "places": [""], "known": {}}
    note |= {"since": time.time_ns(), "inode": box.project.stat().st_ino}
    user.write(layer / "note", json.dumps(note), mode=0o600)
    for name in ("work", "decoys"):
        (layer / name).mkdir()
        user.own(layer / name)
    os.mkfifo(layer / "lock", 0o600)
    os.mkfifo(state / "masks.lock", 0o600)
    for path in (state, *state.rglob("*")):
        if path.is_dir() and "upper" not in path.parts:
            path.chmod(0o700)
    user.own(state)
    return state


@pytest.mark.attributes
@pytest.mark.req("STATE-01", "INST-01", "LAND-01", "SEC-01")
def test_what_0_2_0_kept_in_the_home_counts_as_before(box: Box, kept: Path) -> None:
    """Instances, agreements, decisions, profiles, masks, decoys, caches and a kept review: not a word about it."""
    probe = "cat new .env notes.txt ~/.cache/warm; echo $WISHED ${OF_PROFILE-nothing}"
    with claudebox_terminal(box, *OPTIONS, "--run", "sh", "-c", probe, env=PLAIN) as opened:
        said = opened.read_until(r"Land, .*\] |Start\? .*\] |stays as it is")[0]
        assert said.startswith("Land"), opened.seen.decode()
        opened.type("k\n")
        assert opened.wait() == 0
        assert "as agreed" in opened.seen.decode()
        shown = opened.seen.decode()
    assert "by the agent" in shown
    assert "goes on with what was kept as review 1" in shown
    assert SECRET not in shown
    assert shown.count("DB_PASSWORD=") == 2
    assert "warm" in shown
    assert "granted nothing" in shown
    assert box.sh("echo $OF_PROFILE", options=("--review", "off", "--profile", "mine")) == "read\n"
    listed = json.loads(box.claudebox("--instances", "--json").stdout)
    assert [(one["project"], len(one["reviews"])) for one in listed["instances"]] == [(str(box.project), 1)]
    assert {one["name"]: one["is_users"] for one in listed["others"]}.items() >= {
        *(("config.toml", True), ("profiles", True), ("decisions", False), ("masks.lock", False)),
    }
    assert "1 added" in box.claudebox("--review", "list").stdout
    assert box.claudebox("--review", "land", "--land", "all").returncode == 0
    assert (box.project / "new").read_text() == "by the agent\n"


NOTE = """\
Where claudebox keeps its files, whatever the variables say now. To see and to move them: --places (format 1)
configuration {home}/.config/claudebox
state {home}/.local/state/claudebox
cache {home}/.cache/claudebox
end
"""


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("words", [("--run", "touch", "started"), ("--audit",), ("--instances",), ("--uninstall",)])
def test_nothing_starts_while_the_files_are_where_0_2_0_put_them(box: Box, words: tuple[str, ...]) -> None:
    """The settings there would not count: the box could be a weaker one."""
    user = box.account
    user.write(user.home / ".config/claudebox/config.toml", 'network = "none"\n')
    user.write(user.home / ".local/state/claudebox/places", NOTE.format(home=user.home))
    before = sorted(user.home.rglob("*"))
    done = box.claudebox("--yes", *words)
    assert (done.returncode, done.stdout) == (REFUSED, "")
    assert "Moving to ~/.claudebox" in done.stderr
    assert sorted(user.home.rglob("*")) == before


@pytest.mark.req("FAIL-01")
def test_nothing_starts_while_there_are_settings_that_nobody_reads(box: Box) -> None:
    user = box.account
    other = user.write(user.home / ".config/claudebox/config.toml", 'network = "none"\n')
    refused = box.inside("touch", "started")
    assert (refused.returncode, "is not read" in " ".join(refused.stderr.split())) == (REFUSED, True)
    assert not (box.project / "started").exists()
    # Some people keep their files there, and link to them.
    user.run("mkdir", "-m", "700", f"{user.home}/.claudebox")
    user.run("ln", "-s", str(other), f"{user.home}/.claudebox/config.toml")
    assert box.inside("true").returncode == 0
