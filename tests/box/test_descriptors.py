"""Descriptors that the caller left open stay outside: a directory's would open everything below it."""

import socket
import subprocess
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Account, Box

OPEN_AND_START = """
import os, socket, sys
home, *command = sys.argv[1:]
pair = socket.socketpair()
opened = {
    3: os.open(home + "/private", os.O_RDWR),
    9: os.open(home, os.O_RDONLY | os.O_DIRECTORY),
    10: os.open("/", os.O_PATH),
    200: pair[0].fileno(),
    1000: os.pipe()[1],
}
safe = {number: os.dup2(descriptor, 300 + number, inheritable=False) for number, descriptor in opened.items()}
for number, descriptor in safe.items():
    os.dup2(descriptor, number, inheritable=True)
os.execv(command[0], command)
"""
LIST = "ls /proc/$$/fd"  # by a child, which opens descriptors of its own


@pytest.mark.req("SAND-04")
def test_open_descriptors_reach_neither_the_program_nor_the_first_process(box: Box, account: Account) -> None:
    """Those of the first process can be opened through /proc/1/fd by everything in the box."""
    account.write(account.home / "private", "private\n")
    look = f"{LIST}; cd /proc/1/fd && for fd in *; do readlink $fd; done; cat /proc/1/fd/*/private"
    command = (CLAUDEBOX, "--yes", "--run", "sh", "-c", look)
    result = account.run("/usr/bin/python3", "-c", OPEN_AND_START, str(account.home), *command, cwd=box.project)
    lines = result.stdout.splitlines()
    assert lines[:3] == ["0", "1", "2"], result.stderr
    own = ("/dev/", "pipe:", "anon_inode:[eventfd]", "anon_inode:[signalfd]")
    assert lines[3:]
    assert [line for line in lines[3:] if not line.startswith(own)] == []


@pytest.mark.req("SAND-04", "FAIL-01")
def test_directory_as_standard_stream_is_refused(box: Box, account: Account, project: Path) -> None:
    for stream in "012":
        script = f'exec "$0" --yes --run touch started {stream}<"$HOME"'
        # Python itself may be the one that refuses.
        assert account.run("sh", "-c", script, CLAUDEBOX, cwd=project).returncode != 0
    assert not (project / "started").exists()


@pytest.mark.req("SAND-04")
@pytest.mark.root_repeats("root has the same streams")
def test_closed_standard_stream_works(box: Box, account: Account, project: Path) -> None:
    inside = "import os; names = os.listdir('/proc/self/fd'); open('descriptors', 'w').write(' '.join(sorted(names)))"
    for closed in ("<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"):
        start = f'exec "$0" --yes --run /usr/bin/python3 -c "$1" {closed}'
        result = account.run("sh", "-c", start, CLAUDEBOX, inside, cwd=project)
        assert result.returncode == 0, result.stderr
        # The fourth is the listing itself. A closed one would become the next file that the program opens.
        assert (project / "descriptors").read_text().split() == ["0", "1", "2", "3"], closed
        (project / "descriptors").unlink()


@pytest.mark.req("FAIL-01")
def test_file_that_is_standard_input_cannot_be_written(box: Box, account: Account) -> None:
    prompt = account.write(account.home / "prompt.txt", "what the user wrote\n")
    script = f'"$0" --yes --run sh -c "cat; echo evil >/proc/self/fd/0; : >/proc/self/fd/0" <{prompt} 2>/dev/null'
    result = account.run("sh", "-c", script, CLAUDEBOX, cwd=box.project)
    assert result.stdout == "what the user wrote\n"
    assert prompt.read_text() == "what the user wrote\n"


def test_script_that_reads_lines_keeps_its_place(box: Box, account: Account) -> None:
    lines = account.write(account.home / "lines.txt", "one\ntwo\nthree\n")
    script = f'while read line; do echo $line; "$0" --yes --run true 2>/dev/null; done <{lines}'
    assert account.run("sh", "-c", script, CLAUDEBOX, cwd=box.project).stdout == "one\ntwo\nthree\n"


# Sockets: the box gets pipes in their place, so that none of the host's network is in it.


def start(account: Account, box: Box, stream: socket.socket, *command: str) -> subprocess.CompletedProcess[str]:
    """With this socket as standard input and output."""
    number = stream.fileno()
    script = f'exec "$0" --yes --network none --run "$@" <&{number} >&{number}'
    return account.run("bash", "-c", script, CLAUDEBOX, *command, cwd=box.project, pass_fds=(number,))


@pytest.mark.req("NET-01", "NET-03", "FD-01")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX], ids=["internet", "unix"])
def test_socket_is_carried_and_does_not_enter(box: Box, account: Account, family: socket.AddressFamily) -> None:
    """Editors and test runners use sockets as standard streams."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        if family == socket.AF_INET:
            ours, theirs = socket.create_connection(server.getsockname()), server.accept()[0]
        else:
            ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"words\n")
        ours.shutdown(socket.SHUT_WR)
        look = "cat; readlink /proc/$$/fd/0 /proc/$$/fd/1 | cut -d: -f1"
        done = start(account, box, theirs, "sh", "-c", look)
        theirs.close()
        with ours.makefile() as answer:
            assert (done.returncode, answer.read()) == (0, "words\npipe\npipe\n"), done.stderr


@pytest.mark.req("FAIL-01")
def test_socket_for_messages_is_refused(box: Box, account: Account) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        done = start(account, box, theirs, "true")
    assert done.returncode == 125
    assert "is a socket for messages" in " ".join(done.stderr.split())
