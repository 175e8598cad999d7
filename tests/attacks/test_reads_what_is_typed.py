"""A program reads on when the box has ended, is suspended or runs behind the shell: passwords, for example."""

from collections.abc import Iterator

import pytest

from attacks.unprotected import ON_THE_USERS_TERMINAL
from conftest import CLAUDEBOX, Account, Box
from patience import comes_true
from terminal.pseudoterminal import CTRL_Z, Terminal, shell_terminal

pytestmark = pytest.mark.req("TTY-01")

TYPED = "correct horse battery staple"
# The shell is busy for a while before it reads, so that it is not a matter of luck who gets the line.
THEN_READ = 'echo bu""sy; until [ -e go ]; do sleep 0.05; done; read -r line; echo "the shell got: $line"\n'

READS = """
def read_on(terminal):
    while True:
        try:
            stolen = os.read(terminal, 4096)
        except OSError as error:
            stolen = b""
        with open("stolen", "ab") as file:
            file.write(stolen or b"(nothing more)")
        if not stolen:
            return
"""
# Reads from its standard input in a session of its own, which nobody suspends.
READS_ALONG = f"""
import os, time
{READS}
if os.fork() == 0:
    os.setsid()
    open("ready", "w").close()
    read_on(0)
while True:
    time.sleep(100)
"""
TAKES = f"""
import os, socket
{READS}
server = socket.socket(socket.AF_UNIX)
server.bind("socket")
server.listen()
open("ready", "w").close()
_, descriptors, _, _ = socket.recv_fds(server.accept()[0], 1, 1)
read_on(descriptors[0])
"""
HANDS_OVER = """
import socket
connection = socket.socket(socket.AF_UNIX)
connection.connect("socket")
socket.send_fds(connection, [b"."], [0])
"""

PROTECTED = pytest.param((), id="protected")
UNPROTECTED = pytest.param(ON_THE_USERS_TERMINAL, id="on the user's terminal")


@pytest.fixture
def taker(box: Box, account: Account) -> Iterator[None]:
    """Another box of the same project, without a terminal."""
    account.write(box.project / "takes", TAKES)
    with account.running(CLAUDEBOX, "--yes", "--run", "python3", "takes", cwd=box.project):
        assert comes_true((box.project / "ready").exists)
        yield


def stolen(box: Box) -> str:
    file = box.project / "stolen"
    return file.read_text() if file.exists() else ""


def is_stolen(box: Box, shell: Terminal, command: tuple[str, ...]) -> bool:
    """Whether the box reads the next line. The shell gets what the box does not."""
    shell.type(f"{TYPED}\n")
    if command == ON_THE_USERS_TERMINAL:
        return comes_true(lambda: TYPED in stolen(box))
    box.account.write(box.project / "go")
    shell.read_until(f"^the shell got: {TYPED}")
    return TYPED in stolen(box)


@pytest.mark.parametrize("command", [PROTECTED, UNPROTECTED])
@pytest.mark.usefixtures("taker")
def test_terminal_handed_over_to_another_box(box: Box, command: tuple[str, ...]) -> None:
    box.account.write(box.project / "hands-over", HANDS_OVER)
    with shell_terminal(box, *command, typed=f"claudebox --yes --run python3 hands-over; {THEN_READ}") as shell:
        shell.read_until("^busy")
        if not command:
            assert comes_true(lambda: "nothing more" in stolen(box))
        assert is_stolen(box, shell, command) == bool(command)


@pytest.mark.parametrize("command", [PROTECTED, UNPROTECTED])
@pytest.mark.parametrize("is_suspended", [True, False], ids=["suspended", "started behind the shell"])
def test_box_that_is_not_in_front(box: Box, command: tuple[str, ...], is_suspended: bool) -> None:
    with shell_terminal(
        box,
        *command,
        program=READS_ALONG,
        typed=f"claudebox --yes --run python3 program {';' if is_suspended else '&'} {THEN_READ}",
    ) as shell:
        assert comes_true((box.project / "ready").exists)
        if is_suspended:
            shell.type(CTRL_Z)
            shell.read_until("Stopped")
            shell.read_until("^busy")
        assert is_stolen(box, shell, command) == bool(command)
