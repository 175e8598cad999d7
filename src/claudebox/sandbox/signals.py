"""What the parent of a box does when a signal comes, which is rare.

A signal for claudebox is meant for the program, which is two pid namespaces away: it is the child of the first process
in the namespace that bwrap made. The host's /proc shows it.
"""

from __future__ import annotations

import os

from claudebox.process import signal
from claudebox.sandbox.parent import Attendant

HANGUP_SECONDS = 5  # for a program to end whose terminal is gone
FROM_A_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
BY_SIGNAL = 128  # and the number, is the exit status of bwrap and of shells
# Signals that nobody types or passes on, so that the user has to be told.
FATAL: dict[int, str] = {
    signal.SIGKILL: "killed",
    signal.SIGSEGV: "segmentation fault",
    signal.SIGABRT: "aborted",
    signal.SIGBUS: "bus error",
    signal.SIGILL: "illegal instruction",
    signal.SIGFPE: "arithmetic error",
    signal.SIGSYS: "bad system call",
}
FIRST = 1  # the number of bwrap in the namespace that it makes


def pass_on(number: int, attendant: Attendant) -> None:
    """Hand the signal to the program. If that has not started yet, the box ends instead.

    What a terminal sends to a process group, the whole group of the box gets.
    """
    if program_of(attendant.child) == 0:
        attendant.end_box(number)
    elif number in FROM_A_TERMINAL:
        os.killpg(attendant.child, number)
    elif not _send(number, attendant.child):
        attendant.end_box(number)
    elif number == signal.SIGHUP and attendant.has_lost_terminal():
        set_limit(attendant)


def set_limit(attendant: Attendant) -> None:
    """Give a program whose terminal is gone some seconds: who closed the window believes that it has ended."""
    signal.signal(signal.SIGALRM, lambda *_: attendant.end_box(signal.SIGHUP))
    signal.alarm(HANGUP_SECONDS)


def _send(number: int, builder: int) -> bool:
    program = program_of(builder)
    if program == 0:
        return False
    try:
        handle = os.pidfd_open(program)
        # The program may have ended meanwhile, and another process may have its number.
        if program_of(builder) != program:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    return True


def describe_end(status: int, has_memory_limit: bool) -> str:
    """What to say if a signal ended the box or the program in it; "" if none did, or if it was meant to."""
    is_box, number = status < 0, -status if status < 0 else status - BY_SIGNAL
    if number == signal.SIGINT and os.isatty(2):
        return "\n"  # the terminal shows ^C; a shell ends that line only for who dies of the signal itself
    if number not in FATAL:
        return ""
    why = ""
    if number == signal.SIGKILL:
        why = ": perhaps it reached --memory" if has_memory_limit else ": perhaps memory ran out"
    return f"claudebox: the {'box' if is_box else 'program'} was ended by signal {number} ({FATAL[number]}){why}\n"


def program_of(builder: int) -> int:
    """The process of the program; 0 if there is none. bwrap starts it first, so its number in the box is the lowest."""
    processes = _processes()
    first = [pid for pid, (parent, inner) in processes.items() if parent == builder and inner == FIRST]
    inside = [(inner, pid) for pid, (parent, inner) in processes.items() if parent in first]
    return min(inside)[1] if inside else 0


def _processes() -> dict[int, tuple[int, int]]:
    """Each process, with its parent and its number in its own namespace."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/status", "rb") as file:
                    fields = dict(line.split(b":", 1) for line in file)
            except OSError:
                continue  # it ended meanwhile
            found[int(name)] = (int(fields[b"PPid"]), int(fields[b"NSpid"].split()[-1]))
    return found


def end_orphans() -> None:
    """End what bwrap left behind: by now it is a child of this process, and its whole namespace ends with it."""
    own = os.readlink("/proc/self/ns/pid")
    for pid, (parent, inner) in _processes().items():
        if parent == os.getpid() and inner == FIRST and _namespace(pid) != own:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""
