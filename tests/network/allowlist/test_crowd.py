"""Many connections, slow ones, half-closed ones and large ones: the box is served, and the host does not suffer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conftest import Box
from network.allowlist.world import GREETING
from network.internet import Internet, Resident
from network.servers import PORT

CROWD = Path(__file__).with_name("crowd.py")
LARGEST_JOURNAL = 2 << 20


# Python's TLS forgets to close a socket whose client has gone before it was wrapped: of the stand-in, not of claudebox.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.req("NAME-01")
@pytest.mark.exhaustive("thousands of connections")
def test_box_is_served_through_all_of_it(box: Box, account: Resident, world: Internet) -> None:
    shutil.copy(CROWD, box.project)
    options = ("--allow", f"allowed.example:{PORT}", "--allow", "allowed.example", "--allow", "*.wild.example")
    done = box.inside(
        *("/usr/bin/python3", "crowd.py", "allowed.example", str(PORT)),
        options=("--network", "allowlist", *options),
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "one_after_another": "internet",
        "at_the_same_time": "internet",
        "many": "internet",
        "byte_by_byte_to_nowhere": "internet",
        "half_closed": GREETING,
        "large": f"{1 << 26} True {GREETING}",
        "thousands_of_queries": "internet",
        "junk": "internet",
        "listener_itself": "HTTP/1.1 403 Forbidden",
    }
    assert world.lookups("x1.wild.example") == []
    (journal,) = account.home.rglob("network.jsonl")
    assert journal.stat().st_size < LARGEST_JOURNAL
