import os
from pathlib import Path

import pytest

from hosts.machine import Machine, debian


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """One of somebody who has files of settings, and a project with something to hide."""
    made = debian(tmp_path, "/usr/bin/pasta*\n/usr/sbin/nft*", uid=os.getuid())
    return made.plant("~/shop/.env: X=1\n~/shop/data/x")
