"""Decides which descriptors are open when the box starts."""

from __future__ import annotations

import os
import stat

from claudebox.problem import Problem

FIRST_DATA_DESCRIPTOR = 3
CHUNK = 1 << 20


def check_standard_streams() -> None:
    for descriptor in (0, 1, 2):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise Problem(
                f"descriptor {descriptor} is a directory, which would open everything below it to the box",
                "redirect from a file instead",
            )


def refuse_internet_sockets() -> None:
    """Refuse standard streams that are sockets: they stay in the host's network, and can be connected elsewhere."""
    for descriptor in (0, 1, 2):
        if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            import _socket

            stream = _socket.socket(fileno=os.dup(descriptor))
            family = stream.family
            stream.close()
            if family != _socket.AF_UNIX:
                raise Problem(
                    f"descriptor {descriptor} is a socket of this host's network, which the box would get with it",
                    "put a pipe in between: … | claudebox … | …",
                )


def seal_standard_input() -> None:
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


def close_all_but(descriptors: list[int]) -> None:
    """Close all other descriptors: what the caller left open would be open in the box."""
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        if descriptor >= FIRST_DATA_DESCRIPTOR and descriptor not in descriptors:
            os.closerange(descriptor, descriptor + 1)  # which does not mind that the listing's own is closed
