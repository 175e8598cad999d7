"""The system call filter of the box, as the program that the kernel runs. What it refuses: refused_calls.py.

The kernel remembers which calls are always allowed (Linux 5.11), and does not run it for them. For the others it is a
binary search by the number of the call.
"""

from __future__ import annotations

from claudebox.features.kernel import refused_calls as table
from claudebox.problem import Problem

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # as the audit subsystem numbers them

LOAD, AND, JUMP, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_SET, RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x45, 0x06
ALLOW, FAIL, KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
# Offsets in struct seccomp_data. The kernel ignores the upper half of these arguments, so must the filter.
CALL, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT, THIRD_ARGUMENT = 0, 4, 16, 24, 32

Instruction = tuple[int, int, int, int]
Block = list[Instruction]  # which always ends with an answer
Case = tuple[tuple[int, ...], Block]

ALLOWED: Block = [(RETURN, 0, 0, ALLOW)]


def call_filter(machine: str, *, with_namespaces: bool = False) -> bytes:
    """Refuse what the table names; kill what uses another architecture's system calls, which have other numbers."""
    if machine not in ARCHITECTURES:
        known = " and ".join(ARCHITECTURES)
        raise Problem(f"claudebox does not know the system calls of {machine}", f"it runs on {known}")
    program: Block = [
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, KILL_PROCESS),
        (LOAD, 0, 0, CALL),
    ]
    _add_search(program, _ranges(_answers(table.MACHINES.index(machine), with_namespaces)))
    # Each is a `struct sock_filter`; the import of `struct` would cost more than this.
    return b"".join([(code | yes << 16 | no << 24 | k << 32).to_bytes(8, "little") for code, yes, no, k in program])


def _answers(machine: int, with_namespaces: bool) -> dict[int, Block]:
    """What happens to the calls that are not simply allowed, by number."""
    answers = {
        numbers[machine]: _fail(refused.error)
        for refused in table.REFUSED
        if not (with_namespaces and refused.of_namespaces)
        for numbers in refused.calls.values()
    }
    answers.pop(table.ABSENT, None)
    answers[table.IOCTL[machine]] = _ioctl()
    answers[table.SOCKET[machine]] = answers[table.SOCKETPAIR[machine]] = _socket()
    if not with_namespaces:
        answers[table.CLONE[machine]] = _namespaces(table.NEW_NAMESPACES)
        answers[table.UNSHARE[machine]] = _namespaces(table.NEW_NAMESPACES | table.NEW_TIME_NAMESPACE)
    return answers


def _ioctl() -> Block:
    return _choose(SECOND_ARGUMENT, [(table.TERMINAL_REQUESTS, _fail(table.NOT_PERMITTED))], ALLOWED)


def _socket() -> Block:
    no_such_protocol = _fail(table.NO_SUCH_PROTOCOL)
    protocols = _choose(THIRD_ARGUMENT, [(table.INTERNET_PROTOCOLS, ALLOWED)], no_such_protocol)
    types: list[Case] = [(table.INTERNET_TYPES, protocols)]
    internet = _choose(SECOND_ARGUMENT, types, _fail(table.NO_SUCH_TYPE), bits=table.TYPE_BITS)
    netlink = _choose(THIRD_ARGUMENT, [(table.NETLINK_PROTOCOLS, ALLOWED)], no_such_protocol)
    families: list[Case] = [
        ((table.UNIX,), ALLOWED),
        ((table.INET, table.INET6), internet),
        ((table.NETLINK,), netlink),
    ]
    return _choose(FIRST_ARGUMENT, families, _fail(table.NO_SUCH_FAMILY))


def _namespaces(flags: int) -> Block:
    refusal = _fail(table.NOT_PERMITTED)
    return [(LOAD, 0, 0, FIRST_ARGUMENT), (JUMP_SET, 0, len(refusal), flags), *refusal, *ALLOWED]


def _fail(error: int) -> Block:
    return [(RETURN, 0, 0, FAIL | error)]


def _choose(argument: int, cases: list[Case], otherwise: Block, bits: int = 0) -> Block:
    """Go by the value of an argument, or of some bits of it."""
    block: Block = [(LOAD, 0, 0, argument)] + ([(AND, 0, 0, bits)] if bits else [])
    for values, answer in cases:
        block += [(JUMP_EQUAL, len(values) - number, 0, value) for number, value in enumerate(values)]
        block += [(JUMP, 0, 0, len(answer)), *answer]
    return block + otherwise


def _ranges(answers: dict[int, Block]) -> list[tuple[int, Block]]:
    """The same answers as ranges of numbers, each up to the next one."""
    marks = {0: ALLOWED, table.FIRST_UNKNOWN: _fail(table.NO_SUCH_CALL), table.X32: _fail(table.NOT_PERMITTED)}
    for number in answers:
        marks.setdefault(number + 1, ALLOWED)
    marks |= answers
    ranges: list[tuple[int, Block]] = []
    for number in sorted(marks):
        if not ranges or ranges[-1][1] != marks[number]:
            ranges.append((number, marks[number]))
    return ranges


def _add_search(program: Block, ranges: list[tuple[int, Block]]) -> None:
    """At its end, which is known only when the lower half has been added."""
    if len(ranges) == 1:
        program += ranges[0][1]
        return
    middle, jump = len(ranges) // 2, len(program)
    program += ALLOWED  # to be replaced
    _add_search(program, ranges[:middle])
    program[jump] = (JUMP_GREATER_EQUAL, len(program) - jump - 1, 0, ranges[middle][0])
    _add_search(program, ranges[middle:])
