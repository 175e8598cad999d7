"""For versions of Claude Code that cannot talk to a socket with a name: in the box, a port that leads to it."""

from __future__ import annotations

import posixpath

from claudebox.host.claude import ClaudeInstall
from claudebox.host.tree import Tree
from claudebox.paths import is_inside
from claudebox.problem import Problem

FIRST_WITH_SOCKET = (2, 1, 197)  # the oldest that was tried; 2.0.76 hangs
PACKAGE = "@anthropic-ai/claude-code"
PLACES = ("/usr", "/nix/store")  # where a Python is in the box as well
DEEPEST = 3  # below the directory of the package

# Any Python 3 has to understand it. It becomes the program; what forwards is a process beside that.
CODE = """
import os, socket, sys, threading
place, program = sys.argv[1], sys.argv[2:]
listener = socket.create_server(("127.0.0.1", 0), backlog=128)
def carry(source, target):
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            target.sendall(data)
    except OSError:
        pass
    for each in (source, target):
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
def forward():
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    while True:
        client = listener.accept()[0]
        broker = socket.socket(socket.AF_UNIX)
        try:
            broker.connect(place)
        except OSError:
            client.close()
            continue
        for pair in ((client, broker), (broker, client)):
            threading.Thread(target=carry, args=pair, daemon=True).start()
child = os.fork()
if child == 0:
    if os.fork() == 0:
        forward()
    os._exit(0)
os.waitpid(child, 0)
os.environ.pop("ANTHROPIC_UNIX_SOCKET", None)
os.environ["ANTHROPIC_BASE_URL"] = "http://localhost:%d" % listener.getsockname()[1]
os.execvp(program[0], program)
"""


def forwarder(tree: Tree, install: ClaudeInstall, python: str, socket: str) -> tuple[str, ...]:
    """Words before those of the program; none if this Claude does without."""
    version = find_version(tree, install)
    if version is None or version >= FIRST_WITH_SOCKET:
        return ()
    if not any(is_inside(python, place) for place in PLACES):
        raise Problem(
            f"claude {'.'.join(map(str, version))} needs a system Python to reach the broker",
            "update it: claude update\n      or choose: --auth passthrough",
        )
    return (python, "-I", "-S", "-c", CODE, socket)


def find_version(tree: Tree, install: ClaudeInstall) -> tuple[int, ...] | None:
    """Of an installation whose place tells it. None: it may be any."""
    head, mark, tail = install.real.partition("/claude/versions/")
    if mark and head:
        return _numbers(tail.partition("/")[0])
    directory = install.real
    for _ in range(DEEPEST):
        directory = posixpath.dirname(directory)
        if (text := tree.text(f"{directory}/package.json")) is not None:
            return _of_package(text)
    return None


def _of_package(text: str) -> tuple[int, ...] | None:
    import json

    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return None
    # The program itself may be in a package of its own, for one kind of machine.
    if not isinstance(package, dict) or not str(package.get("name", "")).startswith(PACKAGE):
        return None
    return _numbers(str(package.get("version", "")))


def _numbers(version: str) -> tuple[int, ...] | None:
    parts = version.partition("-")[0].split(".")
    are_numbers = all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts)
    return tuple(map(int, parts)) if are_numbers else None
