"""The system call filter of the box, as the program that the kernel runs.

Without it a program in the box could type into the user's shell (TIOCSTI), which `--new-session` would prevent at the
price of resizing and job control; and on a virtual machine it could talk to the one below, through sockets that belong
to no network namespace.
"""

from __future__ import annotations

from claudebox.problem import Problem

# Audit architecture and the numbers of ioctl and socket.
MACHINES = {"x86_64": (0xC000003E, 16, 41), "aarch64": (0xC00000B7, 29, 198)}
IO_URING_SETUP = 425  # can do most of what is refused here, past the filter

TIOCSTI = 0x5412
TIOCLINUX = 0x541C
VIRTUAL_MACHINES = 40  # AF_VSOCK
X32_BIT = 0x40000000

LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, KILL_PROCESS = 0x7FFF0000, 0x80000000
NOT_PERMITTED, NO_SUCH_CALL, NO_SUCH_FAMILY = 0x00050001, 0x00050026, 0x00050061
# Offsets in struct seccomp_data. The kernel ignores the upper half of these arguments, so must the filter.
CALL, ARCHITECTURE, FIRST_ARGUMENT_LOW, SECOND_ARGUMENT_LOW = 0, 4, 16, 24


def call_filter(machine: str) -> bytes:
    """Refuse a few calls; kill what uses another architecture's system calls, which have other numbers."""
    if machine not in MACHINES:
        raise Problem(f"claudebox does not know the system calls of {machine}", f"it runs on {' and '.join(MACHINES)}")
    architecture, ioctl, socket = MACHINES[machine]
    program = (
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL_PROCESS),
        (LOAD, 0, 0, CALL),
        (JUMP_GREATER_EQUAL, 10, 0, X32_BIT),  # not permitted
        (JUMP_EQUAL, 3, 0, ioctl),
        (JUMP_EQUAL, 5, 0, socket),
        (JUMP_EQUAL, 8, 0, IO_URING_SETUP),
        (RETURN, 0, 0, ALLOW),
        (LOAD, 0, 0, SECOND_ARGUMENT_LOW),  # ioctl
        (JUMP_EQUAL, 4, 0, TIOCSTI),
        (JUMP_EQUAL, 3, 2, TIOCLINUX),
        (LOAD, 0, 0, FIRST_ARGUMENT_LOW),  # socket
        (JUMP_EQUAL, 3, 0, VIRTUAL_MACHINES),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, NOT_PERMITTED),
        (RETURN, 0, 0, NO_SUCH_CALL),
        (RETURN, 0, 0, NO_SUCH_FAMILY),
    )
    return b"".join(_encode(*instruction) for instruction in program)


def _encode(code: int, if_true: int, if_false: int, operand: int) -> bytes:
    """One `struct sock_filter`, without the import of `struct`."""
    return code.to_bytes(2, "little") + bytes((if_true, if_false)) + operand.to_bytes(4, "little")
