"""Asks a Claude whether it can talk to a socket with a name: starts it with one, and sees what arrives there.

It gets no network, no credential, and an empty home: what it would do otherwise, it does to nobody.
"""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time

from claudebox.features.broker.trial import keeping_answer
from claudebox.host import Host
from claudebox.launch.prepare import prepare
from claudebox.model import ClaudeTrial

PATIENCE = 10.0  # seconds. It takes one; those that cannot do it hang.
MOMENT = 0.2
LONGEST = 4096
QUESTION = b"POST /v1/messages"
ANSWER = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
ALONE = (
    *("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"),
    *("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"),
)
VARIABLES = {
    "ANTHROPIC_BASE_URL": "http://localhost",
    "ANTHROPIC_AUTH_TOKEN": "no-credential",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
    "DISABLE_AUTOUPDATER": "1",
}


def ask_claude(host: Host, bwrap: str, trial: ClaudeTrial) -> None:
    """What it did is kept. Whatever goes wrong, it gets a port: that works with every Claude."""
    try:
        speaks = _is_heard(host, bwrap, trial)
    except (OSError, subprocess.SubprocessError):
        speaks = False
    prepare(keeping_answer(host, trial, speaks=speaks), "")


def _is_heard(host: Host, bwrap: str, trial: ClaudeTrial) -> bool:
    with (
        tempfile.TemporaryDirectory(prefix="claudebox-trial-", dir="/tmp") as directory,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        listener.bind(f"{directory}/api.sock")
        listener.listen()
        process = subprocess.Popen(
            [bwrap, *_arrangement(host, trial, directory), trial.program, "-p", "hi"],
            cwd="/",
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with process:
            try:
                return _hears(listener, process)
            finally:
                process.kill()


def _arrangement(host: Host, trial: ClaudeTrial, directory: str) -> list[str]:
    home = host.person.home
    words = [*ALONE, "--tmpfs", "/tmp", "--tmpfs", home]
    for file in trial.files:
        words += ["--ro-bind", file, file]
    words += ["--ro-bind", directory, directory, "--chdir", home]
    variables = {"HOME": home, "PATH": trial.path, "ANTHROPIC_UNIX_SOCKET": f"{directory}/api.sock", **VARIABLES}
    for name, value in variables.items():
        words += ["--setenv", name, value]
    return words


def _hears(listener: socket.socket, process: subprocess.Popen[bytes]) -> bool:
    end = time.monotonic() + PATIENCE
    listener.settimeout(MOMENT)
    while time.monotonic() < end:
        try:
            client = listener.accept()[0]
        except TimeoutError:
            if process.poll() is not None:
                return False
            continue
        with client:
            client.settimeout(MOMENT)
            try:
                if client.recv(LONGEST).startswith(QUESTION):
                    return True
                client.sendall(ANSWER)
            except OSError:  # it may try again
                continue
    return False
