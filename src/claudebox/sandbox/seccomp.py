"""Makes the system call filter of the box, as the program that the kernel runs. A table at the end says what it
refuses.

Since Linux 5.11 the kernel remembers which calls are always allowed, and does not run the program for them. For the
others the program is a binary search by the number of the call.
"""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.record import Record

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # as the audit subsystem numbers them

LOAD, AND, JUMP, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_SET, RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x45, 0x06
ALLOW, FAIL, KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
# Offsets in struct seccomp_data. The kernel ignores the upper half of these arguments, and so must the filter.
CALL, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT, THIRD_ARGUMENT, FOURTH_ARGUMENT = 0, 4, 16, 24, 32, 40

Instruction = tuple[int, int, int, int]
Block = list[Instruction]  # which always ends with an answer
Case = tuple[tuple[int, ...], Block]

ALLOWED: Block = [(RETURN, 0, 0, ALLOW)]


def call_filter(machine: str, *, with_namespaces: bool = False, with_setgid: bool = False) -> bytes:
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
    modes = SETUID if with_setgid else SETUID | SETGID
    _add_search(program, _ranges(_answers(MACHINES.index(machine), with_namespaces, modes)))
    # Each is a `struct sock_filter`; the import of `struct` would cost more than this. Jumps must fit into a byte.
    return b"".join([bytes((code, 0, yes, no)) + k.to_bytes(4, "little") for code, yes, no, k in program])


def _answers(machine: int, with_namespaces: bool, modes: int) -> dict[int, Block]:
    """What the filter answers to the calls that are not simply allowed, by their numbers."""
    answers = {
        numbers[machine]: _fail(refused.error)
        for refused in REFUSED
        if not (with_namespaces and refused.of_namespaces)
        for numbers in refused.calls.values()
    }
    for mode, calls in MODES.items():
        answers |= {numbers[machine]: _refuse_bits(mode, modes) for numbers in calls.values()}
    for (flags, mode), numbers in OPENING.items():
        answers[numbers[machine]] = _opening(flags, mode, modes)
    answers.pop(ABSENT, None)
    answers[IOCTL[machine]] = _unless(TERMINAL_REQUESTS)
    answers[FCNTL[machine]] = _unless(LEASES)
    answers[SOCKET[machine]] = answers[SOCKETPAIR[machine]] = _socket()
    if not with_namespaces:
        answers[CLONE[machine]] = _refuse_bits(FIRST_ARGUMENT, NEW_NAMESPACES)
        answers[UNSHARE[machine]] = _refuse_bits(FIRST_ARGUMENT, NEW_NAMESPACES | NEW_TIME_NAMESPACE)
    return answers


def _unless(commands: tuple[int, ...]) -> Block:
    return _choose(SECOND_ARGUMENT, [(commands, _fail(NOT_PERMITTED))], ALLOWED)


def _socket() -> Block:
    no_such_protocol = _fail(NO_SUCH_PROTOCOL)
    protocols = _choose(THIRD_ARGUMENT, [(INTERNET_PROTOCOLS, ALLOWED)], no_such_protocol)
    types: list[Case] = [(INTERNET_TYPES, protocols)]
    internet = _choose(SECOND_ARGUMENT, types, _fail(NO_SUCH_TYPE), bits=TYPE_BITS)
    netlink = _choose(THIRD_ARGUMENT, [(NETLINK_PROTOCOLS, ALLOWED)], no_such_protocol)
    families: list[Case] = [((UNIX,), ALLOWED), ((INET, INET6), internet), ((NETLINK,), netlink)]
    return _choose(FIRST_ARGUMENT, families, _fail(NO_SUCH_FAMILY))


def _refuse_bits(argument: int, refused: int) -> Block:
    refusal = _fail(NOT_PERMITTED)
    return [(LOAD, 0, 0, argument), (JUMP_SET, 0, len(refusal), refused), *refusal, *ALLOWED]


def _opening(flags: int, mode: int, refused: int) -> Block:
    """Where nothing is made, the argument for its mode is whatever was left there."""
    judged = _refuse_bits(mode, refused)
    return [(LOAD, 0, 0, flags), (JUMP_SET, 0, len(judged), CREATES), *judged, *ALLOWED]


def _fail(error: int) -> Block:
    return [(RETURN, 0, 0, FAIL | error)]


def _choose(argument: int, cases: list[Case], otherwise: Block, bits: int = 0) -> Block:
    """Answer by the value of an argument, or of some bits of it."""
    block: Block = [(LOAD, 0, 0, argument)] + ([(AND, 0, 0, bits)] if bits else [])
    for values, answer in cases:
        block += [(JUMP_EQUAL, len(values) - number, 0, value) for number, value in enumerate(values)]
        block += [(JUMP, 0, 0, len(answer)), *answer]
    return block + otherwise


def _ranges(answers: dict[int, Block]) -> list[tuple[int, Block]]:
    """The same answers as ranges of numbers, each up to the next one."""
    marks = {0: ALLOWED, FIRST_UNKNOWN: _fail(NO_SUCH_CALL), X32: _fail(NOT_PERMITTED)}
    for number in answers:
        marks.setdefault(number + 1, ALLOWED)
    marks |= answers
    ranges: list[tuple[int, Block]] = []
    for number in sorted(marks):
        if not ranges or ranges[-1][1] != marks[number]:
            ranges.append((number, marks[number]))
    return ranges


def _add_search(program: Block, ranges: list[tuple[int, Block]]) -> None:
    """Append a binary search. Where its upper half begins is known only when the lower half has been added."""
    if len(ranges) == 1:
        program += ranges[0][1]
        return
    middle, jump = len(ranges) // 2, len(program)
    program += ALLOWED  # to be replaced
    _add_search(program, ranges[:middle])
    program[jump] = (JUMP_GREATER_EQUAL, len(program) - jump - 1, 0, ranges[middle][0])
    _add_search(program, ranges[middle:])


MACHINES = tuple(ARCHITECTURES)  # in the order of the numbers below
ABSENT = -1

# EPERM and so on.
NOT_PERMITTED, NO_SUCH_CALL, NO_SUCH_PROTOCOL, NO_SUCH_TYPE, NO_SUCH_FAMILY = 1, 38, 93, 94, 97


class Refused(Record):
    """Calls, the error that they end with, and the reason."""

    reason: str
    error: int
    rows: str  # each call with its numbers on both machines
    of_namespaces: bool = False  # allowed if the box may make user namespaces: without one they are of no use

    @property
    def calls(self) -> dict[str, tuple[int, int]]:
        words = (row.split() for row in self.rows.split(","))
        return {name: (int(first), int(second)) for name, first, second in words}


REFUSED = (
    Refused(
        *("keys that the kernel keeps belong to the user's session, and outlive the box", NO_SUCH_CALL),
        "add_key 248 217, request_key 249 218, keyctl 250 219",
    ),
    Refused(
        *("can do most of what is refused here, past the filter", NO_SUCH_CALL),
        "io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427",
    ),
    Refused("holds the kernel in the middle of a copy: half of many exploits", NO_SUCH_CALL, "userfaultfd 323 282"),
    Refused(
        *("runs programs in the kernel, or watches it and other processes", NOT_PERMITTED),
        "bpf 321 280, perf_event_open 298 241, lookup_dcookie 212 18",
    ),
    Refused("the messages of the kernel tell of the host", NOT_PERMITTED, "syslog 103 116"),
    Refused(
        *("replaces or extends the kernel", NOT_PERMITTED),
        "kexec_load 246 104, kexec_file_load 320 294, init_module 175 105, finit_module 313 273, delete_module 176 106",
    ),
    Refused(
        *("administers the whole machine", NOT_PERMITTED),
        "reboot 169 142, swapon 167 224, swapoff 168 225, acct 163 89, quotactl 179 60, quotactl_fd 443 443, "
        "nfsservctl 180 42, vhangup 153 58, settimeofday 164 170, clock_settime 227 112",
    ),
    Refused(
        *("reaches hardware, or parts of the processor that only old programs use", NOT_PERMITTED),
        "iopl 172 -1, ioperm 173 -1, modify_ldt 154 -1",
    ),
    Refused(
        *("opens a file by its number, whatever is mounted over its name", NOT_PERMITTED),
        "open_by_handle_at 304 265",
    ),
    Refused(
        *("makes files with a mode that cannot be seen from here; programs take openat instead", NO_SUCH_CALL),
        "openat2 437 437",
    ),
    Refused(
        *("changes what is mounted, or the names and the root of a namespace", NOT_PERMITTED),
        "mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, open_tree 428 428, move_mount 429 429, "
        "fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, mount_setattr 442 442, "
        "open_tree_attr 467 467, sethostname 170 161, setdomainname 171 162, setns 308 268",
        of_namespaces=True,
    ),
    Refused(
        *(
            "its flags, which may ask for a namespace, cannot be seen from here; the C library takes clone instead",
            NO_SUCH_CALL,
        ),
        "clone3 435 435",
        of_namespaces=True,
    ),
)

# A call that is newer than this table may do anything. Programs that use it can do without, for older kernels.
FIRST_UNKNOWN = 470
X32 = 0x40000000  # the other numbers of x86_64

# Calls whose arguments decide.
IOCTL, FCNTL, SOCKET, SOCKETPAIR = (16, 29), (72, 25), (41, 198), (53, 199)
CLONE, UNSHARE = (56, 220), (272, 97)

# A file that makes whoever starts it the user is, for other accounts of the host, the way to what is the user's. In the
# box it has no effect. The error is the one that programs know from files of somebody else. A mode that is given to
# mkdir needs no look: the kernel drops these bits from it.
SETUID, SETGID = 0o4000, 0o2000
MODES = {  # by the argument that is the mode
    SECOND_ARGUMENT: {"chmod": (90, ABSENT), "fchmod": (91, 52), "creat": (85, ABSENT), "mknod": (133, ABSENT)},
    THIRD_ARGUMENT: {"fchmodat": (268, 53), "fchmodat2": (452, 452), "mknodat": (259, 33)},
}
OPENING = {  # by the arguments that are flags and mode: open and openat
    (SECOND_ARGUMENT, THIRD_ARGUMENT): (2, ABSENT),
    (THIRD_ARGUMENT, FOURTH_ARGUMENT): (257, 56),
}
CREATES = 0o100 | 0o20000000  # O_CREAT, and the bit of O_TMPFILE that is its own

TERMINAL_REQUESTS = (
    0x5412,  # TIOCSTI: types into the user's shell, once the box has ended
    0x541C,  # TIOCLINUX: the same on a console, by pasting
    0x541D,  # TIOCCONS: takes the messages of the kernel
    0x5423,  # TIOCSETD: loads a line discipline, of which each had its exploits
)

# A lease on a file, even through a read-only mount, makes every program of the host that opens it wait or fail: `git`,
# an editor, or a second box that reads what to guard. F_SETLEASE, F_GETLEASE, F_GETDELEG, F_SETDELEG.
LEASES = (1024, 1025, 1039, 1040)

UNIX, INET, INET6, NETLINK = 1, 2, 10, 16  # families; others, such as AF_VSOCK, go past any network namespace
INTERNET_TYPES = (1, 2, 3)  # stream, datagram, raw; others are protocols of their own
TYPE_BITS = 0xF  # the other bits are flags
INTERNET_PROTOCOLS = (0, 1, 6, 17, 58, 262)  # the default, ICMP, TCP, UDP, ICMPv6, MPTCP: not SCTP, DCCP and their kin
NETLINK_PROTOCOLS = (0,)  # addresses and routes, which the C library asks for; not the firewall, devices, audit

NEW_NAMESPACES = (
    0x10000000  # user, which makes all others possible
    | 0x20000000  # pid
    | 0x40000000  # network
    | 0x00020000  # mount
    | 0x02000000  # cgroup
    | 0x04000000  # uts
    | 0x08000000  # ipc
)
NEW_TIME_NAMESPACE = 0x80  # for unshare alone; clone has the number of a signal there
