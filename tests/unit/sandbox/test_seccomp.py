"""The program of the filter, run as the kernel would: for every number of a call, on each machine."""

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudebox.sandbox import seccomp as table
from claudebox.sandbox.seccomp import ARCHITECTURES, call_filter

pytestmark = pytest.mark.req("SEC-02")

ALLOW, KILL = "allow", "kill"
HEADERS = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "/usr/include/asm-generic/unistd.h"}
NEWER_THAN_HEADERS = {"open_tree_attr"}
MOST_STEPS = 30


def answer(program: bytes, machine: str, call: int, *arguments: int, architecture: int = 0) -> str | int:
    """ "allow", "kill" or the error; with the machine of the kernel's documentation of classic BPF."""
    filled = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", call, architecture or ARCHITECTURES[machine], 0, *filled)
    instructions = list(struct.iter_unpack("<HBBI", program))
    accumulator = place = 0
    for _ in range(MOST_STEPS):
        code, if_true, if_false, operand = instructions[place]
        place += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == 0x54:
            accumulator &= operand
        elif code == 0x05:
            place += operand
        elif code == 0x06:
            return {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(operand, int(operand) & 0xFFFF)
        else:
            is_so = {0x15: accumulator == operand, 0x35: accumulator >= operand, 0x45: bool(accumulator & operand)}
            place += if_true if is_so[code] else if_false
    raise AssertionError("too long, or a circle")


@pytest.fixture(params=table.MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def refused_numbers(machine: str, with_namespaces: bool) -> dict[int, int]:
    return {
        numbers[table.MACHINES.index(machine)]: refused.error
        for refused in table.REFUSED
        for numbers in refused.calls.values()
        if not (with_namespaces and refused.of_namespaces)
    }


def wanted_of(machine: str, call: int, refused: dict[int, int]) -> str | int:
    if call in (table.SOCKET[table.MACHINES.index(machine)], table.SOCKETPAIR[table.MACHINES.index(machine)]):
        return table.NO_SUCH_FAMILY  # the family is 0 here
    return refused.get(call, ALLOW) if call < table.FIRST_UNKNOWN else table.NO_SUCH_CALL


@pytest.mark.parametrize("with_namespaces", [False, True])
def test_every_call_gets_the_answer_of_the_table(machine: str, with_namespaces: bool) -> None:
    program = call_filter(machine, with_namespaces=with_namespaces)
    refused = refused_numbers(machine, with_namespaces)
    wanted = {call: wanted_of(machine, call, refused) for call in range(600)}
    assert {call: answer(program, machine, call) for call in range(600)} == wanted


def test_calls_of_another_architecture_are_the_end(machine: str) -> None:
    program = call_filter(machine)
    for architecture in (0x40000003, *(set(ARCHITECTURES.values()) - {ARCHITECTURES[machine]})):
        assert answer(program, machine, 0, architecture=architecture) == KILL


def test_x32_is_refused() -> None:
    program = call_filter("x86_64")
    for call in (table.X32, table.X32 | 16, table.X32 | 514, 0xFFFFFFFF):
        assert answer(program, "x86_64", call) == table.NOT_PERMITTED


O_CREAT, O_TMPFILE = 0o100, 0o20200000


def calls_with_modes(machine: str) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Each call, and its arguments but for the mode, which is the last one."""
    known: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {
        "chmod": ((90, -1), (1,)),
        "fchmod": ((91, 52), (3,)),
        "creat": ((85, -1), (1,)),
        "mknod": ((133, -1), (1,)),
        "fchmodat": ((268, 53), (3, 1)),
        "fchmodat2": ((452, 452), (3, 1)),
        "mknodat": ((259, 33), (3, 1)),
        "open": ((2, -1), (1, O_CREAT)),
        "openat": ((257, 56), (3, 1, O_CREAT)),
        "open without a name": ((2, -1), (1, O_TMPFILE | 2)),
        "openat without a name": ((257, 56), (3, 1, O_TMPFILE | 2)),
    }
    numbered = {name: (numbers[table.MACHINES.index(machine)], words) for name, (numbers, words) in known.items()}
    return {name: call for name, call in numbered.items() if call[0] >= 0}


@pytest.mark.parametrize("upper", [0, 0xDEADBEEF << 32])
def test_no_file_becomes_setuid(machine: str, upper: int) -> None:
    program, shared = call_filter(machine), call_filter(machine, with_setgid=True)
    for name, (call, words) in calls_with_modes(machine).items():
        for mode in (0o4755, 0o4000, 0o6777, 0o104755):
            assert answer(program, machine, call, *words, mode | upper) == table.NOT_PERMITTED, name
            assert answer(shared, machine, call, *words, mode | upper) == table.NOT_PERMITTED, name
        assert answer(program, machine, call, *words, 0o2755 | upper) == table.NOT_PERMITTED, name
        for mode in (0o755, 0o1777, 0o644, 0o100644, 0):
            assert answer(program, machine, call, *words, mode | upper) == ALLOW, name
        assert answer(shared, machine, call, *words, 0o2755 | upper) == ALLOW, name


def test_mode_counts_only_where_something_is_made(machine: str) -> None:
    program = call_filter(machine)
    for name, (call, words) in calls_with_modes(machine).items():
        if name.startswith("open"):
            assert answer(program, machine, call, *words[:-1], 0o2, 0o4755) == ALLOW
            assert answer(program, machine, call, *words[:-1], 0o200000, 0o4755) == ALLOW  # O_DIRECTORY on one of them


@pytest.mark.parametrize("upper", [0, 0xDEADBEEF << 32])
def test_terminal_requests_and_leases(machine: str, upper: int) -> None:
    program, ioctl = call_filter(machine), table.IOCTL[table.MACHINES.index(machine)]
    for request in (0x5412, 0x541C, 0x541D, 0x5423):  # TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD
        assert answer(program, machine, ioctl, 0, request | upper) == table.NOT_PERMITTED
    fcntl = table.FCNTL[table.MACHINES.index(machine)]
    assert answer(program, machine, fcntl, 0, 1024 | upper) == table.NOT_PERMITTED  # F_SETLEASE
    assert answer(program, machine, fcntl, 0, 1030 | upper) == ALLOW  # F_DUPFD_CLOEXEC
    for request in (0x5401, 0x5410, 0x5413, 0x5414, 0x540E):  # TCGETS, TIOCSPGRP, the window's size, TIOCSCTTY
        assert answer(program, machine, ioctl, 0, request | upper) == ALLOW


SOCKETS: list[tuple[tuple[int, int, int], str | int]] = [
    ((1, 1, 0), ALLOW),
    ((1, 5, 0), ALLOW),
    ((2, 1, 0), ALLOW),
    ((2, 1 | 0x80800, 6), ALLOW),
    ((2, 1, 262), ALLOW),
    ((2, 2, 1), ALLOW),
    ((10, 2, 17), ALLOW),
    ((10, 2, 58), ALLOW),
    ((2, 1, 132), table.NO_SUCH_PROTOCOL),
    ((10, 6, 33), table.NO_SUCH_TYPE),
    ((2, 5, 0), table.NO_SUCH_TYPE),  # SCTP without its name
    ((2, 6, 0), table.NO_SUCH_TYPE),  # DCCP without its name
    ((2, 2, 136), table.NO_SUCH_PROTOCOL),
    ((16, 3, 0), ALLOW),
    ((16, 3, 12), table.NO_SUCH_PROTOCOL),
    *(((family, 1, 0), table.NO_SUCH_FAMILY) for family in range(3, 50) if family not in (10, 16)),
]


@pytest.mark.parametrize("upper", [0, 0xDEADBEEF << 32])
def test_sockets(machine: str, upper: int) -> None:
    program, index = call_filter(machine), table.MACHINES.index(machine)
    for call in (table.SOCKET[index], table.SOCKETPAIR[index]):
        answers = [(words, answer(program, machine, call, *(word | upper for word in words))) for words, _ in SOCKETS]
        assert answers == SOCKETS


THREAD, PROCESS = 0x3D0F00, 0x1200011  # what the C library asks for
NAMESPACES = {
    "time": 0x00000080,
    "mount": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "network": 0x40000000,
}


@pytest.mark.parametrize("wish", NAMESPACES.values(), ids=NAMESPACES)
def test_namespaces(machine: str, wish: int) -> None:
    index = table.MACHINES.index(machine)
    program, open_program = call_filter(machine), call_filter(machine, with_namespaces=True)
    calls = [table.UNSHARE[index]] + ([table.CLONE[index]] if wish != table.NEW_TIME_NAMESPACE else [])
    for call in calls:
        assert answer(program, machine, call, wish | 17) == table.NOT_PERMITTED
        assert answer(open_program, machine, call, wish | 17) == ALLOW
    for flags in (THREAD, PROCESS, 17):
        assert answer(program, machine, table.CLONE[index], flags) == ALLOW
    assert answer(program, machine, table.UNSHARE[index], 0x600) == ALLOW  # descriptors and directories


def numbers_in(header: str) -> Iterator[tuple[str, int]]:
    for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", Path(header).read_text()):
        yield name, int(number)


@pytest.mark.gcc  # comes with the headers of the kernel
def test_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    known, index = dict(numbers_in(HEADERS[machine])), table.MACHINES.index(machine)
    named = {name: numbers[index] for refused in table.REFUSED for name, numbers in refused.calls.items()}
    inspected = {
        "fcntl": table.FCNTL,
        "ioctl": table.IOCTL,
        "socket": table.SOCKET,
        "socketpair": table.SOCKETPAIR,
        "clone": table.CLONE,
    }
    named |= {name: numbers[index] for name, numbers in inspected.items()} | {"unshare": table.UNSHARE[index]}
    wrong = {name: number for name, number in named.items() if known.get(name, table.ABSENT) != number}
    assert wrong.keys() <= NEWER_THAN_HEADERS
