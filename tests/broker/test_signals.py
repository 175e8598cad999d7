"""The broker obeys when it is asked to end, whenever that is."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import claudebox
from patience import PATIENCE

# Another thread receives the signal, so the wait of the first is not interrupted. The same happens, once in many
# thousand times, if the signal comes just before that wait begins.
SERVES = """
import os, signal, socket, sys, threading, time
sys.path.insert(0, sys.argv[1])
from claudebox.features.broker.server import run
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
signals = run.open_signals()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
nobody, _ = os.pipe()
print("ready", flush=True)
run.serve(socket.create_server(("127.0.0.1", 0)), None, nobody, signals)
"""


@pytest.mark.req("AUTH-03")
def test_signal_that_does_not_interrupt_the_wait_ends_it() -> None:
    source = Path(claudebox.__file__).parent.parent
    words = [sys.executable, "-c", SERVES, str(source)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 7
        finally:
            process.kill()
