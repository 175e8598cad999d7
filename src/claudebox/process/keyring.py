"""Leaves the keys that the kernel keeps for the user's session: passwords for network drives, tickets, tokens.

A child inherits the session's keyring, whatever namespaces it is in, and who possesses a keyring can read its keys. In
the box the filter refuses the calls for keys; but a keyring that is not there cannot be read at all.
"""

from __future__ import annotations

import os

from claudebox.problem import Problem
from claudebox.process.c_library import c_function

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
