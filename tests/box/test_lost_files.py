"""What a box writes outside of the project is gone with it, and a line at the end says so."""

from __future__ import annotations

import pytest

from conftest import Box, make_repository

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
