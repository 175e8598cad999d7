"""What is said where the kernel refuses a protection, of limits, of input and output, and if there is no yes."""

import errno
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from claudebox import consent, start
from claudebox.errors import Problem
from claudebox.features.limits import Limits
from claudebox.features.limits import systemd as limits
from claudebox.model import Launch
from claudebox.output import terminal
from claudebox.process import isolation
from claudebox.sandbox.launch import launch
from claudebox.sandbox.terminal import open_users_terminal, relay, session
from errors.scene import Problems, Scene
from saying import parse


def no_proc_of_its_own(scene: Scene) -> None:
    scene.monkeypatch.setattr(isolation, "apparmor_forbids", lambda: False)
    scene.monkeypatch.setattr(isolation, "c_call", lambda *_: -1)
    isolation._renew_proc()


def unknown_architecture(scene: Scene) -> None:
    scene.machine.architecture = "riscv64"
    scene.plan()


def scopes_refused(scene: Scene) -> None:
    def refuse(_: str, number: int, *more: object) -> int:
        is_asked = number == isolation.CREATE_RULESET and more[-1] == isolation.ASK_VERSION
        return isolation.SCOPES_SINCE if is_asked else -1

    scene.monkeypatch.setattr(isolation, "c_call", refuse)
    isolation.scope_to_box()


def keyring_refused(scene: Scene) -> None:
    def refuse(_: str, __: int, what: int, *___: int) -> int:
        return -1 if what == isolation.JOIN_SESSION else 1

    scene.monkeypatch.setattr(isolation, "c_call", refuse)
    isolation.leave_session_keyring()


def userns_as_root(scene: Scene) -> None:
    scene.machine.uid = 0
    scene.plan("--userns", "on")


def limit_refused(scene: Scene, busctl: str) -> None:
    scene.monkeypatch.setattr(limits, "MOVE_PATIENCE_SECONDS", 0.05)
    limits.put_into_force(Limits(busctl, 1 << 30, 0, 0))


@contextmanager
def in_its_place(stream: int, descriptor: int) -> Iterator[None]:
    """Have a standard stream be something else for a while."""
    kept = os.dup(stream)
    os.dup2(descriptor, stream)
    try:
        yield
    finally:
        os.dup2(kept, stream)
        os.close(kept)
        os.close(descriptor)


def directory_as_standard_input(scene: Scene) -> None:
    with in_its_place(0, os.open("/", os.O_RDONLY)):
        launch(Launch(scene.machine.plan()))


def standard_input_cannot_be_read(scene: Scene) -> None:
    with in_its_place(0, os.open(scene.machine.root / "file", os.O_WRONLY | os.O_CREAT)):
        launch(Launch(scene.machine.plan()))


def standard_output_closed(scene: Scene) -> None:
    scene.monkeypatch.setattr(sys, "stdout", None)
    terminal.show("text")


def standard_output_full(_: Scene) -> None:
    with in_its_place(1, os.open("/dev/full", os.O_WRONLY)):
        terminal.show("text")


def socket_as_standard_input(_: Scene) -> None:
    with in_its_place(0, socket.socket(type=socket.SOCK_DGRAM).detach()):
        isolation.check_standard_streams()


def no_pseudoterminals(scene: Scene) -> None:
    def refuse() -> tuple[int, int]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    scene.monkeypatch.setattr(os, "openpty", refuse)
    session.fork_on_terminal(-1, into_namespaces=False)


def terminal_of_somebody_else(scene: Scene) -> None:
    scene.monkeypatch.setattr(os, "isatty", lambda _: True)
    scene.monkeypatch.setattr(os, "open", lambda *_: os.lstat("/no/such/terminal"))
    open_users_terminal()


def two_terminals(scene: Scene) -> None:
    pairs = [os.openpty(), os.openpty()]
    try:
        relay.require_one_terminal(pairs[0][1], (pairs[0][1], pairs[1][1]))
    except Problem as problem:
        # The number is another each time.
        problem.message = problem.message.replace(str(pairs[1][1]), "1", 1)
        raise
    finally:
        for descriptor in (*pairs[0], *pairs[1]):
            os.close(descriptor)


def refused_answer(scene: Scene) -> None:
    scene.monkeypatch.setattr(consent, "ask", lambda _: "n")
    scene.monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    scene.monkeypatch.setattr(sys.stderr, "write", lambda _: 0)
    start.confirm(scene.machine.host(), scene.machine.plan(), parse([]))


def nobody_to_ask(scene: Scene) -> None:
    scene.monkeypatch.setattr(sys.stderr, "write", lambda _: 0)
    start.confirm(scene.machine.host(), scene.machine.plan(), parse([]))


PROBLEMS: Problems = {
    "keyring-refused": keyring_refused,
    "scopes-refused": scopes_refused,
    "machine-unknown": unknown_architecture,
    "userns-as-root": userns_as_root,
    "namespace-proc": no_proc_of_its_own,
    "limit-no-amount": lambda scene: scene.plan("--memory", "4X"),
    "limit-too-little": lambda scene: scene.plan("--pids", "3"),
    "limit-without-systemd": lambda scene: scene.plan("--memory", "4G"),
    "limit-without-a-bus": lambda scene: scene.planted("/usr/bin/busctl*").plan("--memory", "4G"),
    "limit-refused": lambda scene: limit_refused(scene, "/bin/false"),
    "limit-without-effect": lambda scene: limit_refused(scene, "/bin/true"),
    "input-is-a-socket": socket_as_standard_input,
    "input-unreadable": standard_input_cannot_be_read,
    "output-closed": standard_output_closed,
    "output-full": standard_output_full,
    "pseudoterminals": no_pseudoterminals,
    "streams-directory": directory_as_standard_input,
    "terminal-of-somebody-else": terminal_of_somebody_else,
    "two-terminals": two_terminals,
    "answer-no": refused_answer,
    "answer-impossible": nobody_to_ask,
}
