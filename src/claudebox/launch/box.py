"""Opens descriptors and becomes bwrap.

Imports: `signal` would bring `enum` with it, which costs more than this whole module; `_signal` is the part in C.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

from claudebox.launch.descriptors import (
    check_standard_streams,
    close_all_but,
    open_data,
    refuse_internet_sockets,
    seal_standard_input,
)
from claudebox.launch.landlock import scope_to_box
from claudebox.launch.state import prepare
from claudebox.model import Plan
from claudebox.problem import CANNOT_EXECUTE, Problem
from claudebox.view.argv import Data, bwrap_operations, program_words
from claudebox.view.sandbox import sandbox_md

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def launch(plan: Plan) -> NoReturn:
    """Replace this process by the box."""
    check_standard_streams()
    if not plan.network.is_hosts:
        refuse_internet_sockets()
    seal_standard_input()
    prepare(plan.preparations, sandbox_md(plan))
    if plan.login is not None:
        from claudebox.launch.beside import forget_if_gone, start_beside

        if plan.login.file:
            start_beside(plan.login)
        else:
            forget_if_gone(plan.login)
    if plan.drop_groups:
        _drop_groups()
    scope_to_box()
    if plan.network.uplink is not None:
        from claudebox.launch.network import connect

        # After the scopes: the kernel ends the one with the other only if they may signal each other.
        connect(plan.network, plan.network.uplink)
    descriptors: list[int] = []
    options = [
        open_data(word, descriptors) if isinstance(word, Data) else word
        for operation in bwrap_operations(plan)
        for word in operation
    ]
    argv = [plan.bwrap, *options, *program_words(plan)]
    close_all_but(descriptors)
    _set_signals()
    environment = {variable.name: variable.value for variable in plan.environment if not variable.late}
    try:
        os.execve(plan.bwrap, argv, environment)
    except OSError as error:
        raise Problem(f"{plan.bwrap} cannot be started: {error.strerror}", status=CANNOT_EXECUTE) from None


def _drop_groups() -> None:
    try:
        os.setgroups([])
    except PermissionError:
        pass  # root of a user namespace may not, and has none that count


def _set_signals() -> None:
    """bwrap must outlive Ctrl-C; Python's own choices must not be inherited. The shim in the box undoes the first."""
    for number in (_signal.SIGINT, _signal.SIGQUIT):
        _signal.signal(number, _signal.SIG_IGN)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)
