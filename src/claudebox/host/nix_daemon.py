"""Nix on this host: what its daemon says about itself, and how it is configured."""

from __future__ import annotations

from claudebox.errors import suppress
from claudebox.host.system import NIX_SOCKETS
from claudebox.host.tree import Tree
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from socket import socket

SOCKET = f"{NIX_SOCKETS}/socket"
CONFIG = "/etc/nix/nix.conf"
DEEPEST_INCLUDE = 10
# Older names of settings, which are still valid. Whatever the name, the last line wins.
ALIASES = {
    "build-use-chroot": "sandbox",
    "build-use-sandbox": "sandbox",
    "build-chroot-dirs": "sandbox-paths",
    "build-sandbox-paths": "sandbox-paths",
}

# The worker protocol: numbers are 8 bytes each, strings are padded to that.
CLIENT_HELLO, DAEMON_HELLO = 0x6E697863, 0x6478696F
OUR_VERSION = 1 << 8 | 35  # the first in which the daemon says whether it trusts the client
SENDS_NIX_VERSION = 1 << 8 | 33
WORD = 8
LONGEST_STRING_BYTES = 1 << 10
TRUSTED, NOT_TRUSTED = 1, 2
GREETING_SECONDS = 2.0  # the socket may have to start the daemon first


class Daemon(Record):
    """How the daemon answers a greeting."""

    answers: bool
    trusts: bool | None = None  # whether it trusts this user; None: it is too old to say


def ask_daemon() -> Daemon:
    """Greet the daemon as a client would, and ask for nothing."""
    import socket

    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(GREETING_SECONDS)
        connection.connect(SOCKET)
        with connection.makefile("rb") as reader:
            return _greet(connection, reader)
    return Daemon(answers=False)


def _greet(connection: socket, reader: BufferedReader) -> Daemon:
    connection.sendall(_words(CLIENT_HELLO))
    if _number(reader) != DAEMON_HELLO:
        return Daemon(answers=False)
    version = min(_number(reader), OUR_VERSION)
    connection.sendall(_words(version, 0, 0))  # two fields that are no longer used
    if version >= SENDS_NIX_VERSION:
        size = _number(reader)
        if size > LONGEST_STRING_BYTES:
            return Daemon(answers=False)
        reader.read(size + -size % WORD)
    trust = _number(reader) if version >= OUR_VERSION else 0
    return Daemon(answers=True, trusts={TRUSTED: True, NOT_TRUSTED: False}.get(trust))


def _words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(WORD, "little") for number in numbers)


def _number(reader: BufferedReader) -> int:
    word = reader.read(WORD)
    if len(word) < WORD:
        raise ConnectionError
    return int.from_bytes(word, "little")


def read_config(tree: Tree) -> dict[str, str] | None:
    """The daemon's settings, a list as one text; None if a part of them cannot be read."""
    settings: dict[str, str] = {}
    for name, value in _lines(tree, CONFIG, is_optional=tree.lstat(CONFIG) is None):
        if name is None:
            return None
        plain = name.removeprefix("extra-")
        plain = ALIASES.get(plain, plain)
        settings[plain] = value if name == plain or name in ALIASES else f"{settings.get(plain, '')} {value}".strip()
    return settings


def _lines(tree: Tree, path: str, *, is_optional: bool, depth: int = 0) -> Iterator[tuple[str | None, str]]:
    """Name and value of each line; no name if a file cannot be read."""
    text = tree.text(path)
    if text is None or depth > DEEPEST_INCLUDE:
        yield from () if is_optional and depth <= DEEPEST_INCLUDE else ((None, path),)
        return
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if len(words) == 2 and words[0] in ("include", "!include"):
            named = words[1] if words[1].startswith("/") else f"{path.rpartition('/')[0]}/{words[1]}"
            # A file that exists but cannot be read may say anything.
            is_missing = words[0] == "!include" and tree.lstat(named) is None
            yield from _lines(tree, named, is_optional=is_missing, depth=depth + 1)
        elif len(words) >= 2 and words[1] == "=":
            yield words[0], " ".join(words[2:])


def groups_of(tree: Tree, name: str, gid: int) -> tuple[set[str], set[str]]:
    """The groups of this user, and all groups, as /etc/group has them."""
    rows = [line.split(":") for line in (tree.text("/etc/group") or "").splitlines()]
    rows = [row for row in rows if len(row) == 4]
    mine = {row[0] for row in rows if row[2] == str(gid) or name in row[3].split(",")}
    return mine, {row[0] for row in rows}
