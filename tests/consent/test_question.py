"""The question comes once, and again when a box would have more than was agreed to."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from conftest import Account, Box
from terminal.pseudoterminal import PLAIN, claudebox_path, claudebox_terminal, terminal

REFUSED = 125
SECRET = {"ANTHROPIC_API_KEY": "sk-ant-api03-0123456789abcdef"}
NEW = "New since you agreed"
FIRST = ": a box around "
pytestmark = pytest.mark.req("UX-02")


@pytest.fixture
def with_claude(account: Account) -> dict[str, str]:
    """An environment in which a stand-in for claude is found: then the box has a state of its own."""
    fake = account.write(account.home / "opt" / "claude", "#!/bin/sh\necho claude: $#\n", mode=0o755)
    return {**PLAIN, "PATH": f"{fake.parent}:{account.environ['PATH']}"}


def answer(box: Box, *options: str, keys: str = "\n", env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Start at a terminal and answer the question, which has to come. The exit status, and what was on the screen."""
    with claudebox_terminal(box, *options, "--run", "true", env={**PLAIN, **(env or {})}) as opened:
        opened.read_until(r"^Start\? \[(Y/n|y/N)\] ")
        opened.type(keys)
        return opened.wait(), opened.read_all()


def unasked(box: Box, *options: str, env: Mapping[str, str] | None = None) -> str:
    """Start at a terminal where no question has to come. What was on the screen."""
    with claudebox_terminal(box, *options, "--run", "echo", "started", env={**PLAIN, **(env or {})}) as opened:
        opened.read_until("^started")
        assert opened.wait() == 0
        return opened.read_all()


def news_of(screen: str) -> str:
    """What the user is told to be new, next to the question."""
    before, heading, after = screen.partition(NEW)
    assert heading, before
    return after.partition("(?")[0].partition("(--audit")[0]


def agreed_files(box: Box) -> list[Path]:
    return list(box.account.home.glob(".claudebox/instances/*/agreed"))


def test_second_start_is_one_line_and_no_question(box: Box) -> None:
    status, first = answer(box)
    assert status == 0
    assert FIRST in first
    assert NEW not in first
    screen = unasked(box)
    one_line, started = screen.splitlines()
    assert one_line.startswith("claudebox: as agreed: ")
    assert (len(one_line) <= 80, started) == (True, "started")


def test_it_is_the_same_with_claude_in_the_box(box: Box, with_claude: dict[str, str]) -> None:
    for words in ((), ("-p", "something else")):
        with claudebox_terminal(box, *words, env=with_claude) as opened:
            if not words:
                opened.read_until(r"^Start\? \[Y/n\] ")
                opened.type("\n")
            opened.read_until(f"^claude: {1 + len(words)}")
            assert opened.wait() == 0
            assert ("Start?" in opened.read_all()) == (not words)


def test_no_is_not_remembered(box: Box) -> None:
    assert answer(box, keys="n\n")[0] == REFUSED
    assert agreed_files(box) == []
    assert answer(box)[0] == 0


def test_new_mount_is_asked_about_and_shown(box: Box) -> None:
    box.account.write(box.account.home / "docs" / "x")
    answer(box)
    option = ("--mount-ro", str(box.account.home / "docs"))
    status, screen = answer(box, *option)
    assert status == 0
    assert news_of(screen).split() == ["--mount-ro", "ro", "~/docs"]
    unasked(box, *option)
    unasked(box)


def test_no_to_what_is_new_leaves_the_rest_agreed(box: Box) -> None:
    answer(box)
    assert answer(box, "--env", "A=1", keys="n\n")[0] == REFUSED
    unasked(box)
    answer(box, "--env", "A=1")


def test_new_secret_wants_a_yes_and_an_old_one_does_not(box: Box) -> None:
    answer(box)
    assert answer(box, env=SECRET)[0] == REFUSED
    status, screen = answer(box, env=SECRET, keys="y\n")
    assert status == 0
    assert "ANTHROPIC_API_KEY (secret, not shown)" in news_of(screen)
    assert "! ANTHROPIC_API_KEY: enters and looks secret" in news_of(screen)
    screen = unasked(box, env=SECRET)
    assert "1 warning" in screen
    assert len(screen.splitlines()[0]) <= 80
    # Enter is enough for something harmless beside it.
    status, screen = answer(box, "--env", "A=1", env=SECRET)
    assert (status, "ANTHROPIC" in news_of(screen)) == (0, False)


def test_wider_network_is_asked_about(box: Box) -> None:
    answer(box, "--network", "none")
    unasked(box, "--network", "none")
    assert "the host's network" in news_of(answer(box)[1])
    unasked(box, "--network", "none")


def test_part_that_was_read_only_is_asked_about(box: Box) -> None:
    box.account.write(box.project / "docs" / "x")
    answer(box, "--mount-ro", "docs")
    assert news_of(answer(box)[1]).split() == ["now", "writable", f"~/{box.project.relative_to(box.account.home)}/docs"]


@pytest.mark.req("UX-03")
def test_yes_option_remembers_nothing(box: Box) -> None:
    assert FIRST in unasked(box, "--yes")
    assert agreed_files(box) == []
    answer(box)


@pytest.mark.req("UX-03")
def test_yes_option_shows_what_is_new_and_one_line_if_nothing_is(box: Box) -> None:
    answer(box)
    assert unasked(box, "--yes").splitlines()[1:] == ["started"]
    screen = unasked(box, "--yes", "--env", "A=1")
    assert (FIRST in screen, "A=1" in news_of(screen)) == (False, True)
    answer(box, "--env", "A=1")


@pytest.mark.req("UX-03")
def test_another_command_is_one_line_for_who_says_yes_in_advance(box: Box) -> None:
    with claudebox_terminal(box, "--shell", env=PLAIN) as opened:
        opened.read_until(r"^Start\? \[Y/n\] ")
        opened.type("\nexit\n")
        assert opened.wait() == 0
    line, output = unasked(box, "--yes").splitlines()
    assert (line.endswith("; another command (--audit)"), output) == (True, "started")
    assert "A=1" in news_of(unasked(box, "--yes", "--env", "A=1"))


def test_what_is_new_is_shown_alone(box: Box) -> None:
    answer(box)
    context, heading, new, how_to_see_all, question = answer(box, "--env", "A=1")[1].splitlines()
    assert context.startswith("claudebox: ")
    assert "network full" in context
    assert (heading, new.split()) == (NEW, ["--env", "A=1"])
    assert how_to_see_all == "(? lists every variable, path and rule; so does --audit)"
    assert question == "Start? [Y/n] "


@pytest.mark.req("UX-01", "UX-03")
def test_without_a_terminal_the_short_screen_says_how_to_see_all_and_what_would_leave_it_out(box: Box) -> None:
    words = ("--run", "true")
    notes = [option for number in range(30) for option in ("--env", f"MISSING_{number}")]
    shown = box.claudebox("--yes", *notes, *words).stderr
    head, *rows = box.claudebox("--yes", *words).stderr.splitlines()
    assert "a box around" in head
    assert len(rows) < 24
    assert shown.endswith("\n(--audit lists every variable, path and rule; --quiet leaves this out)\n")
    assert [number for number in range(30) if f"MISSING_{number}: asked for by --env" not in shown] == []


@pytest.mark.parametrize("option", ["--quiet", "-q"])
def test_quiet_says_nothing_where_nothing_is_asked(box: Box, option: str) -> None:
    for first in (("--yes",), ()):
        if not first:
            # A question without what it is about would be no question.
            assert FIRST in answer(box, option)[1]
        assert unasked(box, option, *first) == "started\r\n"
    done = box.claudebox("--yes", option, "--env", "A=1", "--run", "echo", "started")
    assert (done.stdout, done.stderr) == ("started\n", "")


def test_quiet_start_still_tells_what_looks_secret_and_nobody_agreed_to(box: Box) -> None:
    done = box.claudebox("--yes", "--quiet", "--run", "true", env=SECRET)
    assert done.stderr == "claudebox: ANTHROPIC_API_KEY: enters and looks secret (its name says so)\n"
    refused = box.claudebox("--quiet", "--run", "true")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (
        REFUSED,
        "error: there is no terminal to ask on, and nobody said yes",
    )


def test_without_a_terminal_only_what_was_agreed_to_starts(box: Box) -> None:
    refused = box.claudebox("--run", "touch", "started")
    assert (refused.returncode, (box.project / "started").exists()) == (REFUSED, False)
    answer(box)
    unseen = {"TERM": "dumb"}  # the same variables as at the terminal
    done = box.claudebox("--run", "echo", "started", env=unseen)
    assert (done.returncode, done.stdout) == (0, "started\n")
    assert done.stderr.startswith("claudebox: as agreed: ")
    more = box.claudebox("--env", "A=1", "--run", "touch", "started", env=unseen)
    assert (more.returncode, (box.project / "started").exists()) == (REFUSED, False)
    assert "there is no terminal to ask on" in more.stderr


def test_copy_of_the_project_is_asked_about(box: Box) -> None:
    answer(box)
    copy = box.account.home / "src" / "copy"
    box.account.write(copy / "README.md", "a shop\n")
    _, screen = answer(Box(box.account, copy))
    assert NEW not in screen


@pytest.mark.parametrize("damage", ["nothing", "half", "garbage", "symlink", "pipe"])
def test_damaged_file_means_that_nothing_was_agreed(box: Box, damage: str) -> None:
    answer(box)
    (file,) = agreed_files(box)
    content = file.read_text()
    if damage in ("nothing", "half", "garbage"):
        file.write_text({"nothing": "", "half": content[: len(content) // 2], "garbage": "\0x\n"}[damage])
    else:
        file.unlink()
        replace(box.account, file, damage, content)
    status, screen = answer(box)
    assert (status, NEW in screen) == (0, False)
    unasked(box)


@pytest.mark.box
def test_unreadable_file_means_that_nothing_was_agreed(user: Account) -> None:
    """Root can read everything."""
    project = user.home / "src" / "shop"
    user.write(project / "README.md")
    box = Box(user, project)
    answer(box)
    agreed_files(box)[0].chmod(0)
    status, screen = answer(box)
    assert (status, NEW in screen) == (0, False)
    unasked(box)


def replace(account: Account, file: Path, kind: str, content: str) -> None:
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to(account.write(account.home / "elsewhere", content))
    os.lchown(file, account.uid, account.gid)


def test_file_is_for_the_user_alone_and_can_be_read(box: Box) -> None:
    answer(box, "--env", "COLOUR=purple")
    (file,) = agreed_files(box)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.stat().st_uid == box.account.uid
    assert file.parent.stat().st_mode & 0o777 == 0o700
    lines = file.read_text().splitlines()
    assert "variable COLOUR from --env" in lines
    assert f"rw {box.project}" in lines
    assert "purple" not in file.read_text()
    assert (file.parent / "project").read_text() == f"{box.project}\n"


def test_where_nothing_can_be_kept_every_start_is_asked_about(box: Box) -> None:
    box.account.write(box.account.home / ".claudebox")
    for _ in range(2):
        assert answer(box)[0] == 0


def test_audit_and_dry_run_remember_nothing(box: Box) -> None:
    for mode in ("--audit", "--dry-run"):
        assert box.claudebox(mode, "--run", "true").returncode == 0
    assert agreed_files(box) == []


def test_log_instead_of_a_screen_is_enough_for_what_was_agreed_to(box: Box) -> None:
    answer(box)
    box.account.write(box.project / "script", f"'{claudebox_path()}' --run touch started 2> log\n")
    with terminal(box.account, "sh", "script", cwd=box.project, env=PLAIN) as opened:
        assert opened.wait() == 0
    assert (box.project / "started").exists()


def test_stricter_box_is_offered_once(box: Box, account: Account) -> None:
    offer = "claudebox --setup offers a stricter box"
    assert offer in answer(box)[1]
    other = account.home / "src" / "other"
    account.write(other / "README.md")
    assert offer not in answer(Box(account, other))[1]
