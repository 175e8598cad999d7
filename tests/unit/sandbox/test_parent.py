"""The parent of a box obeys a signal, whenever that comes."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import claudebox
from patience import PATIENCE

# Another thread receives the signal, so the wait of the first is not interrupted. The same happens, once in many
# thousand times, if the signal comes just before that wait begins. Nothing in the child is a program yet: it is ended.
ATTENDS = """
import os, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
from claudebox.sandbox.parent import Attendant
child = os.fork()
if child == 0:
    time.sleep(600)
lives = os.pipe()[:1] if sys.argv[2] == "lives" else ()
attendant = Attendant(child, None, [], lives, has_namespace=True)
attendant.hear_signals()

def send():
    time.sleep(0.3)  # until the first thread waits
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(600)

threading.Thread(target=send, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
attendant.wait()
attendant.status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
attendant.restore()
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
attendant.end_likewise()
"""


@pytest.mark.req("SAND-15")
@pytest.mark.parametrize("waits_for", ["lives", "the box alone"])
def test_signal_that_does_not_interrupt_the_wait_ends_it(waits_for: str) -> None:
    source = Path(claudebox.__file__).parent.parent
    words = [sys.executable, "-c", ATTENDS, str(source), waits_for]
    with subprocess.Popen(words, start_new_session=True) as process:
        try:
            assert process.wait(PATIENCE) == -signal.SIGTERM
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what a failed test would leave behind


# The program has ended within the limit that a hang-up sets, and has been waited for.
HAS_ENDED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from claudebox.sandbox.parent import Attendant
child = os.fork()
if child == 0:
    os._exit(0)
attendant = Attendant(child, None, [], (), has_namespace=True)
attendant.hear_signals()
signal.alarm(600)
os.waitpid(child, 0)
os.kill(os.getpid(), signal.SIGTERM)
attendant.restore()
sys.exit(signal.alarm(0))
"""


@pytest.mark.req("SAND-15")
def test_what_comes_afterwards_is_not_interrupted() -> None:
    """Neither by a signal at the last moment, nor by the limit for the program."""
    source = Path(claudebox.__file__).parent.parent
    words = [sys.executable, "-c", HAS_ENDED, str(source)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
