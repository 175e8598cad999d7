"""Finds the address of a name that is in the list, and connects: from this host, as its own programs do.

The name is looked up when the box connects, and the address that was looked at is the one that is connected to. So a
name cannot lead to something private, whatever its owner says in the next second.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from ipaddress import IPv6Address, ip_address

from claudebox.features.names.server.greeting import Refusal
from claudebox.host.network import read_neighbourhood, rejected_range
from claudebox.host.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.host.network import Address

NEAR_SECONDS = 5.0  # for which what is near counts: somebody may join another network while the box runs
NAME_SECONDS = 5.0  # for which a name need not be looked up again: programs open many connections at once
PATIENCE_SECONDS = 20.0
NEXT_ADDRESS_MILLISECONDS = 250  # RFC 8305: an address that does not answer must not hold up the next
IN_PROGRESS = 115
LOCALHOST = "127.0.0.1"
LOCAL_SECONDS = 5.0
THE_NETWORKS = 0  # an alert that is none: the list has nothing against it


class Surroundings:
    """What is near this host, and what names stand for: both are found out anew every few seconds.

    An address that is remembered is looked at each time that it is used, so to remember it opens nothing.
    """

    def __init__(self, near: tuple[str, ...]) -> None:
        self.lock = threading.Lock()
        self.known: dict[str, tuple[float, list[str]]] = {}
        self.near = near
        self.until = time.monotonic() + NEAR_SECONDS

    def now(self) -> tuple[str, ...]:
        with self.lock:
            if time.monotonic() > self.until:
                self.near = read_neighbourhood(Tree()).everything
                self.until = time.monotonic() + NEAR_SECONDS
            return self.near

    def addresses_of(self, name: str) -> list[str]:
        until, addresses = self.known.get(name, (0.0, []))
        if time.monotonic() < until:
            return addresses
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise Refusal(f"this host cannot resolve {name}: {why}", THE_NETWORKS) from None
        addresses = [str(row[4][0]) for row in found]
        self.known[name] = (time.monotonic() + NAME_SECONDS, addresses)
        return addresses


def dial_name(name: str, port: int, surroundings: Surroundings) -> socket.socket:
    """A connection to this name. Raises a Refusal if it has no address of the internet, or none that answers."""
    return _dial(surroundings.addresses_of(name), port, surroundings, f"{name} leads to a private address")


def dial_address(address: str, port: int, surroundings: Surroundings) -> socket.socket:
    return _dial([address], port, surroundings, "this is a private address")


def dial_localhost(port: int) -> socket.socket:
    try:
        return socket.create_connection((LOCALHOST, port), LOCAL_SECONDS)
    except OSError as error:
        raise Refusal(f"port {port} of this host: {error.strerror or error}", THE_NETWORKS) from None


def _dial(found: list[str], port: int, surroundings: Surroundings, objection: str) -> socket.socket:
    near = surroundings.now()
    judged = [(address, rejected_range(address, near)) for address in dict.fromkeys(map(_meant, found))]
    public = [address for address, rejected in judged if rejected is None]
    if not public:
        rejected = next((f"{address} ({why[1]})" for address, why in judged if why), "none")
        raise Refusal(f"{objection}: {rejected}")
    return _connect_first(public, port)


def _meant(text: str) -> Address:
    """The address to which the kernel would send: IPv4-mapped ones are IPv4."""
    address = ip_address(text.partition("%")[0])
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _connect_first(addresses: list[Address], port: int) -> socket.socket:
    """Connect to the first that answers: each gets a moment before the next one is tried beside it."""
    end = time.monotonic() + PATIENCE_SECONDS
    poll, trying, waiting, error = select.poll(), dict[int, socket.socket](), [*addresses], "no answer"
    try:
        while (waiting or trying) and time.monotonic() < end:
            if waiting:
                attempt = _begin(waiting.pop(0), port)
                if isinstance(attempt, str):
                    error = attempt
                    continue
                trying[attempt.fileno()] = attempt
                poll.register(attempt, select.POLLOUT)
            left = int((end - time.monotonic()) * 1000)
            for number, _ in poll.poll(NEXT_ADDRESS_MILLISECONDS if waiting else max(0, left)):
                poll.unregister(number)
                attempt = trying.pop(number)
                code = attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code == 0:
                    return attempt
                attempt.close()
                error = os.strerror(code)
    finally:
        for attempt in trying.values():
            attempt.close()
    raise Refusal(f"no connection to {addresses[0]} port {port}: {error}", THE_NETWORKS)


def _begin(address: Address, port: int) -> socket.socket | str:
    """A socket that is connecting, or what went wrong."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    attempt = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    code = attempt.connect_ex((str(address), port))
    if code in (0, IN_PROGRESS):
        return attempt
    attempt.close()
    return os.strerror(code)
