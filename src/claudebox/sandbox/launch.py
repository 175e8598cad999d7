"""Starts a box as its Plan says: one process becomes two.

The child becomes bwrap. The parent stays outside, waits, and does what comes afterwards (`parent.py`, which the child
never loads). Everything else is a step of the Plan, which its feature does.
"""

from __future__ import annotations

import os
import stat

from claudebox.errors import CANNOT_EXECUTE, Problem, suppress
from claudebox.files import c_call, prepare
from claudebox.model import Launch, Step
from claudebox.process import signal
from claudebox.process.companion import die_with_parent, has_ended
from claudebox.process.isolation import (
    ADOPT_ORPHANS,
    check_standard_streams,
    close_all_but,
    fork_into_namespaces,
    leave_session_keyring,
    scope_to_box,
    seal_standard_input,
)
from claudebox.sandbox.argv import SECCOMP, bwrap_operations, program_words
from claudebox.sandbox.gate import Gate, expect
from claudebox.sandbox.judge import refusal
from claudebox.sandbox.terminal import BoxTerminal, open_users_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def launch(launch: Launch) -> NoReturn:
    """Start the box, wait for its end, do what comes afterwards, and end as the program in it did.

    What comes afterwards has standard error and the terminal, but not standard output. A Problem there is shown, and
    the exit status is 125.
    """
    plan = launch.plan
    check_standard_streams()
    seal_standard_input()
    streams = [os.fstat(descriptor) for descriptor in (0, 1, 2)]
    prepare(plan.preparations)
    # What runs beside the box comes first: the limits of the box must not count it, or the box could get it killed.
    companions = [feature.beside(launch) for feature in launch.acts(Step.BESIDE)]
    for feature in launch.acts(Step.BEFORE):
        feature.before(launch)
    pump, of_others = None, (stat.S_IFIFO, stat.S_IFSOCK)  # a pipe could be opened again, with other rights
    carried = [number for number, one in enumerate(streams) if stat.S_IFMT(one.st_mode) in of_others]
    if carried:
        from claudebox.sandbox.pump import Pump

        pump = Pump(carried)
        streams = [pump.streams.get(number, stream) for number, stream in enumerate(streams)]
    gate = Gate(plan.kernel.seccomp, expect(launch.mounts, plan.review), plan.law, streams)
    descriptors = [gate.for_bwrap]
    options = open_options(launch, gate, descriptors)
    if plan.kernel.drop_groups:
        with suppress(PermissionError):  # root of a user namespace may not drop them, and has none that matter
            os.setgroups([])
    inside = [(feature, os.pipe()) for feature in launch.acts(Step.INSIDE)]
    # A network of its own needs a namespace that claudebox makes.
    has_namespace = plan.kernel.owns_pid_namespace or bool(inside)
    starting, _ = os.pipe()  # ends when the child becomes another program
    below, above = os.pipe()  # ends when the parent does
    child, terminal = fork_box(into_namespaces=has_namespace)
    if child != 0:
        from claudebox.sandbox.parent import Attendant

        pipes = tuple(ours for _, (ours, _) in inside)
        attendant = Attendant(child, terminal, companions, pipes, pump, has_namespace=has_namespace)
        attendant.attend(launch, gate, starting, above)
    os.close(above)
    die_with_parent()
    if has_ended(below):
        os._exit(1)  # the parent died before the kernel was asked to watch it
    leave_session_keyring()
    for feature in launch.acts(Step.MOUNT):
        feature.mount(launch)
    for feature, ends in inside:
        feature.inside(launch, *ends)
    if pump is not None:
        pump.enter()
    become_bwrap(launch, options, descriptors)


LONGEST_LABEL = 60  # characters, of up to four bytes each: the kernel takes 249 bytes, and a path may be longer


def open_options(launch: Launch, gate: Gate, descriptors: list[int]) -> list[str]:
    """The options of bwrap, with a descriptor in the place of each piece of data."""
    options = []
    for word in (word for operation in bwrap_operations(launch.plan, launch) for word in operation):
        if isinstance(word, str):
            options.append(word)
        elif word.label == SECCOMP:
            options.append(str(gate.for_bwrap))
        else:
            descriptors.append(os.memfd_create(word.label[:LONGEST_LABEL], 0))
            os.write(descriptors[-1], word.content)
            os.lseek(descriptors[-1], 0, os.SEEK_SET)
            options.append(str(descriptors[-1]))
    if options.count("--seccomp") != 1 or options[options.index("--seccomp") + 1] != str(gate.for_bwrap):
        raise refusal("it would start without its seccomp filter, and without the judge")
    return options


def fork_box(*, into_namespaces: bool) -> tuple[int, BoxTerminal | None]:
    """Fork the process that becomes bwrap, in a process group of its own; 0 in that process.

    Where it would have the user's terminal, it gets one of its own.
    """
    if not into_namespaces:
        # What bwrap leaves behind becomes a child of this process, which ends it.
        c_call("prctl", ADOPT_ORPHANS, 1, 0, 0, 0)
    terminal = open_users_terminal()
    if terminal >= 0:
        from claudebox.sandbox.terminal.session import fork_on_terminal

        return fork_on_terminal(terminal, into_namespaces=into_namespaces)
    child = fork_into_namespaces() if into_namespaces else os.fork()
    if child == 0:
        os.setpgid(0, 0)
        scope_to_box()
    return child, None


def become_bwrap(launch: Launch, options: list[str], descriptors: list[int]) -> NoReturn:
    plan = launch.plan
    argv = [plan.bwrap, *options, *program_words(plan)]
    close_all_but(descriptors)
    _set_signals()
    environment = {variable.name: variable.value for variable in launch.environment if not variable.late}
    try:
        os.execve(plan.bwrap, argv, environment)
    except OSError as error:
        raise Problem(f"{plan.bwrap} cannot be started: {error.strerror}", status=CANNOT_EXECUTE) from None


def _set_signals() -> None:
    """Ignore Ctrl-C, which bwrap must outlive (a shim in the box undoes that), and undo what Python ignores."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
