"""The namespaces that a box is made in, before bwrap makes its own."""

from __future__ import annotations

import os

from claudebox.problem import Problem
from claudebox.process.c_library import (
    CLONE,
    c_function,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

NEW_USER_NAMESPACE = 0x10000000
NEW_PID_NAMESPACE = 0x20000000
NEW_MOUNT_NAMESPACE = 0x00020000
NEW_NETWORK_NAMESPACE = 0x40000000
CHILD_ENDED = 17  # SIGCHLD
APPARMOR_SWITCH = "kernel.apparmor_restrict_unprivileged_userns"


def fork_into_namespaces() -> int:
    """Like `os.fork`; but the child is root of a user namespace, and the first process of a pid namespace in it.

    It has mounts of its own, too: its /proc shows that namespace.

    Not `unshare` and then fork: the parent itself stays where it is, with its own account, and can start programs when
    the namespace has ended.
    """
    user, group = os.geteuid(), os.getegid()
    call = c_function("syscall")
    number = CLONE.get(os.uname().machine)
    flags = NEW_USER_NAMESPACE | NEW_PID_NAMESPACE | NEW_MOUNT_NAMESPACE | CHILD_ENDED
    child = call(number, flags, 0, 0, 0, 0) if call is not None and number is not None else -1
    if child < 0:
        refuse("pid")
    if child == 0:
        _become_root_of_it(user, group)
        _renew_proc()
    return child


def _become_root_of_it(user: int, group: int) -> None:
    """As whom this process can configure what belongs to the namespace, and nothing else."""
    try:
        write("/proc/self/uid_map", f"0 {user} 1")
        write("/proc/self/setgroups", "deny")
        write("/proc/self/gid_map", f"0 {group} 1")
    except OSError as error:
        raise Problem(f"the user namespace cannot be set up: {error.strerror}", *advice()) from None


def _renew_proc() -> None:
    """bwrap looks up its child in /proc, by the number that it has here: in the host's, that is another process."""
    mount = c_function("mount")
    if mount is None or mount(b"proc", b"/proc", b"proc", 0, 0) != 0:
        raise Problem("the kernel does not let claudebox mount /proc for the box", *advice())


def enter_network_namespace() -> None:
    call = c_function("unshare")
    if call is None or call(NEW_NETWORK_NAMESPACE) != 0:
        refuse("network")


def refuse(kind: str) -> NoReturn:
    raise Problem(f"the kernel does not let claudebox make a {kind} namespace for the box", *advice())


def write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def advice(module: str = "") -> tuple[str]:
    """A hint, as the arguments of a Problem."""
    if is_restricted():
        return (f"AppArmor forbids it here; to allow it:\n      sudo sysctl -w {APPARMOR_SWITCH}=0",)
    return (f"if the kernel has it as a module: sudo modprobe {module}" if module else "claudebox --check",)


def is_restricted() -> bool:
    """Ubuntu lets only programs with a profile have capabilities in a user namespace."""
    try:
        with open("/proc/sys/" + APPARMOR_SWITCH.replace(".", "/")) as switch:
            return switch.read().strip() == "1"
    except OSError:
        return False
