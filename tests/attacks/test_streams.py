"""Pipes of the host that are standard streams of a box: nothing inside touches them, and all else is as with a pipe."""

import os
import signal
import subprocess
import time

import pytest

from conftest import CLAUDEBOX, Account, Box
from patience import comes_true

pytestmark = [pytest.mark.req("FD-01"), pytest.mark.root_repeats("root has the same streams")]


def run_shell(box: Box, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A script on the host, in which `box` starts a shell in a box."""
    function = f'box() {{ "{CLAUDEBOX}" --yes --quiet --run sh -c "$@"; }}\n'
    return box.account.run("bash", "-c", function + script, "bash", *words, cwd=box.project)


@pytest.fixture(params=["control", "box"])
def where(request: pytest.FixtureRequest) -> str:
    """How a script starts a shell: on the host, where the attack has success, and in a box."""
    return "sh -c" if request.param == "control" else "box"


def test_nothing_is_written_into_the_pipe_behind_standard_input(box: Box, where: str) -> None:
    script = f'printf "one\\n" | {{ {where} "timeout 1 sh -c \'echo planted >/proc/self/fd/0\'"; cat; }}'
    planted = "planted\n" if where == "sh -c" else ""
    assert run_shell(box, script).stdout == f"one\n{planted}"


def test_nothing_of_the_host_is_read_from_standard_output(box: Box, where: str) -> None:
    """A reader that has not come yet finds all that the host wrote there."""
    script = f'{{ echo of the host; {where} "timeout 1 head -1 </proc/self/fd/1 >seen"; }} | {{ sleep 1.5; cat; }}'
    shown = run_shell(box, script).stdout
    seen = (box.project / "seen").read_text()
    assert (shown, seen) == (("", "of the host\n") if where == "sh -c" else ("of the host\n", ""))


SET_FLAGS = """
import fcntl, os
for stream in (0, 1, 2):
    fcntl.fcntl(stream, fcntl.F_SETFL, fcntl.fcntl(stream, fcntl.F_GETFL) | os.O_NONBLOCK)
"""


def test_flags_of_the_hosts_pipes_stay(box: Box) -> None:
    pipes = [os.pipe() for _ in range(3)]
    ends = [pipes[0][0], pipes[1][1], pipes[2][1]]

    def blocking(*command: str) -> set[bool]:
        with box.account.running(*command, cwd=box.project, stdin=ends[0], stdout=ends[1], stderr=ends[2]) as process:
            assert process.wait(60) == 0
        return {os.get_blocking(end) for end in ends}

    try:
        assert blocking(CLAUDEBOX, "--yes", "--quiet", "--run", "python3", "-c", SET_FLAGS) == {True}
        assert blocking("python3", "-c", SET_FLAGS) == {False}
    finally:
        for pipe in pipes:
            for end in pipe:
                os.close(end)


def test_what_the_box_does_not_read_stays_for_the_next(box: Box) -> None:
    script = "seq 1 3 | while read line; do echo $line; box true; done; seq 1 20000 | { box 'read one'; head -1; }"
    assert run_shell(box, script).stdout == "1\n2\n3\n2\n"


def test_input_arrives_when_it_is_written(box: Box) -> None:
    """And output: neither waits for more."""
    box.account.write(box.project / "echo", "while read line; do echo got $line; done")
    with box.account.start(CLAUDEBOX, "--yes", "--quiet", "--run", "sh", "echo", cwd=box.project) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in ("one", "two", "three"):
            process.stdin.write(f"{word}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"got {word}\n"
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait(60) == 0


def test_bytes_pass_both_ways_unchanged(box: Box) -> None:
    """More than what is copied one by one, through pipes whose other ends are slow or read little at a time."""
    script = """
        head -c 5000000 /dev/urandom >sent
        cat sent | box cat | dd bs=1000 status=none >received
        echo ${PIPESTATUS[*]}
        (head -c 2000000 sent; sleep 0.3; tail -c +2000001 sent) | box 'dd bs=3000 status=none' | (sleep 1; cmp - sent)
        cmp received sent && echo same
    """
    assert run_shell(box, script).stdout == "0 0 0\nsame\n"


def test_all_that_was_written_arrives_before_the_end(box: Box) -> None:
    """Also what a program wrote that has ended long before its reader comes."""
    script = "box 'seq 1 20000; exit 3' | { sleep 1; wc -l; }; echo ${PIPESTATUS[*]}"
    assert run_shell(box, script).stdout == "20000\n3 0\n"


def test_caller_may_wait_for_the_end_before_it_reads(box: Box) -> None:
    read_end, write_end = os.pipe()
    words = (CLAUDEBOX, "--yes", "--quiet", "--run", "sh", "-c", "for i in $(seq 1 2000); do echo line $i; done")
    with box.account.running(*words, cwd=box.project, stdout=write_end) as process, open(read_end) as shown:
        os.close(write_end)
        assert process.wait(60) == 0
        assert shown.read().endswith("line 2000\n")


def test_output_and_errors_in_one_pipe_keep_their_order(box: Box) -> None:
    wanted = "".join(f"out {number}\nerr {number}\n" for number in range(200))
    script = "box 'i=0; while [ $i -lt 200 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done' 2>&1 | cat"
    assert run_shell(box, script).stdout == wanted


def test_streams_can_be_opened_by_name(box: Box) -> None:
    """As scripts do."""
    script = "echo in | box 'cat /dev/stdin; echo out >/dev/stdout; echo err >/dev/stderr' 2>&1 | cat"
    assert run_shell(box, script).stdout == "in\nout\nerr\n"


def test_named_pipe_is_one_too(box: Box) -> None:
    script = "mkfifo -m 600 in out; { echo words >in & }; box cat <in >out & cat out; wait; box 'ls /proc/self/fd' <<<x"
    assert run_shell(box, script).stdout.startswith("words\n0\n")


def test_reader_that_goes_away_ends_a_box_that_was_silent(box: Box) -> None:
    words = "echo one; until [ -e gone ]; do sleep 0.01; done; while echo two; do sleep 0.1; done"
    done = run_shell(box, f"box '{words}' 2>/dev/null | {{ head -1; touch gone; }}; echo ${{PIPESTATUS[*]}}")
    assert done.stdout == "one\n141 0\n"


GIVE = """
import os, socket
with socket.socket(socket.AF_UNIX) as server:
    server.connect("door")
    socket.send_fds(server, [b"."], [0, 1])
print("given", flush=True)
"""
TAKE = """
import socket, time
with socket.socket(socket.AF_UNIX) as server:
    server.bind("door")
    server.listen()
    open("listening", "w").close()
    client, _ = server.accept()
    held = socket.recv_fds(client, 1, 2)
    time.sleep(600)
"""


def test_descriptor_that_left_the_box_keeps_nobody_waiting(box: Box, account: Account) -> None:
    """Neither claudebox nor the reader, although input goes on as well."""
    account.write(box.project / "give", GIVE)
    (source, typing), (output, target) = os.pipe(), os.pipe()
    words = (CLAUDEBOX, "--yes", "--quiet", "--run", "python3", "give")
    with account.running("python3", "-c", TAKE, cwd=box.project), open(typing, "wb"), open(output) as shown:
        assert comes_true((box.project / "listening").exists)
        with account.running(*words, cwd=box.project, stdin=source, stdout=target) as process:
            os.close(source)
            os.close(target)
            assert process.wait(60) == 0
            assert shown.read() == "given\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_reader_that_stands_still_does_not_keep_claudebox(box: Box, number: signal.Signals) -> None:
    """More is left than the pipe of the reader takes, and nobody reads: a signal ends it, as it would a program."""
    read_end, write_end = os.pipe()
    words = (CLAUDEBOX, "--yes", "--quiet", "--run", "sh", "-c", "head -c 100000 /dev/zero; touch ended")
    with box.account.running(*words, cwd=box.project, stdout=write_end) as process:
        os.close(write_end)
        assert comes_true((box.project / "ended").exists)
        time.sleep(0.5)  # until nothing is left of the box
        assert process.poll() is None
        process.send_signal(number)
        assert process.wait(60) == 0
    os.close(read_end)
