"""Home and /tmp of the box are in memory, with a bound; what was written there is gone with it, and a line says so."""

import json

import pytest

from conftest import Account, Box, make_repository

pytestmark = pytest.mark.req("WORK-01")

GONE = "claudebox: written outside of the project, and gone with the box:"
PATIENCE = 60


def told(box: Box, script: str, *options: str, status: int = 0) -> str:
    """What is said about it, on one line."""
    done = box.inside("sh", "-c", script, options=("--quiet", *options), timeout=PATIENCE)
    assert done.returncode == status, done.stderr
    return " ".join(done.stderr.split())


def test_notes_in_the_home_are_named(shop: Box) -> None:
    script = "echo a >~/notes; mkdir ~/plans && touch ~/plans/a ~/plans/b; echo alias >>~/.zshrc; mkdir ~/empty"
    assert told(shop, script) == f"{GONE} ~/.zshrc, ~/notes, ~/plans (2 files)"


@pytest.mark.git
def test_worktree_beside_the_project_is_named(shop: Box) -> None:
    make_repository(shop.account, shop.project)
    assert f"{GONE} ~/src/x (2 files)" in told(shop, "/usr/bin/git worktree add -q ../x")


def test_nothing_is_said_where_nothing_is_lost(shop: Box) -> None:
    script = """touch made /tmp/x /var/tmp/x ~/.bash_history
        for place in .cache/pip .config/configstore .local/bin go/pkg/sumdb; do
            mkdir -p ~/$place && touch ~/$place/file || exit 1
        done"""
    assert told(shop, script) == ""
    assert told(shop, script, "--cache", "project") == ""


def test_settings_of_git_that_were_made_for_the_box_count_when_they_change(shop: Box) -> None:
    assert told(shop, "echo '[alias]' >>~/.gitconfig") == f"{GONE} ~/.gitconfig"


def test_status_of_the_program_stays(shop: Box) -> None:
    assert told(shop, "touch ~/notes; exit 7", status=7) == f"{GONE} ~/notes"


@pytest.mark.req("UX-01")
def test_no_name_writes_on_the_screen(shop: Box) -> None:
    done = shop.inside("sh", "-c", "cd; touch \"$(printf 'a\\033[2Jb\\nclaudebox: fine')\"", options=("--quiet",))
    assert "\x1b" not in done.stderr
    assert "a\\x1b[2Jb\\nclaudebox:" in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_links_pipes_and_locked_directories_are_not_followed(shop: Box) -> None:
    script = "cd; ln -s / root; mkfifo pipe; mkdir -p locked/in; touch locked/in/a; chmod 0 locked; ln -s /usr .local"
    assert told(shop, script) == f"{GONE} ~/.local, ~/locked, ~/pipe and 1 more"


def test_many_files_and_deep_directories_have_an_end(shop: Box) -> None:
    shop.account.write(
        shop.project / "fill.py",
        """
import os
os.chdir(os.path.expanduser("~"))
for number in range(300):
    os.mkdir("deep")
    os.chdir("deep")
open("bottom", "w")
os.chdir(os.path.expanduser("~"))
os.mkdir("many")
os.chdir("many")
for number in range(60_000):
    os.close(os.open(str(number), os.O_CREAT))
""",
    )
    text = told(shop, "/usr/bin/python3 fill.py")
    assert text.startswith(GONE)
    assert "~/many" in text
    assert text.endswith("and more")


def test_project_and_mounts_in_the_home_do_not_count(shop: Box) -> None:
    shop.account.write(shop.account.home / "other" / "file")
    assert told(shop, "touch made ~/other/made", "--mount-rw", str(shop.account.home / "other")) == ""
    assert (shop.account.home / "other" / "made").exists()


# Home and /tmp of the box are in memory, and large work in them does not eat all of it.


BOUND = 16 << 20
FILL = """
import errno, os, sys
for place in sys.argv[1:]:
    written = 0
    try:
        with open(os.path.expanduser(place) + "/large", "wb", buffering=0) as file:
            while written < 64 << 20:
                written += file.write(bytes(1 << 20))
        print(place, "is not full")
    except OSError as error:
        print(place, errno.errorcode[error.errno], written <= int(os.environ["BOUND"]))
"""


def test_more_than_the_bound_is_no_space_left(box: Box, account: Account) -> None:
    account.write(box.project / "fill.py", FILL)
    places = ("~", "/tmp", "/var/tmp", "/dev/shm", "$XDG_RUNTIME_DIR")
    script = f"BOUND={BOUND} /usr/bin/python3 fill.py {' '.join(places)}; touch /dev/large"
    done = box.inside("sh", "-c", script, options=("--tmp-size", "16M"))
    assert [line.split()[1:] for line in done.stdout.splitlines()] == [["ENOSPC", "True"]] * 5, done.stdout
    assert "Read-only file system" in done.stderr  # what has no bound cannot be written


def test_without_a_word_each_holds_a_quarter_of_the_memory(box: Box) -> None:
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) << 10
    seen = [int(word) for word in box.sh("stat -f -c '%b %S' ~ /tmp").split()]
    sizes = {seen[0] * seen[1], seen[2] * seen[3]}
    assert all(abs(size - memory // 4) < 1 << 20 for size in sizes)


def test_audit_tells_the_bound(box: Box) -> None:
    audit = json.loads(box.claudebox("--audit", "--json", "--tmp-size", "2G", "--run", "true").stdout)
    assert {mount["path"]: mount["size"] for mount in audit["mounts"] if "size" in mount}["/tmp"] == 2 << 30
    text = " ".join(box.claudebox("--audit", "--tmp-size", "2G", "--run", "true").stdout.split())
    assert "in memory, at most: /tmp 2G, /dev/shm 512M" in text, text


def test_bound_beyond_every_number_is_none(box: Box) -> None:
    assert box.inside("true", options=("--tmp-size", "99999999T")).returncode == 0
