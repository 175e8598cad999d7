"""Opens descriptors and starts bwrap.

Imports: `signal` would bring `enum` with it, which costs more than this whole module; `_signal` is the part in C.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

from claudebox.launch.attended import fork_below
from claudebox.launch.descriptors import (
    check_standard_streams,
    close_all_but,
    open_data,
    refuse_internet_sockets,
    seal_standard_input,
)
from claudebox.launch.inspection import (
    Gate,
    expect,
)
from claudebox.launch.keyring import leave_session_keyring
from claudebox.launch.landlock import scope_to_box
from claudebox.launch.prepare import prepare
from claudebox.model import (
    Plan,
    Preparation,
)
from claudebox.problem import (
    CANNOT_EXECUTE,
    Problem,
)
from claudebox.view.argv import (
    SECCOMP,
    Word,
    bwrap_operations,
    program_words,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from claudebox.launch.attended import Watch


def launch(plan: Plan, watch: Watch | None = None) -> NoReturn:
    """Start the box, wait for its end, do what is to be done afterwards, and end as the program in it did.

    `watch` looks around while bwrap makes the mounts, and returns what is to be done afterwards. That has standard
    error and the terminal, not standard output; its children gain no privileges (sudo). A Problem is shown, and is 125.
    """
    check_standard_streams()
    if not plan.network.is_hosts:
        refuse_internet_sockets()
    seal_standard_input()
    prepare(plan.preparations, _sandbox(plan))
    _start_beside(plan)
    broker = None
    if plan.broker is not None:
        from claudebox.features.broker.act import start_broker

        plan, broker = start_broker(plan, plan.broker)
    if plan.limits is not None:
        from claudebox.features.limits.act import put_into_force

        put_into_force(plan.limits)
    gate = Gate(plan.seccomp, expect(plan))
    descriptors = [gate.for_bwrap]
    options = [_option(word, gate, descriptors) for operation in bwrap_operations(plan) for word in operation]
    if plan.drop_groups:
        _drop_groups()
    # The parent too: a program that suspends its process group, as claude does, has to reach it.
    is_scoped = scope_to_box()
    life = os.pipe() if plan.network.uplink is not None else None
    # A network of its own cannot be had without a namespace of ours.
    fork_below(watch, life, gate, alone=plan.alone or life is not None, shares_group=is_scoped, broker=broker)
    leave_session_keyring()
    if plan.network.uplink is not None and life is not None:
        from claudebox.features.network.act import connect

        connect(plan.network, plan.network.uplink, *life)
    _become_bwrap(plan, [plan.bwrap, *options, *program_words(plan)], descriptors)


def _sandbox(plan: Plan) -> str:
    """What the agent is told, if there is one."""
    if all(preparation.kind != Preparation.SANDBOX for preparation in plan.preparations):
        return ""
    from claudebox.view.sandbox import sandbox_md

    return sandbox_md(plan)


def _start_beside(plan: Plan) -> None:
    if plan.login is None:
        return
    from claudebox.features.login.act import (
        forget_if_gone,
        start_beside,
    )

    if plan.login.file:
        start_beside(plan.login)
    else:
        forget_if_gone(plan.login)


def _option(word: Word, gate: Gate, descriptors: list[int]) -> str:
    if isinstance(word, str):
        return word
    return str(gate.for_bwrap) if word.label == SECCOMP else open_data(word, descriptors)


def _become_bwrap(plan: Plan, argv: list[str], descriptors: list[int]) -> NoReturn:
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
