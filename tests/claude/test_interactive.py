"""Claude Code on a terminal, as people use it, looked at in tmux."""

import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from claude.api import StandIn
from claude.session import ANSWER, DUMMY_KEY, QUIET, Talk, texts
from claude.test_login import log_in
from conftest import CLAUDEBOX, Account
from patience import PATIENCE, comes_true
from terminal.pseudoterminal import children_of

pytestmark = pytest.mark.tmux

QUESTIONS = (
    "Choose the text style",
    "Select login",
    "trust this folder",
    "Do you trust",
    "Bypass Permissions mode, ",
    "Yes, I accept",
    "Checking connectivity",
    "Unable to connect",
    "Detected a custom API key",
)
PROMPT = "bypass permissions on"  # below the line to type in
LEAVING = "again to exit"


@dataclass
class Screen:
    """A terminal of 80 by 24 with a program on it."""

    account: Account
    server: str = field(default_factory=lambda: uuid4().hex)  # a former one may be about to end

    def tmux(self, *words: str) -> str:
        done = self.account.run("tmux", "-L", self.server, *words, env={"TMUX_TMPDIR": str(self.account.home)})
        return done.stdout

    def start(self, cwd: str, env: dict[str, str], script: str) -> None:
        variables = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
        size = ("-x", "80", "-y", "24")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "box", *size, "-c", cwd, *variables, script)

    def text(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "box")

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "box", *keys)

    def shows(self, text: str, patience: float = PATIENCE) -> bool:
        return comes_true(lambda: text in self.text(), patience)

    def leave(self) -> bool:
        """Ctrl-C twice, the second one soon after the first."""
        for _ in range(20):
            self.type("C-c")
            comes_true(lambda: self.is_over() or LEAVING in self.text(), 5)
            if self.is_over():
                return True
            self.type("C-c")
            if comes_true(self.is_over, 5):
                return True
        return False

    def is_over(self) -> bool:
        return "status=" in self.text()


@contextmanager
def screen(account: Account, command: list[str], cwd: str, env: dict[str, str]) -> Iterator[Screen]:
    """The command, and then its exit status, which a Ctrl-C that comes too late does not end."""
    opened = Screen(account)
    script = f"trap : INT; {shlex.join(command)} 2>{account.home}/stderr; echo status=$?; while :; do sleep 1000; done"
    opened.start(cwd, env, script)
    try:
        yield opened
    finally:
        opened.tmux("kill-server")


@contextmanager
def claude_screen(talk: Talk, env: dict[str, str], *commands: str) -> Iterator[Screen]:
    with StandIn(*commands) as api:
        words = [CLAUDEBOX, *talk.words(api)]
        with screen(talk.account, words, str(talk.project), env) as opened:
            yield opened


@pytest.mark.req("SAND-01", "UX-06", "AUTH-01", "SAND-15")
@pytest.mark.root_repeats("Claude sees the same home and the same user in the box of either")
def test_claude_starts_without_a_question_and_answers(talk: Talk) -> None:
    log_in(talk.account)
    with claude_screen(talk, {}, "echo it-ran > marker") as opened:
        assert opened.shows(PROMPT), opened.text()
        first = opened.text()
        assert [question for question in QUESTIONS if question in first] == []
        opened.type("please do it", "Enter")
        assert opened.shows(ANSWER), opened.text()
        assert (talk.project / "marker").read_text() == "it-ran\n"
        opened.type("C-c")
        assert opened.shows(LEAVING), opened.text()
        assert not opened.is_over()
        assert opened.leave(), opened.text()
        assert "status=0" in opened.text()


@pytest.mark.req("INST-01", "SAND-05")
def test_end_of_a_conversation_says_how_to_resume_it_in_a_box(user_talk: Talk) -> None:
    """Claude's own hint finds nothing on the host, and skips permissions where no box is."""
    log_in(user_talk.account)
    said = user_talk.account.home / "stderr"
    with claude_screen(user_talk, {}) as opened:
        assert opened.shows(PROMPT), opened.text()
        assert opened.leave(), opened.text()
        assert "--resume" not in said.read_text()  # nobody has said anything
    with claude_screen(user_talk, {}) as opened:
        assert opened.shows(PROMPT), opened.text()
        opened.type("remember the walrus", "Enter")
        assert opened.shows(ANSWER), opened.text()
        assert opened.leave(), opened.text()
        assert "claude --dangerously-skip-permissions --resume" in opened.text()
        (hint,) = [line for line in said.read_text().splitlines() if "--resume" in line]
    command, option, identifier = hint.split()
    assert (command, option, identifier in opened_ids(user_talk)) == ("claudebox", "--resume", True)
    assert "remember the walrus" in user_talk(option, identifier, prompt="what was it?", env={}).sent


def opened_ids(talk: Talk) -> list[str]:
    return [path.stem for path in talk.state.glob("projects/*/*.jsonl")]


@pytest.mark.req("SAND-15", "UX-06")
def test_resize_is_followed(user_talk: Talk) -> None:
    """With an API key instead of a login, about which there is no question either."""
    with claude_screen(user_talk, DUMMY_KEY) as opened:
        assert opened.shows(PROMPT), opened.text()
        assert [question for question in QUESTIONS if question in opened.text()] == []
        assert longest_rule(opened) in range(70, 81), opened.text()
        for columns in (120, 50):
            opened.tmux("resize-window", "-t", "box", "-x", str(columns), "-y", "30")
            wanted = range(columns - 8, columns + 1)
            assert comes_true(lambda wanted=wanted: longest_rule(opened) in wanted), opened.text()  # type: ignore[misc]


def longest_rule(opened: Screen) -> int:
    """How wide the lines are that Claude draws around what is typed."""
    return max((line.count("─") for line in opened.text().splitlines()), default=0)


@pytest.mark.exhaustive("shows that a question would be seen")
def test_state_that_is_not_prepared_would_ask(user_talk: Talk) -> None:
    """The other tests look for questions in vain; here is one."""
    spoil = "echo '{\"hasCompletedOnboarding\": true}' > ~/.claude/.claude.json; exec claude"
    words = [CLAUDEBOX, "--yes", *QUIET, "--run", "sh", "-c", spoil]
    with screen(user_talk.account, words, str(user_talk.project), DUMMY_KEY) as opened:
        assert comes_true(lambda: any(question in opened.text() for question in QUESTIONS)), opened.text()


# Claude Code on the box's own terminal: a long paste, Ctrl-Z and `fg`, and a sudden end.


PASTED = "".join(f"{number:04d}," for number in range(1000))
IS_ORDINARY = "#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{keypad_cursor_flag}"


@contextmanager
def shell_screen(talk: Talk) -> Iterator[tuple[Screen, StandIn]]:
    """An interactive shell in which claudebox was started."""
    opened = Screen(talk.account)
    shell = "PS1='host> ' exec bash --norc"
    opened.start(str(talk.project), DUMMY_KEY, shell)
    with StandIn() as api:
        try:
            assert opened.shows("host>"), opened.text()
            opened.type(shlex.join((CLAUDEBOX, *talk.words(api))), "Enter")
            assert opened.shows(PROMPT), opened.text()
            yield opened, api
        finally:
            opened.tmux("kill-server")


def is_ordinary(opened: Screen) -> bool:
    """Whether the terminal shows its usual screen, its cursor, and takes the mouse for itself."""
    return opened.tmux("display-message", "-p", "-t", "box", IS_ORDINARY) == "0 0 1 0\n"


@pytest.mark.req("TTY-01", "SAND-15")
def test_long_paste_arrives_whole(user_talk: Talk) -> None:
    with shell_screen(user_talk) as (opened, api):
        opened.tmux("set-buffer", PASTED)
        opened.tmux("paste-buffer", "-p", "-t", "box")
        assert comes_true(lambda: "asted" in opened.text() or "0999," in opened.text()), opened.text()
        opened.type("Enter")
        assert comes_true(lambda: any(PASTED in text for request in api.requests for text in texts(request)))


@pytest.mark.req("TTY-01", "SAND-15")
def test_suspended_and_resumed(user_talk: Talk) -> None:
    with shell_screen(user_talk) as (opened, _):
        for _ in range(2):
            opened.type("C-z")
            assert comes_true(lambda: "Stopped" in opened.text() and opened.text().rstrip().endswith("host>"))
            assert comes_true(lambda: is_ordinary(opened))
            opened.type("clear; echo the shell lis''tens", "Enter")
            assert opened.shows("the shell listens"), opened.text()
            opened.type("clear; fg", "Enter")
            assert opened.shows(PROMPT), opened.text()


@pytest.mark.req("TTY-01", "SAND-15")
def test_killed(user_talk: Talk) -> None:
    with shell_screen(user_talk) as (opened, _):
        shell = int(opened.tmux("display-message", "-p", "-t", "box", "#{pane_pid}"))
        os.kill(children_of(shell)[0], signal.SIGKILL)
        assert comes_true(lambda: is_ordinary(opened))
        opened.type("clear; echo the shell lis''tens", "Enter")
        assert opened.shows("the shell listens"), opened.text()
