"""A box with --review shapes its layer against whoever reads and lands it: nothing outside of the project is written,
nothing is followed, nothing hangs."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from conftest import Account, Box, make_repository
from unit.overlay.world import picture

pytestmark = [pytest.mark.req("LAND-01"), pytest.mark.attributes]

REVIEW = ("--review",)
# Everything that an agent can make in a directory, and names that a terminal would obey.
SHAPES = r"""
import os, socket
os.mkfifo("fifo")
socket.socket(socket.AF_UNIX).bind("socket")
for name in (b"new\nline", b"esc\x1b[2J\x1b]0;owned\x07", b"\xff\xfe", b" ", b"-rf", "\u202egnp.exe".encode()):
    open(name, "w").write("x\n")
with open("sparse", "wb") as file:
    file.truncate(1 << 40)
here = os.getcwd()
for _ in range(600):
    os.mkdir("deep"); os.chdir("deep")
os.chdir(here)
os.makedirs("closed/inner"); open("closed/inner/file", "w").write("x\n")
os.chmod("closed/inner/file", 0); os.chmod("closed/inner", 0); os.chmod("closed", 0)
open("one", "w").write("x\n"); os.link("one", "two")
os.symlink("OUTSIDE", "way-out"); os.symlink("way-out/x", "further")
os.symlink("loop", "loop")
try:
    os.chmod("one", 0o6755)
except PermissionError:
    os.chmod("one", 0o755)
for path in (".git/x", "a/.git/config", "a/b/.GIT/config"):
    os.makedirs(os.path.dirname(path), exist_ok=True); open(path, "w").write("[core]\n\tfsmonitor = evil\n")
for number in range(3000):
    open(f"many-{number}", "w").close()
"""


@pytest.fixture
def outside(account: Account) -> Path:
    """A directory beside the project that has to stay as it is."""
    path = account.home / "outside"
    account.write(path / "precious", "precious\n")
    return path


def test_every_shape_is_read_and_landed(box: Box, outside: Path) -> None:
    done = box.inside("python3", "-c", SHAPES.replace("OUTSIDE", str(outside)), options=REVIEW)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stderr
    shown = box.claudebox("--review", "show")
    assert "\x1b" not in shown.stdout
    assert "esc\\x1b[2J" in shown.stdout
    landed = box.claudebox("--review", "land", "--land", "all")
    assert landed.returncode == 0, landed.stderr
    assert picture(outside) == {"precious": (stat.S_IFREG | 0o644, "precious\n")}
    project = box.project
    found = {name for name in os.listdir(project) if not name.startswith("many-")}
    assert "fifo" not in found
    assert "socket" not in found
    assert ".git" not in os.listdir(project / "a")
    assert os.readlink(project / "way-out") == str(outside)
    assert (project / "sparse").stat().st_blocks < 100
    assert (project / "one").stat().st_mode & 0o7777 == 0o755
    assert (project / "closed").stat().st_mode & 0o777 == 0
    assert (project / "many-2999").exists()
    done = box.claudebox("--review", "discard", "--yes")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in box.account.home.glob(".claudebox/instances/*/layers/*")] == ["last"]


SWAP = "mkdir sub; echo evil > sub/precious"


def test_directory_that_became_a_way_out_is_not_followed(box: Box, outside: Path) -> None:
    """The host, or another box, puts a symlink where the layer has a directory."""
    box.sh(SWAP, options=REVIEW)
    (box.project / "sub").symlink_to(outside)
    (upper,) = box.account.home.glob(".claudebox/instances/*/layers/1/upper")
    # Somebody who copies what the layer has writes through it.
    control = box.account.home / "control"
    control.mkdir()
    (control / "precious").write_text("control\n")
    naive = box.account.home / "naive"
    naive.mkdir()
    (naive / "sub").symlink_to(control)
    shutil.copytree(upper, naive, dirs_exist_ok=True)
    assert (control / "precious").read_text() == "evil\n"
    done = box.claudebox("--review", "land", "--land", "all")
    assert "conflict" in done.stderr
    assert (outside / "precious").read_text() == "precious\n"
    assert (box.project / "sub").is_symlink()


def test_bundle_from_a_hostile_repository_runs_nothing_here(box: Box) -> None:
    """Whatever the box's configuration of git names runs in a box without a network, or not at all."""
    account, project = box.account, box.project
    make_repository(account, project)
    script = f"""
    printf '#!/bin/sh\\ntouch {account.home}/ran {project}/ran; sleep 1\\n' > evil; chmod 755 evil
    git commit -q --allow-empty -m two
    git config core.fsmonitor "$PWD/evil"; git config uploadpack.packObjectsHook "$PWD/evil"
    git config core.alternateRefsCommand "$PWD/evil"; git config core.sshCommand "$PWD/evil"
    for hook in reference-transaction post-checkout; do cp evil .git/hooks/$hook; done
    """
    done = box.inside("sh", "-c", script, options=("--review", "--land", "safe"))
    assert done.returncode == 0, done.stderr
    assert "1 commit further" in done.stderr, done.stderr
    assert not (account.home / "ran").exists()
    assert not (project / "ran").exists()
    account.run("git", "status", cwd=project)
    assert not (account.home / "ran").exists()


# A tree with a file called `.git`, which git on this host would write there when it is checked out.
CORRUPT = """
import subprocess
def git(*words, data=b""):
    return subprocess.run(("git", *words), input=data, stdout=subprocess.PIPE, check=True).stdout.strip()
blob = git("hash-object", "-w", "--stdin", data=b"x")
tree = git("hash-object", "-t", "tree", "--literally", "-w", "--stdin",
           data=b"100644 .git\\0" + bytes.fromhex(blob.decode()))
commit = git("commit-tree", "-p", "HEAD", "-m", "evil", tree.decode())
git("update-ref", "refs/heads/evil", commit.decode())
"""


def test_object_that_git_warns_of_does_not_arrive(box: Box) -> None:
    account, project = box.account, box.project
    make_repository(account, project)
    done = box.inside("python3", "-c", CORRUPT, options=("--review", "--land", "safe"))
    assert done.returncode == 0, done.stderr
    assert "the commits stay in the layer" in done.stderr, done.stderr
    assert account.run("git", "for-each-ref", "refs/claudebox", cwd=project).stdout == ""


# A repository that has only a part of its objects asks another one for the rest: by a program, where that is allowed.
PLANT = r"""
set -e
cat > .git/plant <<END
#!/bin/sh
ln -s OUTSIDE /run/claudebox-out/objects
git -C $PWD hash-object -w more
END
chmod 755 .git/plant
git checkout -q -b more
echo more > more; git add more; git commit -qm more
blob=$(git rev-parse HEAD:more)
rm -f ".git/objects/$(echo $blob | cut -c1-2)/$(echo $blob | cut -c3-)"
git config core.repositoryFormatVersion 1
git config extensions.partialClone origin
git config remote.origin.url "ext::sh -c $PWD/.git/plant"
git config remote.origin.promisor true
git config protocol.ext.allow always
"""


def test_hole_in_the_bundle_does_not_fill_the_disk(box: Box) -> None:
    """Who makes the bundle longer while git writes it leaves a good one with a hole at its end."""
    account, project = box.account, box.project
    make_repository(account, project)
    script = PLANT.replace("ln -s OUTSIDE /run/claudebox-out/objects", "truncate -s 1T /run/claudebox-out/bundle.lock")
    box.inside("sh", "-c", script, options=REVIEW)
    done = box.claudebox("--review", "land", "--land", "safe", timeout=60)
    assert "the commits stay in the layer: git does not accept an object" in done.stderr, done.stderr
    assert (project / "more").read_text() == "more\n"
    assert not list(account.home.glob(".claudebox/instances/*/layers/*/o*"))


def test_link_beside_the_bundle_is_not_followed(box: Box, outside: Path) -> None:
    """Git packs the commits in a box, and runs there what its repository names: that may leave a symlink, too."""
    account, project = box.account, box.project
    make_repository(account, project)
    done = box.inside("sh", "-c", PLANT.replace("OUTSIDE", str(outside)), options=("--review", "--land", "safe"))
    assert done.returncode == 0, done.stderr
    assert "more: new, 1 commit" in done.stderr, "the program did not run"
    assert os.listdir(outside) == ["precious"]


def test_symlink_that_leaves_by_another_one_is_set_apart(box: Box, outside: Path) -> None:
    """Neither of them says so by its text: `up` leads to the project itself, and `outside` would be in it, too."""
    script = "mkdir deep; ln -s .. deep/up; ln -s deep/up/../../outside/precious key"
    done = box.inside("sh", "-c", script, options=("--review", "--land", "safe"))
    assert "key (a symlink that leaves the project)" in " ".join(done.stderr.split())
    assert not (box.project / "key").is_symlink()
    # They are a way out, if somebody lands both.
    assert box.claudebox("--review", "land", "--land", "all").returncode == 0
    assert (box.project / "key").read_text() == "precious\n"


@pytest.mark.parametrize("mode", ["300", "000"])
@pytest.mark.root_differs("nothing is closed for root")
def test_file_in_a_closed_directory_is_shown(box: Box, mode: str) -> None:
    """Whoever knows the name of a file runs it, though nobody can list its directory."""
    script = f"mkdir -p closed/inner; echo 'evil()' > closed/inner/evil; chmod {mode} closed/inner closed"
    box.inside("sh", "-c", script, options=REVIEW)
    for _ in range(2):
        assert "+evil()" in box.claudebox("--review", "show").stdout.splitlines()
    assert box.claudebox("--review", "land", "--land", "all").returncode == 0
    assert f"{(box.project / 'closed').stat().st_mode & 0o777:03o}" == mode
