"""The leader obeys, whatever has become of its sentinel."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import claudebox
from claudebox.sandbox.terminal import DONE, GIVE_UP_STOPPING, GO_ON, GOES_ON
from patience import PATIENCE, comes_true

# Its own process group is that of the box: to be continued does no harm. There is no terminal.
LEADS = """
import os, sys
sys.path.insert(0, sys.argv[1])
from claudebox.sandbox.terminal.session import Leader, fork_sentinel
leader = Leader(os.getpgrp(), -1, -1, int(sys.argv[2]), int(sys.argv[3]), -1)
leader.sentinel = fork_sentinel(os.getpgrp())
os.write(1, b"%d\\n" % leader.sentinel)
leader.serve()
"""


@pytest.mark.req("TTY-01")
def test_sentinel_that_has_ended_is_not_ended_again() -> None:
    """A box can stop twice before the parent looks. By then another process may have the sentinel's number."""
    hearing, orders = os.pipe()
    told, telling = os.pipe()
    source = Path(claudebox.__file__).parent.parent
    words = [sys.executable, "-c", LEADS, str(source), str(hearing), str(telling)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, pass_fds=(hearing, telling), start_new_session=True
    ) as process:
        os.close(hearing)
        os.close(telling)
        assert process.stdout is not None
        sentinel = int(process.stdout.readline())
        os.write(orders, GIVE_UP_STOPPING)
        assert comes_true(lambda: not Path(f"/proc/{sentinel}").exists())
        os.write(orders, GIVE_UP_STOPPING + GO_ON + DONE)
        assert os.read(told, 10) == GOES_ON
        assert process.wait(PATIENCE) == 0
    os.close(orders)
    os.close(told)
