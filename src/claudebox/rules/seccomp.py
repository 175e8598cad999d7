"""The system call filter of the box, as the program that the kernel runs.

Without it a program in the box could type into the user's shell (TIOCSTI), which `--new-session` would prevent at the
price of resizing and job control.
"""

from __future__ import annotations

from claudebox.problem import Problem

# Audit architecture and the number of ioctl.
MACHINES = {"x86_64": (0xC000003E, 16), "aarch64": (0xC00000B7, 29)}

TIOCSTI = 0x5412
TIOCLINUX = 0x541C
X32_BIT = 0x40000000

LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, NOT_PERMITTED, KILL_PROCESS = 0x7FFF0000, 0x00050001, 0x80000000
# Offsets in struct seccomp_data. The kernel ignores the upper half of the ioctl number, so must the filter.
CALL, ARCHITECTURE, SECOND_ARGUMENT_LOW = 0, 4, 24


def keystroke_filter(machine: str) -> bytes:
    """Refuse keystroke injection; kill what uses another architecture's system calls, which have other numbers."""
    if machine not in MACHINES:
        raise Problem(f"claudebox does not know the system calls of {machine}", f"it runs on {' and '.join(MACHINES)}")
    architecture, ioctl = MACHINES[machine]
    program = (
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL_PROCESS),
        (LOAD, 0, 0, CALL),
        (JUMP_GREATER_EQUAL, 5, 0, X32_BIT),
        (JUMP_EQUAL, 0, 3, ioctl),
        (LOAD, 0, 0, SECOND_ARGUMENT_LOW),
        (JUMP_EQUAL, 2, 0, TIOCSTI),
        (JUMP_EQUAL, 1, 0, TIOCLINUX),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, NOT_PERMITTED),
    )
    return b"".join(_encode(*instruction) for instruction in program)


def _encode(code: int, if_true: int, if_false: int, operand: int) -> bytes:
    """One `struct sock_filter`, without the import of `struct`."""
    return code.to_bytes(2, "little") + bytes((if_true, if_false)) + operand.to_bytes(4, "little")
