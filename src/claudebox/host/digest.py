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


def keyed(key: bytes, data: bytes, amount: int) -> bytes:
    """At least this many bytes that nobody can foretell without the key: BLAKE2b is a MAC by itself."""
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    root = blake2b(data, key=key).digest()
    return b"".join(blake2b(b"%d" % number, key=root).digest() for number in range(amount // 64 + 1))
