"""An agent owns the state of its project, and leaves something else in the place of every file that the next start
reads or writes. That start goes on, or stops with a command that mends it; it never hangs, and follows nothing."""

import os
import shlex
from pathlib import Path

import pytest

from claudebox.errors import FAILED
from conftest import Box

NESTS = 'import os; [(os.mkdir("d" * 200), os.chdir("d" * 200)) for _ in range(300)]'
DISGUISES = {  # each where $f was
    "directory": "mkdir -p $f/a/b; touch $f/a/b/c",
    "closed directory": "mkdir -p $f/a; chmod 0 $f",
    "deep tree": f"mkdir $f; cd $f; python3 -c '{NESTS}'",
    "fifo": "mkfifo $f",
    "loop": "ln -s $f $f",
    "symlink to a file": "ln -s ~/secret/file $f",
    "symlink to a directory": "ln -s ~/secret $f",
    "closed file": "echo '{}' > $f; chmod 0 $f",
    "large file": "truncate -s 1G $f",
    "nested": "(printf '{\"a\":'; yes '[' | head -200000 | tr -d '\\n'; printf '}') > $f",
}
PARTS = ("claude", "auth", "cache")  # of the state of a project, which its boxes can write
MORE = ("claude/keybindings.json", "claude/projects", "claude/todos")  # what Claude makes, and the user may have
STATE = "claude/.claude.json"  # Claude's own, which nobody may lose: a start stops there


@pytest.mark.req("FAIL-01", "INST-02")
@pytest.mark.parametrize("disguise", DISGUISES)
def test_next_start_goes_on_or_says_how(shop: Box, disguise: str) -> None:
    account, home = shop.account, shop.account.home
    account.environ["CLAUDEBOX_CLAUDE"] = str(account.write(home / "claude", "#!/bin/sh\necho $0 started\n", 0o755))
    account.write(home / "secret" / "file", "canary", 0o600)
    for name in (".claude/settings.json", ".claude/keybindings.json", ".claude.json"):
        account.write(home / name, "{}")
    assert start(shop) == (0, "")
    (instance,) = (home / ".claudebox" / "instances").iterdir()
    names = [f"{part}/{name}" for part in PARTS for name in os.listdir(instance / part)]
    replace(shop, instance, disguise, [name for name in {*names, *MORE} if name != STATE])
    assert start(shop) == (0, "")
    assert account.run("head", "-c9", f"{instance}/claude/settings.json").returncode == 0
    account.write(home / ".claude" / "settings.json", '{"model": "opus"}')  # which the next start copies
    account.write(home / ".claude.json", '{"mcpServers": {}}')
    replace(shop, instance, disguise, [STATE])
    account.run("mkdir", "-p", f"{instance}/claude/broken.json/in-the-way")
    status, said = start(shop)
    assert (status, str(instance / STATE) in "".join(said.split())) == (FAILED, True), said
    assert account.run("sh", "-ec", f"cd {said.partition('cd ')[2]}").returncode == 0
    account.run("chmod", "0", *(f"{instance}/{part}" for part in PARTS))
    assert start(shop) == (0, "")
    assert (os.listdir(home / "secret"), (home / "secret" / "file").read_text()) == (["file"], "canary")


def replace(box: Box, instance: Path, disguise: str, names: list[str]) -> None:
    paths = shlex.join(str(instance / name) for name in names)
    done = box.account.run("sh", "-ec", f"for f in {paths}; do (rm -rf $f; {DISGUISES[disguise]}); done")
    assert done.returncode == 0, done.stderr


def start(box: Box) -> tuple[int, str]:
    """Status, and what went wrong."""
    done = box.claudebox("--yes", "--quiet", "-p", "x", timeout=30)
    assert "Traceback" not in done.stderr
    assert "claudebox itself failed" not in done.stderr
    assert (done.returncode == 0) == done.stdout.endswith("started\n")
    return done.returncode, done.stderr
