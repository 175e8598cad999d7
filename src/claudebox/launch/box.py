"""Opens descriptors and becomes bwrap.

Imports: `signal` would bring `enum` with it, which costs more than this whole module; `_signal` is the part in C.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import stat

from claudebox.launch.landlock import scope_to_box
from claudebox.launch.state import prepare
from claudebox.model import Plan
from claudebox.problem import CANNOT_EXECUTE, Problem
from claudebox.view.argv import Data, bwrap_operations, program_words
from claudebox.view.sandbox import sandbox_md

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

FIRST_DATA_DESCRIPTOR = 3
CHUNK = 1 << 20


def launch(plan: Plan) -> NoReturn:
    """Replace this process by the box."""
    _check_standard_streams()
    _seal_standard_input()
    prepare(plan.preparations, sandbox_md(plan))
    if plan.login is not None:
        from claudebox.launch.beside import forget_if_gone, start_beside

        if plan.login.file:
            start_beside(plan.login)
        else:
            forget_if_gone(plan.login)
    descriptors: list[int] = []
    options = [
        _open_data(word, descriptors) if isinstance(word, Data) else word
        for operation in bwrap_operations(plan)
        for word in operation
    ]
    argv = [plan.bwrap, *options, *program_words(plan)]
    scope_to_box()
    _close_all_but(descriptors)
    _set_signals()
    if plan.drop_groups:
        _drop_groups()
    environment = {variable.name: variable.value for variable in plan.environment if not variable.late}
    try:
        os.execve(plan.bwrap, argv, environment)
    except OSError as error:
        raise Problem(f"{plan.bwrap} cannot be started: {error.strerror}", status=CANNOT_EXECUTE) from None


def _check_standard_streams() -> None:
    for descriptor in (0, 1, 2):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise Problem(
                f"descriptor {descriptor} is a directory, which would open all that is below it to the box",
                "redirect from a file instead",
            )


def _seal_standard_input() -> None:
    """Give the box a copy of a file that is standard input: through /proc it could open the file itself for writing."""
    if not stat.S_ISREG(os.fstat(0).st_mode):
        return
    import fcntl

    copy = os.memfd_create("standard input", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    # The position in the file stays where it is: a script may be reading lines from it.
    position = os.lseek(0, 0, os.SEEK_CUR)
    try:
        while chunk := os.pread(0, CHUNK, position):
            position += os.write(copy, chunk)
    except OSError as error:
        raise Problem(f"standard input cannot be copied: {error.strerror}", "pipe it: cat FILE | claudebox …") from None
    fcntl.fcntl(copy, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    os.lseek(copy, 0, os.SEEK_SET)
    os.dup2(copy, 0)


def _open_data(data: Data, descriptors: list[int]) -> str:
    descriptor = os.memfd_create(data.label, 0)
    os.write(descriptor, data.content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    descriptors.append(descriptor)
    return str(descriptor)


def _close_all_but(descriptors: list[int]) -> None:
    """What the caller left open would be open in the box."""
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        if descriptor >= FIRST_DATA_DESCRIPTOR and descriptor not in descriptors:
            os.closerange(descriptor, descriptor + 1)


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
