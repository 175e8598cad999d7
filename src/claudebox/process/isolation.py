"""Separates a process from the host: by namespaces, Landlock scopes, a keyring of its own and open files."""

from __future__ import annotations

import os
import stat

from claudebox.errors import Problem, suppress
from claudebox.files import Open, c_call
from claudebox.host.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# Options of prctl.
SET_PARENT_DEATH_SIGNAL = 1
ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER

CLONE = {"x86_64": 56, "aarch64": 220}
NEW_USER_NAMESPACE = 0x10000000
NEW_PID_NAMESPACE = 0x20000000
NEW_MOUNT_NAMESPACE = 0x00020000
NEW_NETWORK_NAMESPACE = 0x40000000
CHILD_OF_PARENT = 0x8000  # CLONE_PARENT
CHILD_ENDED = 17  # SIGCHLD
APPARMOR_SWITCH = "kernel.apparmor_restrict_unprivileged_userns"


def fork_into_namespaces(*, as_sibling: bool = False) -> int:
    """Fork like `os.fork`, but make the child root of a user namespace and the first process of a pid namespace in it.

    The child has mounts of its own, too, so that its /proc shows that namespace. A sibling has the session of this
    process, but is a child of its parent.

    This is not `unshare` before a fork, because the parent has to stay where it is, with its own account: it starts
    programs when the namespace has ended.
    """
    user, group = os.geteuid(), os.getegid()
    child = _clone(NEW_USER_NAMESPACE | NEW_PID_NAMESPACE | NEW_MOUNT_NAMESPACE, as_sibling=as_sibling)
    if child < 0:
        refuse("pid")
    if child == 0:
        _become_root_of_it(user, group)
        _renew_proc()
    return child


def fork_sibling() -> int:
    """Fork like `os.fork`, but make the new process a child of this one's parent."""
    child = _clone(0, as_sibling=True)
    if child < 0:
        raise ChildProcessError("clone")
    return child


def _clone(flags: int, *, as_sibling: bool) -> int:
    number = CLONE.get(os.uname().machine)
    if number is None:
        return -1
    return c_call("syscall", number, flags | (CHILD_OF_PARENT if as_sibling else 0) | CHILD_ENDED, 0, 0, 0, 0)


def _become_root_of_it(user: int, group: int) -> None:
    """Map this user to root, who can configure what belongs to the namespace and nothing else."""
    try:
        write("/proc/self/uid_map", f"0 {user} 1")
        write("/proc/self/setgroups", "deny")
        write("/proc/self/gid_map", f"0 {group} 1")
    except OSError as error:
        raise Problem(f"the user namespace cannot be set up: {error.strerror}", *advice()) from None


def _renew_proc() -> None:
    """Mount a new /proc, where bwrap looks up its child. In the host's, that number is another process."""
    if c_call("mount", b"proc", b"/proc", b"proc", 0, 0) != 0:
        raise Problem("the kernel does not let claudebox mount /proc for the box", *advice())


def layer_label(number: int) -> bytes:
    """What the kernel shows as the source of the mount that lays a layer over a directory."""
    return b"claudebox:%d" % number


def enter_network_namespace(settings: tuple[tuple[str, str], ...]) -> None:
    """Enter a new network namespace in which the kernel has these settings, below /proc/sys/net."""
    if c_call("unshare", NEW_NETWORK_NAMESPACE) != 0:
        refuse("network")
    for name, value in settings:
        with suppress(OSError):  # a kernel may lack it, such as one without IPv6
            write(f"/proc/sys/net/{name}", value)


def refuse(kind: str) -> NoReturn:
    raise Problem(f"the kernel does not let claudebox make a {kind} namespace for the box", *advice())


def write(path: str, text: str) -> None:
    with Open(os.open(path, os.O_WRONLY | os.O_CLOEXEC)) as descriptor:
        os.write(descriptor, text.encode())


def advice(module: str = "") -> tuple[str]:
    """The hint of a Problem, as its further arguments."""
    if apparmor_forbids():
        return (f"AppArmor forbids it here; to allow it:\n      sudo sysctl -w {APPARMOR_SWITCH}=0",)
    return (f"if the kernel has it as a module: sudo modprobe {module}" if module else "claudebox --check",)


def apparmor_forbids() -> bool:
    """Whether this is an Ubuntu where only programs with a profile get capabilities in a user namespace."""
    return Tree().text("/proc/sys/" + APPARMOR_SWITCH.replace(".", "/")) == "1\n"


# Landlock. The numbers of the calls are the same on x86_64 and aarch64.
CREATE_RULESET, RESTRICT_SELF = 444, 446
ASK_VERSION, SCOPES_SINCE = 1, 6
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2
SET_NO_NEW_PRIVILEGES = 38


def can_scope() -> bool:
    """Whether this kernel and this Python support Landlock scopes."""
    return c_call("syscall", CREATE_RULESET, 0, 0, ASK_VERSION) >= SCOPES_SINCE


def scope_to_box() -> None:
    """From here on, this process and its children reach only what they start themselves, if the kernel can do that."""
    if not can_scope():
        return
    # struct landlock_ruleset_attr: it restricts scopes, but neither files nor ports, so that bwrap can still mount.
    attributes = bytes(16) + (SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS).to_bytes(8, "little")
    ruleset = c_call("syscall", CREATE_RULESET, attributes, len(attributes), 0)
    has_agreed = ruleset >= 0 and c_call("prctl", SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
    if not has_agreed or c_call("syscall", RESTRICT_SELF, ruleset, 0) != 0:
        raise Problem("the kernel offers Landlock scopes, but then refused them", "claudebox --check")


KEYCTL = {"x86_64": 250, "aarch64": 219}
FIND, JOIN_SESSION = 0, 1
THE_SESSIONS = -3


def leave_session_keyring() -> None:
    """From here on, this process and its children have a keyring of their own, without a key."""
    number = KEYCTL.get(os.uname().machine)
    if number is None or c_call("syscall", number, JOIN_SESSION, 0) >= 0:
        return
    # If the kernel has no keys, or a container refuses the calls, no key can be read either.
    if c_call("syscall", number, FIND, THE_SESSIONS, 0) >= 0:
        raise Problem(
            "the kernel does not give the box a keyring of its own: you may have too many keys",
            "see which, and remove some: cat /proc/keys; keyctl unlink NUMBER",
        )


FIRST_DATA_DESCRIPTOR = 3
CHUNK = 1 << 20


def check_standard_streams() -> None:
    for descriptor in (0, 1, 2):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise Problem(
                f"descriptor {descriptor} is a directory, which would open everything below it to the box",
                "redirect from a file instead",
            )
        if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            import socket

            with socket.socket(fileno=os.dup(descriptor)) as stream:
                is_stream = stream.type == socket.SOCK_STREAM
            if not is_stream:
                raise Problem(
                    f"descriptor {descriptor} is a socket for messages, and a box has only streams of bytes",
                    "put a pipe in between: … | claudebox … | …",
                )


def seal_standard_input() -> None:
    """Give the box a copy of a file that is standard input: through /proc it could open the file itself for writing."""
    if not stat.S_ISREG(os.fstat(0).st_mode):
        return
    import fcntl

    copy = os.memfd_create("standard input", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    # The position in the file stays where it is: a script may be reading lines from it.
    position = os.lseek(0, 0, os.SEEK_CUR)
    try:
        while chunk := os.pread(0, CHUNK, position):
            position += os.write(copy, chunk)
    except OSError as error:
        raise Problem(f"standard input cannot be copied: {error.strerror}", "pipe it: cat FILE | claudebox …") from None
    fcntl.fcntl(copy, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    os.lseek(copy, 0, os.SEEK_SET)
    os.dup2(copy, 0)


def close_all_but(descriptors: list[int]) -> None:
    """Close all other descriptors: what the caller left open would be open in the box."""
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        if descriptor >= FIRST_DATA_DESCRIPTOR and descriptor not in descriptors:
            os.closerange(descriptor, descriptor + 1)  # which does not mind that the listing's own is closed
