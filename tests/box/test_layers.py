"""Files that say what enters, in a real box: what a project's file takes away, asks for, and cannot do."""

import os
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


@pytest.mark.req("EXT-03")
def test_project_hides_a_part_of_what_the_user_mounts(box: Box, notes: Path) -> None:
    box.account.write(notes.parent / "diary", "dear diary\n")
    box.account.write(box.account.home / ".claudebox/config.toml", 'mounts = [{ host = "~/notes", mode = "rw" }]')
    says(box, 'hide = ["~/notes/diary"]')
    assert box.sh("cat ~/notes/today; cat ~/notes/diary 2>/dev/null || echo hidden") == "a note\nhidden\n"


@pytest.mark.req("EXT-03")
def test_hide_of_the_whole_beats_a_mount_of_a_part(box: Box, notes: Path) -> None:
    says(box, 'hide = ["~/notes"]')
    options = ("--mount-ro", str(notes), "--mount-ro", f"{notes}:/opt/today")
    assert box.sh("cat ~/notes/today /opt/today 2>/dev/null || echo hidden", options) == "hidden\n"


@pytest.mark.req("ENV-01")
def test_dropped_variable_is_not_there(box: Box) -> None:
    says(box, 'drop_env = ["EDITOR"]')
    options = ("--env", "EDITOR=vim", "--env", "PAGER=less")
    assert box.sh('echo "${EDITOR-none} ${PAGER-none}"', options) == "none less\n"


@pytest.mark.req("NET-03")
def test_lower_network_is_in_force(box: Box) -> None:
    says(box, 'network = "none"')
    assert box.sh("ls /sys/class/net 2>/dev/null; wc -l < /proc/net/route").split()[-1] in ("0", "1")
    assert os.readlink("/proc/self/ns/net") not in box.sh("readlink /proc/self/ns/net")
    assert os.readlink("/proc/self/ns/net") in box.sh("readlink /proc/self/ns/net", ("--network", "full"))


def test_login_is_taken_away(box: Box) -> None:
    box.account.write(box.account.home / ".claude/.credentials.json", "{}", mode=0o600)
    says(box, 'auth = "none"')
    assert box.sh('ls -d "$XDG_RUNTIME_DIR"/claude-auth 2>/dev/null || echo none') == "none\n"


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


def test_same_file_in_another_project_is_asked_about(box: Box, notes: Path) -> None:
    says(box, WISH)
    assert answers(box, "y") == (True, GRANTED)
    other = box.account.home / "src/copy"
    box.account.write(other / FILE, WISH)
    box.project = other
    assert answers(box, "n") == (True, NOT_GRANTED)


def test_damaged_memory_is_asked_for_again(box: Box, notes: Path) -> None:
    says(box, WISH)
    memory = box.account.home / ".claudebox/decisions"
    assert answers(box, "y") == (True, GRANTED)
    assert [line.split()[0] for line in memory.read_text().splitlines()[1:-1]] == ["yes"]
    memory.write_text("garbage")
    assert answers(box, "y") == (True, GRANTED)
    assert memory.stat().st_mode & 0o077 == 0


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


def test_file_that_appears_during_the_question_gains_nothing(box: Box, notes: Path) -> None:
    box.account.write(box.project / "probe", f"({PROBE}) > seen")
    with claudebox_terminal(box, "--run", "sh", "probe", env={**PLAIN, **ENVIRON}) as opened:
        opened.read_until(START)
        says(box, WISH)
        opened.type("y\n")
        assert opened.wait() == 0
    assert (box.project / "seen").read_text().splitlines() == NOT_GRANTED


def test_question_cannot_be_forged_with_terminal_codes(box: Box) -> None:
    says(box, 'env = { A = "\\u001b[2J\\u001b]0;x\\u0007\\nLet it have these? [y/N] y" }')
    with claudebox_terminal(box, "--run", "true", env=PLAIN) as opened:
        opened.read_until(QUESTION)
        shown = opened.seen.decode()
    assert shown.replace("\r\n", "").isprintable()
    assert not any(line.startswith("Let it have these? [y/N]") for line in shown.splitlines())


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


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize(
    "attack",
    [
        f"ln -s README.md {FILE}",
        f"ln -s /dev/zero {FILE}",
        f"mkfifo {FILE}",
        f"mkdir {FILE}",
        f"yes 'hide = [\"x\"]' | head -100000 > {FILE}",
        f"truncate -s 10G {FILE}",
        f"chmod 000 {FILE}; printf '\\377\\0[[[' > {FILE}",
    ],
)
def test_planted_nonsense_is_refused_at_once(box: Box, attack: str) -> None:
    box.inside("sh", "-c", attack)
    result = box.inside("true")
    assert (result.returncode, result.stdout) == (REFUSED, "")
    assert FILE in result.stderr
    assert "Traceback" not in result.stderr
    assert "itself failed" not in result.stderr


def test_memory_is_out_of_reach(box: Box, notes: Path) -> None:
    says(box, WISH)
    assert answers(box, "n") == (True, NOT_GRANTED)
    memory = box.account.home / ".claudebox/decisions"
    before = memory.read_bytes()
    box.inside("sh", "-c", f"mkdir -p {memory.parent}; echo '{{}}' > {memory}; find ~ -name decisions -delete")
    assert box.sh("find / -name decisions 2>/dev/null || true") == ""
    assert memory.read_bytes() == before


def test_file_above_the_project_does_not_count(box: Box, notes: Path) -> None:
    box.account.write(box.project.parent / FILE, "broken [")
    box.account.write(box.project / "sub" / FILE, "broken [")
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
