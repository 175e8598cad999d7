"""Sockets of families that no ordinary program uses: each is code of the kernel, some go past a network namespace."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from attacks.unprotected import FILTER, without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conftest import Box

pytestmark = pytest.mark.req("SEC-02")

TRY = """
import errno, json, socket, sys
def attempt(family, kind, protocol):
    try:
        socket.socket(family, kind, protocol).close()
        return "open"
    except OSError as error:
        return errno.errorcode[error.errno]
print(json.dumps([attempt(*words) for words in json.loads(sys.argv[1])]))
"""
STREAM, DATAGRAM, RAW, SEQPACKET, DCCP = 1, 2, 3, 5, 6
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
USUAL = [
    *[(UNIX, STREAM, 0), (UNIX, DATAGRAM, 0), (UNIX, SEQPACKET, 0)],
    *[(INET, STREAM, 0), (INET, DATAGRAM, 0), (INET, STREAM, 6), (INET, DATAGRAM, 17)],
    (NETLINK, RAW, 0),
]
FAMILIES = [family for family in range(50) if family not in (UNIX, INET, INET6, NETLINK)]
UNUSUAL = [
    *[((family, kind, 0), "EAFNOSUPPORT") for family in FAMILIES for kind in (STREAM, DATAGRAM, RAW, SEQPACKET)],
    *[((NETLINK, RAW, protocol), "EPROTONOSUPPORT") for protocol in range(1, 23)],
    *[((INET, STREAM, protocol), "EPROTONOSUPPORT") for protocol in (33, 132, 136, 256)],
    *[((INET6, kind, 0), "ESOCKTNOSUPPORT") for kind in (SEQPACKET, DCCP)],
]
# Open to everybody where nothing filters: events of the devices, and generic netlink with its many users.
OPEN_TO_ALL = [(NETLINK, RAW, 15), (NETLINK, RAW, 16)]


def attempts(done_output: str, words: list[tuple[int, int, int]]) -> Iterator[tuple[tuple[int, int, int], str]]:
    return zip(words, json.loads(done_output), strict=True)


def inside(box: Box, words: list[tuple[int, int, int]]) -> dict[tuple[int, int, int], str]:
    return dict(attempts(box.inside("python3", "-c", TRY, json.dumps(words)).stdout, words))


def test_usual_sockets_can_be_made(box: Box) -> None:
    assert set(inside(box, USUAL).values()) == {"open"}


def test_unusual_sockets_do_not_exist(box: Box) -> None:
    assert inside(box, [words for words, _ in UNUSUAL]) == dict(UNUSUAL)


def test_some_of_them_do_without_the_filter(box: Box) -> None:
    assert set(inside(without(box, FILTER), OPEN_TO_ALL).values()) == {"open"}
