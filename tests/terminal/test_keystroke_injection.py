"""TIOCSTI puts characters into the terminal's input, where the user's shell reads them once the box has ended."""

import platform
from pathlib import Path

import pytest

from conftest import Box
from terminal.pseudoterminal import Terminal, program_terminal, shell_terminal, terminal

pytestmark = pytest.mark.req("SAND-15")

# Each attempt is one line of output: what was tried, and the error or `injected`.
INJECT = """\
import ctypes, errno, os, platform

IOCTL = {"x86_64": 16, "aarch64": 29}[platform.machine()]
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
UPPER_BITS = 0xDEADBEEF00000000  # of no meaning to the kernel
X32 = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)

def attempt(name, path, request, payload=b"#", call=IOCTL):
    descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY) if path else 0
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(call), ctypes.c_ulong(descriptor), ctypes.c_ulong(request), payload)
    outcome = "injected" if result == 0 else errno.errorcode[ctypes.get_errno()]
    print("attempt", path or "stdin", name, outcome, flush=True)

for path in ("", "/dev/tty", *PATHS):
    attempt("TIOCSTI", path, TIOCSTI)
    attempt("TIOCSTI+upper", path, TIOCSTI | UPPER_BITS)
    attempt("TIOCLINUX", path, TIOCLINUX, b"\\x03\\x00")
    attempt("TIOCLINUX+upper", path, TIOCLINUX | UPPER_BITS, b"\\x03\\x00")
if platform.machine() == "x86_64":
    attempt("TIOCSTI+x32", "", TIOCSTI, call=IOCTL | X32)
print("end", flush=True)
"""

# ioctl(0, TIOCSTI, "#") by the 32-bit entry, where ioctl has another number. The address has to fit in 32 bits.
INJECT_32_BIT = """\
import ctypes, mmap

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
LOW, READ_WRITE_EXECUTE, PRIVATE_ANONYMOUS_FIXED = 0x10000000, 7, 0x32
assert libc.mmap(ctypes.c_void_p(LOW), 4096, READ_WRITE_EXECUTE, PRIVATE_ANONYMOUS_FIXED, -1, 0) == LOW
code = (
    b"\\x53"                                      # push rbx
    b"\\xb8" + (54).to_bytes(4, "little") +       # mov eax, ioctl
    b"\\xbb" + (0).to_bytes(4, "little") +        # mov ebx, stdin
    b"\\xb9" + (0x5412).to_bytes(4, "little") +   # mov ecx, TIOCSTI
    b"\\xba" + (LOW + 256).to_bytes(4, "little") +  # mov edx, the character
    b"\\xcd\\x80\\x5b\\xc3"                          # int 0x80; pop rbx; ret
)
ctypes.memmove(LOW, code, len(code))
ctypes.memmove(LOW + 256, b"#", 1)
print("attempt", ctypes.CFUNCTYPE(ctypes.c_int)(LOW)(), flush=True)
"""


TYPE_A_COMMAND = """\
import fcntl, termios

for key in "touch typed-by-the-box\\n":
    fcntl.ioctl(0, termios.TIOCSTI, key)
"""


def attempts(opened: Terminal) -> dict[str, str]:
    opened.read_until("^end")
    lines = [line.split() for line in opened.seen.decode().splitlines() if "attempt" in line]
    return {f"{words[-3]} {words[-2]}": words[-1] for words in lines}


def legacy_injection_is_allowed() -> bool:
    """By the kernel, to everybody. A kernel without the switch is older than it, and allows."""
    try:
        return Path("/proc/sys/dev/tty/legacy_tiocsti").read_text() != "0\n"
    except FileNotFoundError:
        return True


def test_box_cannot_type_into_the_terminal(box: Box) -> None:
    source = INJECT.replace("*PATHS", '"/dev/console"')
    with program_terminal(box, "python3", source) as opened:
        found = attempts(opened)
    names = [f"{call}{upper}" for call in ("TIOCSTI", "TIOCLINUX") for upper in ("", "+upper")]
    wanted = {f"{path} {name}": "EPERM" for path in ("stdin", "/dev/tty", "/dev/console") for name in names}
    if platform.machine() == "x86_64":
        wanted["stdin TIOCSTI+x32"] = "EPERM"
    assert found == wanted


def test_the_same_attempts_succeed_outside(box: Box) -> None:
    """Or else the test above would prove nothing."""
    box.account.write(box.project / "program", INJECT.replace("*PATHS", ""))
    with terminal(box.account, "python3", "program", cwd=box.project) as opened:
        found = attempts(opened)
    typed = "injected" if legacy_injection_is_allowed() or box.account.is_root else "EIO"
    wanted = {
        f"{path} {call}{upper}": outcome
        for path in ("stdin", "/dev/tty")
        for call, outcome in (("TIOCSTI", typed), ("TIOCLINUX", "ENOTTY"))
        for upper in ("", "+upper")
    }
    found.pop("stdin TIOCSTI+x32", None)  # most kernels are built without x32
    assert found == wanted


@pytest.mark.x86  # only it has a second set of system calls
def test_32_bit_system_calls_are_no_way_round(box: Box) -> None:
    with program_terminal(box, "python3", INJECT_32_BIT) as opened:
        status = opened.wait()
    # SIGSYS from the filter, or SIGSEGV where the kernel has no 32-bit entry at all.
    assert status in (128 + 31, 128 + 11)
    assert "attempt" not in opened.seen.decode()


def test_shell_of_the_user_receives_nothing_from_the_box(box: Box) -> None:
    """The whole attack: a line typed by the box, waiting for the shell that comes after it."""
    with shell_terminal(box, program=TYPE_A_COMMAND, typed="claudebox --yes --run python3 program\n") as shell:
        shell.read_until("PermissionError")
        shell.answer("host> ", "echo one more command\n")
        shell.read_until("^one more command")
    assert not (box.project / "typed-by-the-box").exists()
