"""Files that say what enters, in a real box: what a project's file takes away, asks for, and cannot do."""

from pathlib import Path

import pytest

from conftest import Box, git, make_repository
from terminal.pseudoterminal import CTRL_C, PLAIN, claudebox_terminal

pytestmark = pytest.mark.req("EXT-01")

FILE = ".claudebox.toml"
QUESTION = r"as long as the file stays as it is\? \[y/N\] "
START = r"Start\? .*\] "
WISH = 'extra_env_passthrough = ["WISHED"]\nmounts = [{ host = "~/notes" }]\n'
ENVIRON = {"WISHED": "granted"}
# What the box has of the wish.
PROBE = 'echo "${WISHED-nothing}"; cat ~/notes/today 2>/dev/null || echo nothing'
REFUSED = 125


@pytest.fixture
def notes(box: Box) -> Path:
    return box.account.write(box.account.home / "notes" / "today", "a note\n")


def says(box: Box, text: str) -> Path:
    return box.account.write(box.project / FILE, text)


def seen(box: Box, *options: str) -> list[str]:
    return box.sh(PROBE, options, env=ENVIRON).splitlines()


def answers(box: Box, answer: str) -> tuple[bool, list[str]]:
    """Whether the project's question came, and what the box then had."""
    box.account.write(box.project / "probe", f"({PROBE}) > seen")
    with claudebox_terminal(box, "--run", "sh", "probe", env={**PLAIN, **ENVIRON}) as opened:
        found = opened.read_until(f"{QUESTION}|{START}|as agreed")[0]
        is_asked = "stays as it is" in found
        if is_asked:
            opened.type(f"{answer}\n")
            found = opened.read_until(f"{START}|as agreed")[0]
        if "as agreed" not in found:
            opened.type("y\n")
        assert opened.wait() == 0
    return is_asked, (box.project / "seen").read_text().splitlines()


GRANTED, NOT_GRANTED = ["granted", "a note"], ["nothing", "nothing"]


# --- what counts at once


def test_hidden_file_and_directory_cannot_be_read(box: Box) -> None:
    box.account.write(box.project / ".env", "PASSWORD=hunter2\n")
    box.account.write(box.project / "private/deep/file", "hunter2\n")
    says(box, 'hide = [".env", "$HOME/src/shop/private"]')
    result = box.inside("sh", "-c", "cat .env private/deep/file; ls private; grep -r hunter2 .")
    assert "hunter2" not in result.stdout


# --- what needs a yes


def test_yes_option_is_no_yes_to_the_project(box: Box, notes: Path) -> None:
    says(box, WISH)
    assert seen(box) == NOT_GRANTED
    with claudebox_terminal(box, "--yes", "--run", "sh", "-c", PROBE, env={**PLAIN, **ENVIRON}) as opened:
        assert opened.wait() == 0
        text = opened.read_all()
    assert "stays as it is" not in text
    assert "nothing\r\nnothing\r\n" in text
    assert "nobody was asked yet" in text


def test_without_a_terminal_nothing_is_granted_and_nothing_remembered(box: Box, notes: Path) -> None:
    says(box, WISH)
    assert box.claudebox("--run", "true", env=ENVIRON).returncode == REFUSED
    assert not (box.account.home / ".claudebox/decisions").exists()
    assert "WISHED=" not in box.claudebox("--dry-run", "--run", "true", env=ENVIRON).stdout


def test_yes_is_remembered_until_the_file_changes(box: Box, notes: Path) -> None:
    says(box, WISH)
    assert answers(box, "y") == (True, GRANTED)
    assert answers(box, "") == (False, GRANTED)
    assert seen(box) == GRANTED
    says(box, WISH + "# another\n")
    assert seen(box) == NOT_GRANTED
    assert answers(box, "n") == (True, NOT_GRANTED)
    says(box, WISH)
    assert answers(box, "") == (False, GRANTED)


@pytest.mark.parametrize("answer", ["", "maybe"])
def test_no_is_remembered(box: Box, notes: Path, answer: str) -> None:
    says(box, WISH)
    assert answers(box, answer) == (True, NOT_GRANTED)
    assert answers(box, "") == (False, NOT_GRANTED)


def test_interrupted_question_is_no_answer(box: Box, notes: Path) -> None:
    says(box, WISH)
    with claudebox_terminal(box, "--run", "touch", "started", env=PLAIN) as opened:
        opened.answer(QUESTION, CTRL_C)
        assert opened.wait() == 130
    assert not (box.account.home / ".claudebox/decisions").exists()
    assert not (box.project / "started").exists()


def test_file_swapped_during_the_question_gains_nothing(box: Box, notes: Path) -> None:
    """As another box of the same project could do it, while the user reads."""
    says(box, 'env = { HARMLESS = "1" }')
    box.account.write(box.project / "probe", f"({PROBE}; echo $HARMLESS) > seen")
    with claudebox_terminal(box, "--run", "sh", "probe", env={**PLAIN, **ENVIRON}) as opened:
        opened.read_until(QUESTION)
        swapped = box.account.write(box.project / "new", WISH)
        swapped.rename(box.project / FILE)
        opened.type("y\n")
        opened.answer(START, "y\n")
        assert opened.wait() == 0
    assert (box.project / "seen").read_text().splitlines() == [*NOT_GRANTED, "1"]
    assert seen(box) == NOT_GRANTED


# --- what the agent can do about it


def test_file_stays_as_it_is(box: Box) -> None:
    attacks = (
        f"echo x >> {FILE}",
        f"rm -f {FILE}",
        f"mv {FILE} old",
        f"echo x > new; mv -f new {FILE}",
        f"ln -sf README.md {FILE}",
        f"chmod 666 {FILE}",
        f"truncate -s 0 {FILE}",
        f"umount {FILE}",
        "mv ../shop ../old",
        f"mount --bind README.md {FILE}",
    )
    path = says(box, 'hide = ["x"]\n')
    before = path.stat()
    assert box.sh("; ".join(f"({attack}) && echo '{attack}'" for attack in attacks) + "; true") == ""
    assert path.read_text() == 'hide = ["x"]\n'
    after = path.lstat()
    assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (before.st_ino, before.st_mode, before.st_mtime_ns)


def test_planted_file_gains_nothing(box: Box, notes: Path) -> None:
    """An agent in a project without such a file can make one."""
    box.sh(f"cat > {FILE} << 'END'\n{WISH}END")
    assert seen(box) == NOT_GRANTED


def test_linked_worktree_has_its_own_file(box: Box) -> None:
    account = box.account
    for name in ("here", "there"):
        account.write(box.project / name, name)
    account.write(box.project / FILE, 'hide = ["here"]')
    make_repository(account, box.project)
    tree = account.home / "src/tree"
    git(account, box.project, "worktree", "add", "-q", str(tree))
    account.write(tree / FILE, 'hide = ["there"]')
    box.project = tree
    assert box.sh("for name in here there; do cat $name 2>/dev/null || echo hidden; done") == "herehidden\n"


@pytest.mark.req("EXT-03")
def test_profile_from_file_to_box(box: Box, notes: Path) -> None:
    account = box.account
    account.write(
        account.home / ".claudebox/profiles/work.json",
        '{"extra_env_passthrough": ["WISHED"], "mounts": [{"host": "~/notes", "sandbox": "/opt/notes"}]}',
    )
    probe = 'echo $WISHED; cat /opt/notes/today; touch /opt/notes/x 2>/dev/null || echo "read-only"'
    assert box.sh(probe, ("--profile", "work"), env=ENVIRON) == "granted\na note\nread-only\n"


@pytest.mark.req("EXT-03")
def test_profiles_are_listed_for_people(box: Box) -> None:
    box.account.write(box.account.home / ".claudebox/profiles/play.toml", 'description = "for play"')
    result = box.claudebox("--profile")
    assert result.returncode == 0
    assert "for play" in result.stdout
    assert "aws-readonly" in result.stdout
