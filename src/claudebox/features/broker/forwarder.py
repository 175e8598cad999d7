"""Makes a port of the box that leads to the broker's socket.

Every version of Claude Code can be told to talk to an address, as its documentation says. Not every version can talk to
a socket with a name, and no documentation says so.
"""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.host import Host
from claudebox.host.system import install_command
from claudebox.paths import is_inside

PLACES = ("/usr", "/nix/store")  # a Python below one of these is in the box as well
PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")

# Any Python 3 has to understand this. It becomes the program, and leaves a process that forwards beside it. Claude is
# told the address: `localhost` may also mean ::1, where another box that shares the host's network can listen.
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
os.environ["ANTHROPIC_BASE_URL"] = "http://127.0.0.1:%d" % listener.getsockname()[1]
os.execvp(program[0], program)
"""


def forwarder(host: Host, socket: str) -> tuple[str, ...]:
    """The words before those of the program that start the forwarder."""
    pythons = (python for python in (host.python, *PYTHONS) if any(is_inside(python, place) for place in PLACES))
    python = next((python for python in pythons if host.tree.is_executable(python)), None)
    if python is None:
        raise Problem(
            "the box has no Python, which carries what Claude says to the broker",
            f"{install_command(host.tree, 'python3')}\n      or choose: --auth passthrough",
        )
    return (python, "-I", "-S", "-c", CODE, socket)
