"""Plants canaries outside the box, and lists what is secret already, each with the probe that would find it."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import hashlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable
from typing import Any

from claudebox.commands.prove.probe import LIBC, call, content
from claudebox.model import MASK, Plan
from claudebox.record import Record

FILES, ENVIRONMENT, PROCESSES, SOCKETS, KEYRING, TERMINAL, KERNEL, NETWORK, LATER, NIX = GROUPS = (
    *("files", "environment", "processes", "sockets", "keyring", "terminal", "kernel", "network"),
    *("host-run files", "Nix"),
)

VARIABLE = "CLAUDEBOX_PROVE_CANARY"
NAME = "claudebox-prove"
USER_KEYRING, REVOKE, SET_PERMISSIONS, EVERYTHING_FOR_THE_USER = -4, 3, 5, 0x3F3F0000
SEGMENT_SIZE, CREATE_PRIVATELY, REMOVE = 4096, 0o1600, 0


class Trial(Record):
    """Something to reach, and how."""

    id: str
    group: str
    title: str
    probe: str
    target: dict[str, Any]
    choice: str = ""  # the setting by which the user opened it
    written: str = ""  # the file that appears on the host if the probe succeeded


def new_canary() -> tuple[str, str]:
    canary = f"canary-{secrets.token_hex(16)}"
    return canary, hashlib.sha256(canary.encode()).hexdigest()


class Canaries(contextlib.ExitStack):
    """Everything that was planted. It is removed at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.trials: list[Trial] = []
        self.variables: dict[str, str] = {}
        self.descriptors: list[int] = []

    def add(self, group: str, title: str, probe: str, *, choice: str = "", written: str = "", **target: Any) -> None:
        self.trials.append(Trial(str(len(self.trials)), group, title, probe, target, choice, written))

    def directory(self, above: str) -> str:
        """Make a new directory below this one, which is removed at the end."""
        path = f"{above}/.{NAME}-{secrets.token_hex(6)}"
        os.mkdir(path, 0o700)
        self.callback(shutil.rmtree, path, ignore_errors=True)
        return path

    def plant_file(self, title: str, above: str) -> None:
        """Plant a file to read, and name a place to write one."""
        if not os.access(above, os.W_OK):
            return
        canary, digest = new_canary()
        directory = self.directory(above)
        path = f"{directory}/file"
        with open(path, "w") as file:
            file.write(canary)
        roots = ("", "/proc/self/root", "/proc/[0-9]*/root", "/proc/self/cwd/" + "../" * 20)
        self.add(
            FILES,
            f"read a file in {title}",
            "read",
            paths=[f"{root}{glob.escape(path)}" for root in roots],
            digest=digest,
        )
        planted = f"{above}/.{NAME}-{secrets.token_hex(6)}"
        self.add(FILES, f"leave a file in {title}", "write", path=planted, written=planted)

    def plant_descriptors(self, above: str) -> None:
        canary, digest = new_canary()
        directory = self.directory(above)
        with open(f"{directory}/open", "w") as file:
            file.write(canary)
        for path in (f"{directory}/open", directory):
            self.descriptors.append(os.open(path, os.O_RDONLY))
            self.callback(os.close, self.descriptors[-1])
        paths = ["/proc/self/fd/*", "/proc/self/fd/*/open"]
        self.add(FILES, "use a descriptor that the caller left open", "read", paths=paths, digest=digest)

    def plant_variable(self) -> None:
        canary, digest = new_canary()
        self.variables[VARIABLE] = canary
        paths = ["/proc/[0-9]*/environ"]
        self.add(ENVIRONMENT, "a variable of the caller, in any process", "environment", paths=paths, digest=digest)

    def plant_process(self) -> None:
        canary, digest = new_canary()
        script = "import time; time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-I", "-S", "-c", script, canary], stdin=subprocess.DEVNULL)
        self.callback(child.wait)
        self.callback(child.kill)
        paths = ["/proc/[0-9]*/cmdline"]
        self.add(PROCESSES, "the arguments of a process of this host", "read", paths=paths, digest=digest)

    def plant_memory(self) -> None:
        """Make a System V segment of shared memory, which has a key instead of a path."""
        canary, digest = new_canary()
        key = secrets.randbits(30) | 1
        segment = LIBC.shmget(key, SEGMENT_SIZE, CREATE_PRIVATELY)
        if segment >= 0:
            LIBC.shmat.restype = ctypes.c_void_p
            address = LIBC.shmat(segment, None, 0)
            ctypes.memmove(address, canary.encode(), len(canary))
            LIBC.shmdt(ctypes.c_void_p(address))
            self.callback(LIBC.shmctl, segment, REMOVE, None)
            self.add(PROCESSES, "shared memory of this host", "shared_memory", key=key, digest=digest)

    def plant_server(
        self, group: str, title: str, address: str | tuple[str, int], *, choice: str = "", datagrams: bool = False
    ) -> None:
        """Send a canary to everybody who connects to this path, abstract name, or address, until the end."""
        is_path = isinstance(address, str)
        family = socket.AF_UNIX if is_path else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        server = socket.socket(family, socket.SOCK_DGRAM if datagrams else socket.SOCK_STREAM)
        self.callback(server.close)
        try:
            server.bind(address.replace("@", "\0", 1) if isinstance(address, str) else address)
        except OSError:
            return
        canary, digest = new_canary()

        def serve() -> None:
            with contextlib.suppress(OSError):  # it was closed
                while datagrams:
                    server.sendto(canary.encode(), server.recvfrom(64)[1])
                while True:
                    connection, _ = server.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.sendall(canary.encode())

        if not datagrams:
            server.listen()
        target: dict[str, Any] = {"family": family.name, "kind": server.type.name, "digest": digest}
        target["address"] = address if is_path else server.getsockname()[:2]
        self.add(group, title, "connect", choice=choice, **target)
        threading.Thread(target=serve, daemon=True).start()

    def plant_key(self) -> None:
        canary, digest = new_canary()
        name = f"{NAME}-{secrets.token_hex(6)}"
        key, _ = call("add_key", b"user", name.encode(), canary.encode(), len(canary), USER_KEYRING)
        if key > 0:
            call("keyctl", SET_PERMISSIONS, key, EVERYTHING_FOR_THE_USER)
            self.callback(call, "keyctl", REVOKE, key)
            self.add(KEYRING, "a key of this user", "keyring", name=name, digest=digest)

    def point_at_files(self, plan: Plan) -> None:
        """Try to reach the real secrets of this host. None is read: opening one is enough."""
        for place in plan.outside.places:
            self._point_at(FILES, f"{place.path} ({place.reason})", place.path, writes=False)
        for mount in plan.mounts:
            if mount.kind == MASK and (real := content(mount.path)):
                digest = hashlib.sha256(real).hexdigest()
                self.add(FILES, f"the values in {mount.path}", "same_content", path=mount.path, digest=digest)

    def point_at_host_run(self, paths: Iterable[str], choices: dict[str, str]) -> None:
        for path in paths:
            self._point_at(LATER, f"change {path}", path, writes=True, choice=choices.get(path, ""))

    def _point_at(self, group: str, title: str, path: str, *, writes: bool, choice: str = "") -> None:
        if os.access(path, os.R_OK):
            status = os.stat(path)
            identity = [status.st_dev, status.st_ino]
            self.add(group, title, "reach", path=path, identity=identity, writes=writes, choice=choice)

    def point_at_sockets(self, names: dict[str, str], group: str = SOCKETS, choice: str = "") -> None:
        for title, name in names.items():
            if name.startswith("@") or os.path.exists(name):
                self.add(group, title, "connect", family="AF_UNIX", kind="SOCK_STREAM", address=name, choice=choice)
