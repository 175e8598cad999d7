"""An agent replaces what a launch writes into Claude's home: in another box, while one starts, or before."""

from __future__ import annotations

import pytest

from conftest import CLAUDEBOX, Box
from patience import comes_true

pytestmark = pytest.mark.req("SAND-09")

CANARY = "canary-71c0de"
FAKE = "#!/bin/sh\necho started\n"
LAUNCHES = 5  # most of them succeed if the symlink is followed

# What the agent runs. The state of Claude is large, so that writing it takes a while; as soon as the new file is there
# under its temporary name, it becomes a symlink to a file of the host, and its final name becomes free.
AGENT = """
import ctypes, json, os
exchange = ctypes.CDLL(None).renameat2
os.chdir(os.path.expanduser("~/.claude"))
def reset():
    with open("large", "w") as file:
        json.dump({"padding": "x" * 12_000_000}, file)
    os.replace("large", ".claude.json")
    os.path.lexists("trap") or os.symlink(os.environ["TARGET"], "trap")
reset()
open(os.environ["BEGUN"], "w").close()
while True:
    for name in os.listdir("."):
        if name.startswith("..claude.json.") and exchange(-100, b"trap", -100, name.encode(), 2) == 0:
            os.unlink(".claude.json")
            while any(other == name for other in os.listdir(".")):
                pass
            if not os.path.islink(".claude.json"):
                with open(".claude.json") as file:
                    content = file.read(100)
                with open(os.environ["STOLEN"], "a") as file:
                    file.write(content)
            os.path.lexists("trap") and os.unlink("trap")
            reset()
"""


def test_no_file_of_the_host_gets_a_name_in_claudes_home(box: Box) -> None:
    account = box.account
    account.write(account.home / "opt" / "claude", FAKE, mode=0o755)
    secret = account.write(account.home / ".ssh" / "id_ed25519", CANARY, mode=0o600)
    stolen = account.write(box.project / "stolen")
    environ = {"PATH": f"{account.home}/opt:{account.environ['PATH']}"}
    told = {"TARGET": str(secret), "BEGUN": str(box.project / "begun"), "STOLEN": str(stolen)}
    words = [word for name, value in told.items() for word in ("--env", f"{name}={value}")]
    start = (CLAUDEBOX, "--yes", *words, "--run", "python3", "-c", AGENT)
    with account.running(*start, cwd=box.project, env=environ) as agent:
        assert comes_true((box.project / "begun").exists)
        for _ in range(LAUNCHES):
            box.inside("true", env=environ)
        assert agent.poll() is None, "the agent gave up"
    assert CANARY not in stolen.read_text()
    assert secret.stat().st_nlink == 1


def test_nothing_is_made_where_a_symlink_in_claudes_home_leads(box: Box) -> None:
    """Claude lies below its own directory where an old installer has put it. So its state has places to mount that."""
    account = box.account
    program = ".claude/local/node_modules/@anthropic-ai/claude-code/cli.js"
    options = ("--claude", str(account.write(account.home / program, FAKE, mode=0o755)))
    target = account.write(account.home / ".config" / "file").parent
    plant = f"mv ~/.claude/local ~/.claude/away && ln -s {target} ~/.claude/local && echo planted"
    assert box.sh(plant, options=options) == "planted\n"
    assert box.sh("~/.local/bin/claude", options=options) == "started\n"
    assert sorted(path.name for path in target.iterdir()) == ["file"]
