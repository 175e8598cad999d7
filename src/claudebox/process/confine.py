"""Keeps the box away from abstract unix sockets and from processes of the host, where the kernel can (Linux 6.12).

A box with the host's network could otherwise connect to what listens on an abstract name: X11, D-Bus, an IDE. And a
process can signal its own process group, which a script that started claudebox may share.
"""

from __future__ import annotations

import os

from claudebox.problem import Problem
from claudebox.process.c_library import c_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The same numbers on x86_64 and aarch64.
CREATE_RULESET = 444
RESTRICT_SELF = 446
ASK_VERSION = 1
SCOPES_SINCE = 6
SCOPE_ABSTRACT_SOCKETS = 1
SCOPE_SIGNALS = 2
SET_NO_NEW_PRIVILEGES = 38


def can_scope() -> bool:
    """Whether this kernel, and this Python, can do it."""
    call = _system_call()
    return call is not None and call(CREATE_RULESET, 0, 0, ASK_VERSION) >= SCOPES_SINCE


def scope_to_box() -> bool:
    """From here on, this process and all that come from it reach only what they start themselves. False if not."""
    call = _system_call()
    if call is None or call(CREATE_RULESET, 0, 0, ASK_VERSION) < SCOPES_SINCE:
        return False
    # struct landlock_ruleset_attr: no rights to files, none to ports, only scopes; so that bwrap can still mount.
    attributes = bytes(16) + (SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS).to_bytes(8, "little")
    ruleset = call(CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0 or _no_new_privileges() != 0 or call(RESTRICT_SELF, ruleset, 0) != 0:
        from claudebox.problem import Problem

        raise Problem("the kernel offers Landlock scopes, and then refused them", "claudebox --check")
    return True


def _system_call() -> Callable[..., int] | None:
    return c_function("syscall")


def _no_new_privileges() -> int:
    control = c_function("prctl")
    return control(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) if control is not None else -1


NUMBERS = {"x86_64": 250, "aarch64": 219}  # of keyctl
FIND, JOIN_SESSION = 0, 1
THE_SESSIONS = -3


def leave_session_keyring() -> None:
    """From here on, this process and all that come from it have a keyring of their own, without a key."""
    call, number = c_function("syscall"), NUMBERS.get(os.uname().machine)
    if call is None or number is None or call(number, JOIN_SESSION, 0) >= 0:
        return
    # A kernel without keys, or a container that refuses the calls: then none can be read either.
    if call(number, FIND, THE_SESSIONS, 0) >= 0:
        raise Problem(
            "the kernel does not give the box a keyring of its own: you may have too many keys",
            "see which, and remove some: cat /proc/keys; keyctl unlink NUMBER",
        )
