"""Starts a box as its Plan says.

One process becomes two: the child becomes bwrap; the parent stays outside, waits, and does what comes afterwards
(`attend.py`). Everything else is a step of the Plan, which its feature does.
"""

from __future__ import annotations

import os

from claudebox.errors import CANNOT_EXECUTE, Problem
from claudebox.files import prepare
from claudebox.launch.argv import SECCOMP, bwrap_operations, program_words
from claudebox.launch.attend import fork_below
from claudebox.launch.gate import Gate, expect
from claudebox.model import Launch, Step
from claudebox.process import signal
from claudebox.process.isolation import (
    check_standard_streams,
    close_all_but,
    leave_session_keyring,
    refuse_internet_sockets,
    seal_standard_input,
)

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
    if not plan.network.is_hosts:
        refuse_internet_sockets()
    seal_standard_input()
    prepare(plan.preparations)
    # What runs beside the box comes first: the limits of the box must not count it, or the box could get it killed.
    companions = [feature.beside(launch) for feature in launch.acts(Step.BESIDE)]
    for feature in launch.acts(Step.BEFORE):
        feature.before(launch)
    gate = Gate(plan.kernel.seccomp, expect(launch.mounts, plan.review))
    descriptors = [gate.for_bwrap]
    options = open_options(launch, gate, descriptors)
    if plan.kernel.drop_groups:
        drop_groups()
    inside = [(feature, os.pipe()) for feature in launch.acts(Step.INSIDE)]
    fork_below(launch, gate, companions, [ends for _, ends in inside])
    # From here on, this is the child.
    leave_session_keyring()
    for feature in launch.acts(Step.MOUNT):
        feature.mount(launch)
    for feature, ends in inside:
        feature.inside(launch, *ends)
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
    return options


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


def drop_groups() -> None:
    try:
        os.setgroups([])
    except PermissionError:
        pass  # root of a user namespace may not drop them, and has none that matter


def _set_signals() -> None:
    """Ignore Ctrl-C, which bwrap must outlive (a shim in the box undoes that), and undo what Python ignores."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
