"""Starts the small programs that connect a box, and says why they could not."""

from __future__ import annotations

import os

from claudebox.model import Port
from claudebox.problem import Problem
from claudebox.process import signal
from claudebox.process.companion import start_below
from claudebox.process.isolation import advice, close_all_but

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


def start_carrier(listeners: list[tuple[int, int]]) -> None:
    """Start a process in this network that carries what arrives at each listener to a port of the loopback here.

    All that the box can do with it is to reach its own ports.
    """
    if not listeners:
        return

    def carry() -> None:
        from claudebox.process.carrier import carry_to_loopback

        carry_to_loopback(listeners)

    start_below(carry, tuple(listener for listener, _ in listeners))


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
