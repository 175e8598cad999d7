"""What separates a process from the rest of the host: namespaces, Landlock scopes, a keyring of its own.

Imports: `ctypes` takes as long to import as all of claudebox; `_ctypes`, the part in C, is enough for system calls.
"""

from __future__ import annotations

import os

from claudebox.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

# Of prctl.
SET_PARENT_DEATH_SIGNAL = 1
ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
CLONE = {"x86_64": 56, "aarch64": 220}


def c_function(name: str) -> Callable[..., int] | None:
    """None if this Python cannot call it."""
    try:
        import _ctypes
    except ImportError:
        return None
    address = _ctypes.dlsym(_ctypes.dlopen(None, 0), name)  # type: ignore[arg-type]  # None: what is loaded already

    def call(*arguments: int | bytes) -> int:
        return int(_ctypes.call_function(address, arguments))

    return call


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


# The same numbers on x86_64 and aarch64.
CREATE_RULESET = 444
RESTRICT_SELF = 446
ASK_VERSION = 1
SCOPES_SINCE = 6
SCOPE_ABSTRACT_SOCKETS = 1
SCOPE_SIGNALS = 2
SET_NO_NEW_PRIVILEGES = 38


def can_scope() -> bool:
    """Whether this kernel, and this Python, can do it."""
    call = _system_call()
    return call is not None and call(CREATE_RULESET, 0, 0, ASK_VERSION) >= SCOPES_SINCE


def scope_to_box() -> bool:
    """From here on, this process and all that come from it reach only what they start themselves. False if not."""
    call = _system_call()
    if call is None or call(CREATE_RULESET, 0, 0, ASK_VERSION) < SCOPES_SINCE:
        return False
    # struct landlock_ruleset_attr: no rights to files, none to ports, only scopes; so that bwrap can still mount.
    attributes = bytes(16) + (SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS).to_bytes(8, "little")
    ruleset = call(CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0 or _no_new_privileges() != 0 or call(RESTRICT_SELF, ruleset, 0) != 0:
        from claudebox.problem import Problem

        raise Problem("the kernel offers Landlock scopes, and then refused them", "claudebox --check")
    return True


def _system_call() -> Callable[..., int] | None:
    return c_function("syscall")


def _no_new_privileges() -> int:
    control = c_function("prctl")
    return control(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) if control is not None else -1


NUMBERS = {"x86_64": 250, "aarch64": 219}  # of keyctl
FIND, JOIN_SESSION = 0, 1
THE_SESSIONS = -3


def leave_session_keyring() -> None:
    """From here on, this process and all that come from it have a keyring of their own, without a key."""
    call, number = c_function("syscall"), NUMBERS.get(os.uname().machine)
    if call is None or number is None or call(number, JOIN_SESSION, 0) >= 0:
        return
    # A kernel without keys, or a container that refuses the calls: then none can be read either.
    if call(number, FIND, THE_SESSIONS, 0) >= 0:
        raise Problem(
            "the kernel does not give the box a keyring of its own: you may have too many keys",
            "see which, and remove some: cat /proc/keys; keyctl unlink NUMBER",
        )
