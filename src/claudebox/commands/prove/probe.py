"""Tries to reach what it is told to, and says what it reached: first outside, to show that it can, then inside.

The file imports nothing of claudebox, so that every sandbox with a Python 3 can run it. It is told the digests of the
canaries, never the canaries, so that nothing that it was given can be mistaken for something that it found.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import glob
import hashlib
import json
import os
import re
import socket
import stat
from collections.abc import Callable
from typing import Any

Target = dict[str, Any]

CANARY = re.compile(rb"canary-[0-9a-f]{32}")
LARGEST_READ_BYTES = 1 << 20
CONNECT_SECONDS = 2.0
LIBC = ctypes.CDLL(None, use_errno=True)
SYSTEM_CALLS = {  # the numbers on x86_64 and aarch64
    "add_key": (248, 217),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425),
    "userfaultfd": (323, 282),
    "open_tree": (428, 428),
}
KEY_SPEC = {"session": -3, "user": -4, "user session": -5}
KEYCTL_READ, KEYCTL_SEARCH = 11, 10
NEW_USER_NAMESPACE, NEW_MOUNT_NAMESPACE = 0x10000000, 0x00020000
TIOCSTI = 0x5412


def call(name: str, *arguments: Any) -> tuple[int, int]:
    number = SYSTEM_CALLS[name][os.uname().machine == "aarch64"]
    result = LIBC.syscall(ctypes.c_long(number), *arguments)
    return result, ctypes.get_errno()


def is_canary(data: bytes, digest: str) -> bool:
    return any(hashlib.sha256(token).hexdigest() == digest for token in CANARY.findall(data))


def content(path: str) -> bytes:
    try:
        # A FIFO or a device must not keep us waiting.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(descriptor, LARGEST_READ_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


# Each probe returns the way by which it succeeded, or "".


def read(target: Target) -> str:
    """Read whatever these patterns of paths name."""
    paths = (path for pattern in target["paths"] for path in glob.iglob(pattern))
    return next((path for path in paths if is_canary(content(path), target["digest"])), "")


def environment(target: Target) -> str:
    own = "\0".join("%s=%s" % pair for pair in os.environ.items()).encode(errors="replace")
    return "its own environment" if is_canary(own, target["digest"]) else read(target)


def write(target: Target) -> str:
    """Write a file. Whether it arrived is checked outside."""
    try:
        with open(target["path"], "w") as file:
            file.write("reached")
    except OSError:
        return ""
    return str(target["path"])


def reach(target: Target) -> str:
    """Open the very file or directory of the host; another one at the same place does not count."""
    path = target["path"]
    try:
        status = os.stat(path)
        if [status.st_dev, status.st_ino] != target["identity"]:
            return ""
        if target["writes"]:
            return str(path) if os.access(path, os.W_OK) else ""
        if stat.S_ISDIR(status.st_mode):
            os.listdir(path)
        else:
            open(path, "rb").close()
    except OSError:
        return ""
    return str(path)


def same_content(target: Target) -> str:
    return target["path"] if hashlib.sha256(content(target["path"])).hexdigest() == target["digest"] else ""


def shared_memory(target: Target) -> str:
    LIBC.shmat.restype = ctypes.c_void_p
    segment = LIBC.shmget(target["key"], 0, 0)
    address = LIBC.shmat(segment, None, 0o10000) if segment >= 0 else None
    if address in (None, ctypes.c_void_p(-1).value):
        return ""
    return "shmget(%#x)" % target["key"] if is_canary(ctypes.string_at(address, 64), target["digest"]) else ""


def connect(target: Target) -> str:
    """Connect, and hear the canary. Without a digest, a connection is enough."""
    family, kind = getattr(socket, target["family"]), getattr(socket, target["kind"])
    address = target["address"]
    name = address if isinstance(address, str) else ":".join(map(str, address))
    with socket.socket(family, kind) as connection:
        connection.settimeout(CONNECT_SECONDS)
        try:
            connection.connect(address.replace("@", "\0", 1) if isinstance(address, str) else address)
            if kind == socket.SOCK_DGRAM:
                connection.send(b"?")
            found = "digest" not in target or is_canary(connection.recv(4096), target["digest"])
        except OSError:
            return ""
    return name if found else ""


def keyring(target: Target) -> str:
    for name, ring in KEY_SPEC.items():
        key, _ = call("keyctl", KEYCTL_SEARCH, ring, b"user", target["name"].encode(), 0)
        room = ctypes.create_string_buffer(256)
        if key > 0 and call("keyctl", KEYCTL_READ, key, room, 256)[0] > 0 and is_canary(room.raw, target["digest"]):
            return "the %s keyring" % name
    return "/proc/keys" if target["name"].encode() in content("/proc/keys") else ""


def type_into_terminal(_: Target) -> str:
    try:
        fcntl.ioctl(2, TIOCSTI, b" ")
    except OSError:
        return ""
    return "TIOCSTI"


def in_child(attempt: Callable[[], bool]) -> bool:
    """Try something in a child, because a process cannot leave a namespace again."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if attempt() else 1)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def user_namespace(_: Target) -> str:
    return "unshare" if in_child(lambda: LIBC.unshare(NEW_USER_NAMESPACE) == 0) else ""


def mount(_: Target) -> str:
    def attempt() -> bool:
        both = NEW_USER_NAMESPACE | NEW_MOUNT_NAMESPACE
        return bool(LIBC.unshare(both) == 0 and LIBC.mount(b"none", b"/proc", b"tmpfs", 0, None) == 0)

    return "mount" if in_child(attempt) else ""


def kernel_call(target: Target) -> str:
    """Make a call. If the kernel only complains about the arguments, the call can be used."""
    room = ctypes.create_string_buffer(256)
    given = {"perf_event_open": (room, 0, -1, -1, 0), "userfaultfd": (0x1,), "io_uring_setup": (1, room)}
    result, error = call(target["name"], *given.get(target["name"], (0, room, 0)))
    if result >= 0:
        if target["name"] != "keyctl":
            os.close(result)
        return str(target["name"])
    return str(target["name"]) if error not in (errno.ENOSYS, errno.EPERM, errno.EACCES) else ""


def vsock(_: Target) -> str:
    try:
        socket.socket(40, socket.SOCK_STREAM).close()
    except OSError:
        return ""
    return "AF_VSOCK"


def main(trials: list[dict[str, Any]]) -> None:
    found = {}
    for trial in trials:
        try:
            found[trial["id"]] = globals()[trial["probe"]](trial["target"])
        except Exception:  # a sandbox may make anything fail
            found[trial["id"]] = ""
    print("claudebox-prove " + json.dumps(found))
