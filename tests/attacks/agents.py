"""Listens where agents, desktops and container engines of a machine do, and runs commands beside them.

Started as root in mount and network namespaces of its own, so that nothing of this is on the machine itself. The first
argument is JSON: what to listen on, who runs the commands, and the commands. Prints the output of each, as JSON.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from typing import Any

KINDS = {"stream": socket.SOCK_STREAM, "datagram": socket.SOCK_DGRAM}


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def empty_tmp() -> None:
    """A /tmp without the sockets of this machine; directories stay, since the tests themselves may live there."""
    stage = tempfile.mkdtemp(dir="/var/tmp")
    mount("-t", "tmpfs", "-o", "mode=1777", "none", stage)
    for entry in os.scandir("/tmp"):
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            os.mkdir(f"{stage}/{entry.name}")
            with contextlib.suppress(subprocess.CalledProcessError):  # gone meanwhile
                mount("--rbind", entry.path, f"{stage}/{entry.name}")
    mount("--move", stage, "/tmp")
    os.rmdir(stage)


def listen(kind: str, address: str) -> socket.socket:
    """Open to everybody: who may connect is not what is tested."""
    server = socket.socket(socket.AF_UNIX, KINDS[kind])
    if address.startswith("@"):
        server.bind("\0" + address[1:])
    else:
        os.makedirs(os.path.dirname(address), 0o755, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(address)
        server.bind(address)
        os.chmod(address, 0o666)
    if kind == "stream":
        server.listen(50)
    return server


def main(wish: dict[str, Any]) -> None:
    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "-o", "mode=755", "none", "/run")
    empty_tmp()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    servers = [listen(kind, address) for kind, address in wish["sockets"]]
    results = []
    for command in wish["commands"]:
        done = subprocess.run(
            command,
            cwd=wish["cwd"],
            env=wish["environ"],
            user=wish["uid"],
            group=wish["gid"],
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        results.append((done.stdout, done.stderr))
    print(json.dumps(results))
    for server in servers:
        server.close()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
