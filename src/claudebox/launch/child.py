"""Becomes bwrap, with the options and descriptors of the Plan and the environment of the box."""

from __future__ import annotations

import os

from claudebox.launch.parent.gate import Gate
from claudebox.model import Plan
from claudebox.problem import CANNOT_EXECUTE, Problem
from claudebox.process import signal
from claudebox.process.isolation import close_all_but
from claudebox.view.argv import SECCOMP, Argument, Data, bwrap_operations, program_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

LONGEST_LABEL = 60  # characters, of up to four bytes each: the kernel takes 249 bytes, and a path may be longer


def open_options(plan: Plan, gate: Gate, descriptors: list[int]) -> list[str]:
    """The options of bwrap, with a descriptor in the place of each piece of data."""
    return [_option(word, gate, descriptors) for operation in bwrap_operations(plan) for word in operation]


def _option(word: Argument, gate: Gate, descriptors: list[int]) -> str:
    if isinstance(word, str):
        return word
    return str(gate.for_bwrap) if word.label == SECCOMP else _open_data(word, descriptors)


def _open_data(data: Data, descriptors: list[int]) -> str:
    descriptor = os.memfd_create(data.label[:LONGEST_LABEL], 0)
    os.write(descriptor, data.content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    descriptors.append(descriptor)
    return str(descriptor)


def become_bwrap(plan: Plan, options: list[str], descriptors: list[int]) -> NoReturn:
    argv = [plan.bwrap, *options, *program_words(plan)]
    close_all_but(descriptors)
    _set_signals()
    environment = {variable.name: variable.value for variable in plan.environment if not variable.late}
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
