#!/usr/bin/env python3
"""What a whole turn of Claude Code costs in a box, as ratios against the same turn without one, in one run.

usage: bench/turn.py --claude PATH [--rounds N] [--short]

Claude is told one thing (`-p`), runs three commands (with `--short` none), and ends. The API is a stand-in over TLS on
this machine, which answers at once: with a real one, most of the time would be the model's, and the ratios nearer to
one. All are started in turn, at a terminal, so that a busy moment of the machine hits all of them alike. As an ordinary
user, because Claude does not work unattended for root, and with a claude that is not below /var, which firejail hides.
Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rounds import Times, in_rounds, rows

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT / "tests"))

from broker.standin import make_certificates  # noqa: E402
from claude.api import FAREWELL, StandIn  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

WARM_UP = 1
UNATTENDED = ("--dangerously-skip-permissions", "-p", "do it")
COMMANDS = (
    "git status --short",
    "grep -rc word . | wc -l",
    "echo a line >> notes.md && git commit -qam more && git log",
)
KEPT = "1 changed"  # says a box that keeps it until it lands
IDENTITY = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--claude", required=True, help="the claude command")
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--short", action="store_true", help="Claude answers at once, and runs no command")
    chosen = options.parse_args()
    commands = () if chosen.short else COMMANDS
    if os.geteuid() == 0:
        options.error("as an ordinary user, please: claude does not work unattended for root")
    # Not in /var/tmp: firejail hides that.
    with tempfile.TemporaryDirectory(prefix="bench-", dir=Path.home()) as home, ExitStack() as ends:
        certificates = make_certificates(Path(home))
        api = ends.enter_context(StandIn(*commands, certificate=certificates.server))
        environ = {
            **{name: os.environ[name] for name in ("PATH", "LANG", "USER") if name in os.environ},
            "CLAUDEBOX_CLAUDE": chosen.claude,
            "HOME": home,
            "TERM": "xterm-256color",
            "ANTHROPIC_API_KEY": "sk-ant-api03-stand-in-0123456789",
            "ANTHROPIC_BASE_URL": f"https://localhost:{api.port}",
            "NODE_EXTRA_CA_CERTS": str(certificates.authority),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        prepare_home(Path(home))
        ways = contenders(chosen.claude, home, api.port)
        print(table(measure(ways, Path(home), environ, chosen)))


def prepare_home(home: Path) -> None:
    """Claude has been used here before: the first time it asks and looks around."""
    (home / ".gitconfig").write_text("[user]\n\tname = Somebody\n\temail = somebody@example.org\n")
    (home / ".claude.json").write_text('{"hasCompletedOnboarding": true, "theme": "dark"}')


def contenders(claude: str, home: str, port: int) -> dict[str, list[str]]:
    box = [str(CHECKOUT / "claudebox"), "--yes"]
    turn = [claude, *UNATTENDED]
    bind = "bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --bind".split()
    ways = {
        "bare": turn,
        "plain bwrap, all of the host read-only": [*bind, home, home, *turn],
        "claudebox": [*box, "-p", "do it"],
        "with `--auth broker`": [*box, "--auth", "broker", "-p", "do it"],
        "with `--auth broker --network none`": [*box, "--auth", "broker", "--network", "none", "-p", "do it"],
        "with `--network allowlist`": [*box, "--network", "allowlist", "--host-port", str(port), "-p", "do it"],
        "with `--review`, kept": [*box, "--review", "-p", "do it"],
        "with broker, allowlist and review": [
            *box,
            *("--auth", "broker", "--network", "allowlist", "--review", "-p", "do it"),
        ],
        "with `--review`, and a file and a commit land": [*box, "--review", "--land", "all", "-p", "do it"],
    }
    if firejail := shutil.which("firejail"):
        ways["firejail"] = [firejail, "--quiet", "--noprofile", *turn]
    return ways


def measure(ways: dict[str, list[str]], home: Path, environ: dict[str, str], chosen: argparse.Namespace) -> Times:
    def take_turn(name: str) -> float:
        project = new_project(home / "project")
        start = time.perf_counter()
        said = at_terminal(ways[name], project, environ)
        taken = time.perf_counter() - start
        # As if no command could run in there: such a turn seems to be fast.
        was_whole = "a line" in (project / "notes.md").read_text() or KEPT in said
        if not (FAREWELL in said if chosen.short else was_whole):
            sys.exit(f"error: {name}: the turn was not whole:\n{said}")
        return taken

    return in_rounds({name: partial(take_turn, name) for name in ways}, chosen.rounds, WARM_UP)


def new_project(project: Path) -> Path:
    """The same for each turn."""
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir()
    for number in range(200):
        (project / f"{number}.txt").write_text("word\n" * number)
    (project / "notes.md").write_text("notes\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "begin")):
        subprocess.run(["git", *IDENTITY, *words], cwd=project, check=True)
    return project


def at_terminal(command: list[str], project: Path, environ: dict[str, str]) -> str:
    """What it said on a terminal of its own, until it ended."""
    child, master = pty.fork()
    if child == 0:
        os.chdir(project)
        os.execvpe(command[0], command, environ)  # noqa: S606
    said = b"".join(iter(reader(master), b""))
    os.waitpid(child, 0)
    os.close(master)
    return said.decode(errors="replace")


def reader(master: int) -> Callable[[], bytes]:
    def read() -> bytes:
        try:
            return os.read(master, 65536)
        except OSError:  # everybody has closed the other end
            return b""

    return read


def table(times: Times) -> str:
    return "\n".join(["| a turn of Claude | median, s | against bare |", "|---|---:|---:|", *rows(times, "bare", 1, 2)])


if __name__ == "__main__":
    main()
