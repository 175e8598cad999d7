"""The system calls that the box refuses, and why: those that an ordinary program never makes, or can do without.

Most need privileges that nothing in the box has. They are refused nevertheless, because what is never entered has no
bug to exploit. Each answer is one that programs know from a kernel that lacks the call or the permission, so that they
go another way. What compilers, debuggers of their own children, and the usual runtimes need is not here: ptrace,
process_vm_readv, personality, seccomp, landlock, memfd_create.
"""

from __future__ import annotations

from claudebox.record import Record

MACHINES = ("x86_64", "aarch64")  # in the order of the numbers below
ABSENT = -1

# EPERM and so on.
NOT_PERMITTED, NO_SUCH_CALL, NO_SUCH_PROTOCOL, NO_SUCH_TYPE, NO_SUCH_FAMILY = 1, 38, 93, 94, 97


class Refused(Record):
    """Calls with their numbers on each machine, the error that they end with, and the reason."""

    reason: str
    error: int
    calls: dict[str, tuple[int, int]]
    of_namespaces: bool = False  # of use to who has made a user namespace in the box, and to nobody else


REFUSED = (
    Refused(
        "keys that the kernel keeps belong to the user's session, and outlive the box",
        NO_SUCH_CALL,
        {"add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219)},
    ),
    Refused(
        "can do most of what is refused here, past the filter",
        NO_SUCH_CALL,
        {"io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427)},
    ),
    Refused(
        "holds the kernel in the middle of a copy: half of many exploits",
        NO_SUCH_CALL,
        {"userfaultfd": (323, 282)},
    ),
    Refused(
        "runs programs in the kernel, or watches it and other processes",
        NOT_PERMITTED,
        {"bpf": (321, 280), "perf_event_open": (298, 241), "lookup_dcookie": (212, 18)},
    ),
    Refused("the messages of the kernel tell of the host", NOT_PERMITTED, {"syslog": (103, 116)}),
    Refused(
        "replaces or extends the kernel",
        NOT_PERMITTED,
        {
            "kexec_load": (246, 104),
            "kexec_file_load": (320, 294),
            "init_module": (175, 105),
            "finit_module": (313, 273),
            "delete_module": (176, 106),
        },
    ),
    Refused(
        "administers the whole machine",
        NOT_PERMITTED,
        {
            "reboot": (169, 142),
            "swapon": (167, 224),
            "swapoff": (168, 225),
            "acct": (163, 89),
            "quotactl": (179, 60),
            "quotactl_fd": (443, 443),
            "nfsservctl": (180, 42),
            "vhangup": (153, 58),
            "settimeofday": (164, 170),
            "clock_settime": (227, 112),
        },
    ),
    Refused(
        "reaches hardware, or parts of the processor that only old programs use",
        NOT_PERMITTED,
        {"iopl": (172, ABSENT), "ioperm": (173, ABSENT), "modify_ldt": (154, ABSENT)},
    ),
    Refused(
        "opens a file by its number, whatever is mounted over its name",
        NOT_PERMITTED,
        {"open_by_handle_at": (304, 265)},
    ),
    Refused(
        "changes what is mounted, or the names and the root of a namespace",
        NOT_PERMITTED,
        {
            "mount": (165, 40),
            "umount2": (166, 39),
            "pivot_root": (155, 41),
            "chroot": (161, 51),
            "open_tree": (428, 428),
            "move_mount": (429, 429),
            "fsopen": (430, 430),
            "fsconfig": (431, 431),
            "fsmount": (432, 432),
            "fspick": (433, 433),
            "mount_setattr": (442, 442),
            "open_tree_attr": (467, 467),
            "sethostname": (170, 161),
            "setdomainname": (171, 162),
            "setns": (308, 268),
        },
        of_namespaces=True,
    ),
    Refused(
        "its flags, which may ask for a namespace, cannot be seen from here; the C library takes clone instead",
        NO_SUCH_CALL,
        {"clone3": (435, 435)},
        of_namespaces=True,
    ),
)

# What is newer than this table may do anything. A program that uses it has a way without, for older kernels.
FIRST_UNKNOWN = 470
X32 = 0x40000000  # the other numbers of x86_64

# Calls of which the arguments decide.
IOCTL, SOCKET, SOCKETPAIR = (16, 29), (41, 198), (53, 199)
CLONE, UNSHARE = (56, 220), (272, 97)

TERMINAL_REQUESTS = (
    0x5412,  # TIOCSTI: types into the user's shell, once the box has ended
    0x541C,  # TIOCLINUX: the same on a console, by pasting
    0x541D,  # TIOCCONS: takes the messages of the kernel
    0x5423,  # TIOCSETD: loads a line discipline, of which each had its exploits
)

UNIX, INET, INET6, NETLINK = 1, 2, 10, 16  # families; AF_VSOCK and AF_PACKET, for two, go past any network namespace
INTERNET_TYPES = (1, 2, 3)  # stream, datagram, raw; others are protocols of their own
TYPE_BITS = 0xF  # beside them, flags
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
NEW_TIME_NAMESPACE = 0x80  # of unshare; a clone has the number of a signal there
