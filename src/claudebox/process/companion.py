"""Starts processes that live as long as a box, and tells each side when the other has ended.

A companion is beside the box: it stays in the host's namespaces, ends when the parent of the box does, and the parent
ends the box when a companion has ended. A helper is below the process that becomes bwrap, in its namespaces, and the
kernel ends it together with that process. Here are also the small programs of others that connect a box.
"""

from __future__ import annotations

import os
import time

from claudebox.errors import Problem, suppress
from claudebox.files import c_call
from claudebox.model import Port
from claudebox.process import signal
from claudebox.process.isolation import NEW_USER_NAMESPACE, SET_PARENT_DEATH_SIGNAL, advice, close_all_but
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READY = b"\n"
DONE = b"done"  # the last word itself
END = b"end"  # what a companion is told that has a last word
LONGEST_MESSAGE = 4096  # bytes that a pipe takes in one piece
LAST_BREATH_MILLISECONDS = 500
LAST_WORD_SECONDS = 3
NAME = b"claudebox"
# Where the arguments begin and end in memory: fields 48 and 49 of /proc/self/stat, counted from field 3.
ARGUMENTS = slice(45, 47)


class Companion(Record):
    """What the box must not outlive, as the parent sees it: a process, or a file whose lock is held for the box."""

    life: int  # a pipe that ends when the process does; or the locked file
    ended: Callable[[], Problem] | None = None  # what to say when the process has ended; a file never does
    failed: Callable[[], Problem] | None = None  # the same, if it ended before it was ready and without a word
    clean_up: Callable[[], None] | None = None  # removes what a killed process leaves behind
    unfinished: str = ""  # what to say if it cannot finish its work in time; "": it has nothing to finish

    def require_ready(self) -> None:
        """Read what the process says first. Raises the Problem that it has reported."""
        if self.ended is None:
            return
        said = os.read(self.life, LONGEST_MESSAGE)
        if not said:
            raise (self.failed or self.ended)()
        if said != READY:
            message, _, hint = said.decode(errors="replace").partition("\0")
            raise Problem(message, hint)

    def why_ended(self) -> Problem | None:
        """Why the box was ended. A process that is killed closes its pipes one after another: this may be the last."""
        if self.ended is None:
            return None
        import select

        poll = select.poll()
        poll.register(self.life, 0)
        return self.ended() if poll.poll(LAST_BREATH_MILLISECONDS) else None

    def _finishes(self) -> bool:
        import select

        poll, end = select.poll(), time.monotonic() + LAST_WORD_SECONDS
        poll.register(self.life, select.POLLIN)
        try:
            os.set_blocking(self.life, False)
            os.write(self.life, END)
            while poll.poll(max(0.0, end - time.monotonic()) * 1000):
                if (said := os.read(self.life, LONGEST_MESSAGE)) in (b"", DONE):
                    return said == DONE
        except OSError:
            pass  # it is stopped, or has ended without a word
        return False

    def clear(self) -> None:
        """Let go of it when the box has ended. One that has work to finish gets a few seconds for that."""
        if self.unfinished and not self._finishes():
            with suppress(OSError):  # nobody reads it
                os.write(2, self.unfinished.encode())
        os.close(self.life)
        if self.clean_up is not None:
            self.clean_up()


def watch_own_end(purpose: str, without: str) -> int:
    """A descriptor by which others see that this process, the parent of the box, has ended."""
    try:
        return os.pidfd_open(os.getpid())
    except (AttributeError, OSError):  # Python may have been built for an older Linux
        raise Problem(
            f"{purpose}, the kernel has to tell when a process has ended (pidfd_open): Linux 5.3 and later do",
            f"without it: {without}",
        ) from None


def start_beside(work: Callable[[int], None], keep: tuple[int, ...], ends: tuple[int, int] | None = None) -> int:
    """Start a process that does this work and ends. Returns a pipe, or the first of two ends, that ends when it does.

    The process keeps these descriptors, and this one closes them. `work` gets the other end of the pipe, where it
    writes READY. A Problem that it raises before that reaches `require_ready`.
    """
    life, report = ends or os.pipe()

    def do_work() -> None:
        try:
            work(report)
        except Problem as problem:
            os.write(report, f"{problem.message}\0{problem.hint}".encode()[:LONGEST_MESSAGE])

    if os.fork() == 0:
        _become_worker(do_work, (*keep, report))
    for descriptor in (*keep, report):
        os.close(descriptor)
    return life


def start_below(work: Callable[[], None], keep: tuple[int, ...]) -> None:
    """Start a process in the namespaces of this one, which ends with it. No program of the box can see it."""
    if os.fork() == 0:
        die_with_parent()
        _become_worker(work, keep)
    for descriptor in keep:
        os.close(descriptor)


def _become_worker(work: Callable[[], None], keep: tuple[int, ...]) -> None:
    """Leave the terminal, its signals and the arguments, and close all other descriptors: somebody may wait for their
    end."""
    try:
        os.setsid()
        forget_arguments()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        close_all_but(list(keep))
        os.chdir("/")
        work()
    finally:
        os._exit(0)


def die_with_parent() -> None:
    if c_call("prctl", SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0) != 0:
        os._exit(1)


def has_ended(descriptor: int) -> bool:
    """Whether nobody is left at the other end of this pipe. Nobody ever writes into it."""
    return hear(descriptor) == b""


def hear(descriptor: int) -> bytes | None:
    """What the other end says; b"" if nobody is left there, None if it says nothing now."""
    os.set_blocking(descriptor, False)
    try:
        return os.read(descriptor, LONGEST_MESSAGE)
    except BlockingIOError:
        return None
    except ConnectionResetError:
        return b""


def forget_arguments() -> None:
    """Overwrite the arguments: everybody can read them (`ps`), and `--env TOKEN=…` may be among them."""
    with open("/proc/self/stat", "rb") as file:
        start, end = map(int, file.read().rpartition(b")")[2].split()[ARGUMENTS])
    memory = os.open("/proc/self/mem", os.O_WRONLY | os.O_CLOEXEC)
    os.pwrite(memory, NAME.ljust(end - start, b"\0")[: end - start], start)
    os.close(memory)


LOG_SIZE = 4096
FIRST_FREE_PORT = 1024  # only root may open those below
BACKLOG = 128


def load_ruleset(nft: str, ruleset: str) -> str:
    """Have nft load a ruleset in this network namespace. Returns its refusal, or "" if it has loaded it."""
    rules, log = os.memfd_create("ruleset"), make_log("nft")
    os.write(rules, ruleset.encode())
    os.lseek(rules, 0, os.SEEK_SET)
    child = os.fork()
    if child == 0:
        try:
            become_program(nft, ("nft", "-f", "-"), (rules, log, log))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    refusal = "" if status == 0 else log_content(log) or f"{nft} failed"
    os.close(rules)
    os.close(log)
    return refusal


def filter_problem(refusal: str) -> Problem:
    # nft points at the place with a second and a third line, which are left out.
    return Problem(f"the network's filter cannot be loaded: {refusal.splitlines()[0]}", *advice("nf_tables"))


def open_port(port: Port) -> int:
    """Open a port on this host's loopback that --publish names."""
    import socket

    try:
        return socket.create_server(("127.0.0.1", port.host), backlog=BACKLOG).detach()
    except OSError as error:
        is_low = port.host < FIRST_FREE_PORT
        hint = "choose one from 1024 on: --publish 8080:80" if is_low else "see who has it: ss -ltnp"
        why = os.strerror(error.errno or 0)
        raise Problem(f"{port.origin.shown}: port {port.host} of this host cannot be opened: {why}", hint) from None


def become_program(program: str, words: tuple[str, ...], streams: tuple[int, int, int]) -> None:
    """Become a program. The first word counts: pasta and passt are one program."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    close_all_but([])
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python has changed what these do
    try:
        os.execve(program, words, {})
    except OSError as error:
        os.write(2, f"{program} cannot be started: {error.strerror}\n".encode())


def make_log(name: str) -> int:
    """Make a file in memory of limited size. A pipe that nobody reads would end the program that writes to it."""
    import fcntl

    descriptor = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(descriptor, LOG_SIZE)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
    return descriptor


def log_content(log: int) -> str:
    return os.pread(log, LOG_SIZE, 0).rstrip(b"\0").decode(errors="replace").strip()


GET_OWNER = 0xB701  # NS_GET_USERNS


def enter_as_owner(path: str, kind: int) -> bool:
    """Enter a namespace of the box, with the rights of whoever made the user namespace that owns it."""
    namespace = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    owner = c_call("ioctl", namespace, GET_OWNER)
    return c_call("setns", owner, NEW_USER_NAMESPACE) == 0 and c_call("setns", namespace, kind) == 0
