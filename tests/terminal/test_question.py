"""The one question before the box starts, and what each answer does."""

import os
from collections.abc import Mapping

import pytest

from conftest import Box
from terminal.pseudoterminal import (
    CTRL_C,
    CTRL_D,
    PLAIN,
    ROWS,
    claudebox_path,
    claudebox_terminal,
    shell_terminal,
    terminal,
)

SECRET = {"ANTHROPIC_API_KEY": "sk-ant-api03-0123456789abcdef"}
REFUSED, INTERRUPTED = 125, 130


def ask(box: Box, answer: str, env: Mapping[str, str | None] | None = None) -> tuple[int, bool]:
    """The exit status, and whether the program was started."""
    (box.project / "started").unlink(missing_ok=True)
    with claudebox_terminal(box, "--run", "touch", "started", env={**PLAIN, **(env or {})}) as opened:
        # The capital letter is what Enter means.
        opened.answer(rf"^Start\? \[{'y/N' if env else 'Y/n'}\] ", answer)
        status = opened.wait()
        assert opened.echoes()
    return status, (box.project / "started").exists()


@pytest.mark.req("UX-02")
@pytest.mark.parametrize("answer", ["\n", "y\n", "Y\n", " yes \n"])
def test_yes_starts(box: Box, answer: str) -> None:
    assert ask(box, answer) == (0, True)


@pytest.mark.req("UX-02")
@pytest.mark.root_repeats("root is asked the same question")
def test_anything_else_starts_nothing(box: Box) -> None:
    for answer in ("n\n", "N\n", "no\n", "maybe\n", "yesterday\n", "y y\n", "\x1b[A\n", CTRL_D):
        assert ask(box, answer) == (REFUSED, False), answer


@pytest.mark.req("UX-02", "SEC-01")
def test_enter_means_no_when_something_looks_secret(box: Box) -> None:
    for answer in ("\n", "n\n", CTRL_D, "\t\n"):
        assert ask(box, answer, env=SECRET) == (REFUSED, False), answer
    assert ask(box, "y\n", env=SECRET) == (0, True)


@pytest.mark.req("UX-01", "UX-02")
def test_question_mark_shows_everything_and_asks_again(box: Box) -> None:
    with claudebox_terminal(box, "--run", "touch", "started", env=PLAIN) as opened:
        first = opened.read_until(r"(?s)^.*Start\? \[Y/n\] ")[0]
        assert len(first.splitlines()) <= ROWS
        assert "CLAUDE_CONFIG_DIR" not in first
        opened.type("?\n")
        everything = opened.read_until(r"(?s)^.*Start\? \[Y/n\] ")[0]
        for row in ("Environment", "SSL_CERT_FILE=", "identity    made /etc: passwd", "project     rw "):
            assert row in everything
        assert not (box.project / "started").exists()
        opened.type("y\n")
        assert opened.wait() == 0
    assert (box.project / "started").exists()


@pytest.mark.req("UX-02")
def test_ctrl_c_at_the_question_shows_no_traceback(box: Box) -> None:
    with claudebox_terminal(box, "--run", "true", env=PLAIN) as opened:
        opened.answer(r"Start\? \[Y/n\] ", CTRL_C)
        opened.wait()
        assert opened.read_all().endswith("Start? [Y/n] ^C\r\n")


MAKES_ENVRC = ("--run", "sh", "-c", "echo x >.envrc")
# What is started, the question that comes, and the exit status if it gets no answer.
QUESTIONS = {
    "start": (MAKES_ENVRC, r"Start\? \[Y/n\] ", INTERRUPTED),
    "project file": (MAKES_ENVRC, r"Let it have these, .*\? \[y/N\] ", INTERRUPTED),
    "review": (("--review", *MAKES_ENVRC), r"keep or discard\? \[k\] ", 0),
    "instances": (("--instances", "gc"), r"conversations\? \[y/N\] ", INTERRUPTED),
    "discard": (("--review", "discard"), r"undone\. \[y/N\] ", INTERRUPTED),
}


@pytest.mark.req("UX-02", "SAND-15")
@pytest.mark.attributes
@pytest.mark.parametrize("asked", QUESTIONS)
@pytest.mark.parametrize("key", [CTRL_C, CTRL_D], ids=["interrupt", "end"])
def test_question_that_gets_no_answer_ends_its_line(shop: Box, asked: str, key: str) -> None:
    """So that whatever comes next, the prompt of the shell too, begins on a line of its own."""
    arguments, question, status = QUESTIONS[asked]
    prepare(shop, asked)
    with claudebox_terminal(shop, *arguments, env=PLAIN) as opened:
        if asked == "review":
            opened.answer(r"Start\? ", "y\n")
        opened.read_until(question)
        seen = len(opened.seen)
        opened.type(key)
        if (asked, key) == ("project file", CTRL_D):
            opened.read_until(r"Start\? \[Y/n\] ")  # it is a no, and the box is another question
            opened.type(key)
        ends = [status] if key == CTRL_C else [status, 0, REFUSED]
        assert opened.wait() in ends
        assert opened.echoes()
        opened.read_all()
    after = opened.seen[seen:].decode()
    assert after.replace("^C", "", 1).replace("^D\b\b", "", 1).startswith("\r\n")
    assert after.endswith("\r\n")
    assert "Traceback" not in after


def prepare(box: Box, asked: str) -> None:
    """Bring about that the question comes."""
    if asked == "project file":
        box.account.write(box.project / ".claudebox.toml", "[env]\nCOLOUR = 'blue'\n")
    elif asked == "discard":
        assert box.claudebox("-y", "--review", *MAKES_ENVRC).returncode == 0
    elif asked == "instances":
        note = box.account.home / ".claudebox/instances/0123456789abcdef/project"
        box.account.write(note, f"{box.account.home}/nowhere\n")


@pytest.mark.req("UX-02")
def test_closed_terminal_at_the_question_starts_nothing(box: Box) -> None:
    with claudebox_terminal(box, "--run", "touch", "started") as opened:
        opened.read_until(r"Start\?")
        opened.hang_up()
        opened.process.wait(10)
    assert not (box.project / "started").exists()


@pytest.mark.req("UX-02", "SAND-15")
def test_piped_input_is_for_the_program_and_the_terminal_for_the_answer(box: Box) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"n\nthe whole input\n")
    os.close(write_end)
    box.account.write(box.project / "program", "cat > received")
    with claudebox_terminal(box, "--run", "sh", "program", stdin=read_end) as opened:
        os.close(read_end)
        opened.answer(r"Start\?.*\] ", "y\n")
        assert opened.wait() == 0
    assert (box.project / "received").read_text() == "n\nthe whole input\n"


@pytest.mark.req("UX-02")
def test_what_is_typed_after_the_answer_reaches_the_program(box: Box) -> None:
    box.account.write(box.project / "program", 'read line; echo "read: $line"')
    with claudebox_terminal(box, "--run", "sh", "program", env=PLAIN) as opened:
        opened.answer(r"Start\?", "y\ntyped ahead\n")
        opened.read_until("read: typed ahead")


@pytest.mark.req("UX-02", "SEC-01")
def test_what_was_typed_before_the_question_is_no_answer(box: Box) -> None:
    """It was meant for something else: a prompt that was to come, or the shell."""
    with claudebox_terminal(box, "--run", "touch", "started", env=PLAIN) as opened:
        opened.type("y\ny\n")
        opened.answer(r"Start\? \[Y/n\] ", "n\n")
        assert opened.wait() == REFUSED
    assert not (box.project / "started").exists()


@pytest.mark.req("UX-02")
def test_rest_of_a_long_answer_does_not_reach_the_shell(box: Box) -> None:
    """Somebody pastes a prompt before looking: it must not become a command."""
    with shell_terminal(box, typed="claudebox --run true\n") as shell:
        shell.answer(r"Start\? \[Y/n\] ", "a" * 95 + "          touch pasted\n")
        shell.read_until("nothing was started")
        shell.answer("host> ", "echo one more command\n")
        shell.read_until("^one more command")
    assert not (box.project / "pasted").exists()


@pytest.mark.req("UX-01", "UX-02")
def test_audit_that_nobody_can_see_is_not_asked_about(box: Box) -> None:
    box.account.write(box.project / "script", f"'{claudebox_path()}' --run touch started 2> log\n")
    with terminal(box.account, "sh", "script", cwd=box.project) as opened:
        opened.type("y\n")
        assert opened.wait() == REFUSED
    assert not (box.project / "started").exists()


@pytest.mark.req("UX-03")
@pytest.mark.parametrize("option", ["--yes", "-y"])
def test_yes_option_asks_nothing_even_if_something_looks_secret(box: Box, option: str) -> None:
    with claudebox_terminal(box, option, "--run", "true", env=SECRET) as opened:
        assert (opened.wait(), "Start?" in opened.read_all()) == (0, False)


def test_terminal_driver_notices_a_terminal_that_is_not_sane(box: Box) -> None:
    """Or else `echoes` above would prove nothing."""
    with terminal(box.account, "sh", "-c", "stty -echo; echo done; exec sleep 1000", cwd=box.project) as opened:
        opened.read_until("done")
        assert not opened.echoes()
