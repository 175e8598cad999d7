"""For a Claude Code that cannot talk to a socket with a name: in the box, a port that leads to it."""

from __future__ import annotations

from claudebox.features.broker.trial import speaks_socket
from claudebox.host import Host
from claudebox.host.claude import ClaudeInstall
from claudebox.paths import is_inside
from claudebox.problem import Problem

PLACES = ("/usr", "/nix/store")  # where a Python is in the box as well

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


def forwarder(host: Host, install: ClaudeInstall, socket: str) -> tuple[str, ...]:
    """Words before those of the program; none if this Claude does without."""
    speaks = speaks_socket(host, install)
    if speaks:
        return ()
    if any(is_inside(host.python, place) for place in PLACES):
        return (host.python, "-I", "-S", "-c", CODE, socket)
    if speaks is None:  # it is asked before anything starts
        return ()
    raise Problem(
        f"{install.path} cannot use a socket, and needs a system Python to reach the broker",
        "update it: claude update\n      or choose: --auth passthrough",
    )
