"""The agent changes a script that an `.envrc` runs: the user has allowed that one, and is asked about nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from attacks.conftest import TITLE, said
from conftest import Account, Box

pytestmark = pytest.mark.req("INST-02")

# direnv brings `PATH_add` and `use`.
ENVRC = """
PATH_add() { PATH=$PWD/$1:$PATH; }
use() { :; }
source scripts/env.sh
PATH_add tools
eval "$(./generate)"
use flake
"""
ATTACKS = {
    "scripts/env.sh": "echo 'touch ran' >> scripts/env.sh",
    "tools": "printf '#!/bin/sh\\ntouch ran' > tools/greet",
    "generate": "echo 'echo touch ran' >> generate",
}


@pytest.fixture
def allowed(account: Account, project: Path) -> Path:
    account.write(project / ".envrc", ENVRC)
    account.write(project / "scripts/env.sh", "\n")
    account.write(project / "tools/greet", "#!/bin/sh\n", mode=0o755)
    account.write(project / "generate", "#!/bin/sh\n", mode=0o755)
    account.own(project)
    return project


def enter(account: Account, project: Path) -> bool:
    """What direnv does on cd, and then a command. Says whether the agent's code ran."""
    account.run("bash", "-c", ". ./.envrc; greet", cwd=project)
    return (project / "ran").exists()


@pytest.mark.parametrize("place", ATTACKS)
def test_shell_obeys_nothing_new(box: Box, account: Account, allowed: Path, place: str) -> None:
    said = box.inside("sh", "-c", ATTACKS[place]).stderr
    assert "Read-only" in said or "kept as review" in said, "a directory is a layer"
    assert not enter(account, allowed)
    box.claudebox("--review", "discard", "--yes")
    box.inside("sh", "-c", ATTACKS[place], options=("--writable", place))
    assert enter(account, allowed), "the attack is real"


def test_flake_that_is_evaluated_on_cd_is_named(box: Box, allowed: Path) -> None:
    assert f"{TITLE}: 1 new flake.nix" in said(box.inside("sh", "-c", "echo '{}' > flake.nix; echo > shell.nix"))
