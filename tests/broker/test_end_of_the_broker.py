"""Broker and box end together, whoever is killed, and a login that is being renewed is not lost."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from broker.login import Issuer, log_in, stored
from broker.standin import Server
from broker.talk import API_KEY, Talk, brokers, is_over
from conftest import CLAUDEBOX
from patience import PATIENCE, comes_true

pytestmark = [pytest.mark.req("AUTH-03"), pytest.mark.xdist_group("broker")]

# They look for brokers, and an ordinary user sees those of the other workers.


@contextlib.contextmanager
def running(talk: Talk, script: str, *, is_awaited: bool = True) -> Iterator[subprocess.Popen[str]]:
    """A box; unless told otherwise, one that has said that it is up."""
    with (
        talk.api(),
        subprocess.Popen(
            talk.account.becoming(CLAUDEBOX, *talk.words("--run", "sh", "-c", script)),
            cwd=talk.box.project,
            env={**talk.account.environ, **talk.environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            assert process.stdout
            assert not is_awaited or process.stdout.readline() == "up\n"
            yield process
        finally:
            process.kill()


# Waits for an answer of the broker, whatever it is.
IS_AT_WORK = """
import os, socket
box = socket.create_connection(("127.0.0.1", int(os.environ["ANTHROPIC_BASE_URL"].rpartition(":")[2])))
box.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
box.recv(1)
"""


@pytest.mark.root
def test_broker_ends_with_the_box_whoever_is_killed(user_with_key: Talk) -> None:
    talk = user_with_key
    with running(talk, "echo up; sleep 1000") as process:
        assert comes_true(lambda: len(brokers(talk)) == 1)
        process.kill()
        assert comes_true(lambda: brokers(talk) == [])


@pytest.mark.root
def test_no_other_program_of_the_user_reads_the_brokers_memory(user_with_key: Talk) -> None:
    talk = user_with_key
    with running(talk, f"python3 -c '{IS_AT_WORK}' && echo up && sleep 1000") as process:
        (broker,) = brokers(talk)
        other = talk.account.run("cat", f"/proc/{process.pid}/environ")
        own = talk.account.run("cat", f"/proc/{broker}/environ")
        assert API_KEY in other.stdout, "the user reads what a program of theirs keeps for nobody"
        assert (own.stdout, "Permission denied" in own.stderr) == ("", True)


@pytest.mark.root
def test_box_ends_with_the_broker(user_with_key: Talk) -> None:
    talk = user_with_key
    with running(talk, f"python3 -c '{IS_AT_WORK}' && echo up && sleep 1000") as process:
        assert comes_true(lambda: len(brokers(talk)) == 1)
        (broker,) = brokers(talk)
        os.kill(broker, signal.SIGKILL)
        assert process.wait(PATIENCE) == 125
        assert process.stderr
        assert "the broker was ended, and the box with it" in process.stderr.read()


@pytest.mark.root
def test_broker_killed_at_any_moment_leaves_nothing(user_with_key: Talk) -> None:
    talk = user_with_key
    for number in range(10):
        with running(talk, "echo up; sleep 1000", is_awaited=False) as process:
            # The launcher holds the same things for a moment, before it hands them over.
            assert comes_true(lambda: bool({*brokers(talk)} - {process.pid}))
            time.sleep(number * 0.02)
            found = {*brokers(talk)} - {process.pid}
            assert found
            for broker in found:
                os.kill(broker, signal.SIGKILL)
            assert process.wait(PATIENCE) != 0
        assert comes_true(lambda: is_over(talk))


@pytest.mark.parametrize(
    "how", ["box ends", "launcher is killed", pytest.param("all are asked to end", marks=pytest.mark.root)]
)
def test_end_while_the_login_is_renewed_does_not_lose_it(user_with_key: Talk, how: str) -> None:
    """The refresh token has been used by then, and what came for it is known to the broker alone."""
    talk, go = user_with_key, threading.Event()
    issuer = Issuer(go=go)
    file = log_in(talk.account.home / ".claude", 60)
    talk.account.own(file.parent)
    with Server(issuer) as server:
        talk.environ |= {"ANTHROPIC_API_KEY": "", "CLAUDEBOX_TOKEN_URL": f"{server.url}/v1/oauth/token"}
        with running(talk, "echo up; cat") as process:
            assert process.stdin
            assert process.stdout
            assert issuer.begun.wait(PATIENCE)
            if how == "box ends":
                process.stdin.close()
                assert process.stdout.read() == ""
            elif how == "launcher is killed":
                process.kill()
                process.wait(PATIENCE)
            else:
                assert comes_true(lambda: len(brokers(talk)) == 1)
                (broker,) = brokers(talk)
                for each in (broker, process.pid):
                    os.kill(each, signal.SIGTERM)
            go.set()
            process.wait(PATIENCE)
        # An ordinary user does not see the broker, and cannot wait for its end.
        assert comes_true(lambda: stored(file)["refreshToken"] == "refresh-token-1")
        assert comes_true(lambda: is_over(talk))
