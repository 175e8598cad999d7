"""Digests and random bytes. `hashlib` would load all of OpenSSL, which takes longer than most of a launch."""

from __future__ import annotations

import os
import sys


def sha256(data: bytes) -> str:
    """The digest in hexadecimal."""
    try:
        if sys.version_info >= (3, 12):
            from _sha2 import sha256 as digest  # type: ignore[import-not-found]
        else:
            from _sha256 import sha256 as digest  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256 as digest
    return str(digest(data).hexdigest())


def git_blob(content: bytes) -> bytes:
    """The hash under which git stores a file with this content."""
    try:
        from _sha1 import sha1 as digest  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha1 as digest
    return bytes(digest(b"blob %d\0" % len(content) + content).digest())  # noqa: S324  (git's choice)


def some_bytes(amount: int) -> bytes:
    return os.urandom(amount)
