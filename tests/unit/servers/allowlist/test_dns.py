"""The box's name server: it knows the list, answers at once, and passes nothing on."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudebox.features.allowlist.rules import read_allowed
from claudebox.model import Origin
from claudebox.servers.allowlist import HostList, dns
from claudebox.servers.allowlist.dns import NAME_ERROR, NO_ERROR, NameServer
from claudebox.settings import Word
from unit.servers.allowlist.messages import AAAA, ANY, EDNS, HTTPS, TXT, A, address_in, code_of, named, query

pytestmark = pytest.mark.req("NAME-01")

LARGEST_ANSWER = 512  # that every resolver takes in a datagram


def word(text: str) -> Word:
    return Word(text, Origin.of_option("--allow"))


class Resolver:
    """A name server with a list, and what it refused."""

    def __init__(self, *allowed: str) -> None:
        self.refused: list[tuple[str, int]] = []
        hosts = HostList(read_allowed(map(word, allowed)))
        self.server = NameServer(hosts, lambda name, kind: self.refused.append((name, kind)))

    def ask(self, message: bytes) -> bytes | None:
        return self.server.answer(message)

    def asked(self, message: bytes) -> tuple[int, str]:
        """The code and the address of an answer."""
        reply = self.ask(message)
        assert reply is not None
        assert reply[:2] == message[:2]
        assert reply[2] & 0x80
        return code_of(reply), address_in(reply)


def test_listed_name_has_one_made_up_address() -> None:
    resolver = Resolver("allowed.example", "*.wild.example")
    first = resolver.asked(named("allowed.example"))
    assert first[0] == NO_ERROR
    assert first[1].startswith(("198.18.", "198.19."))
    assert resolver.asked(named("ALLOWED.exAMPle")) == first
    assert resolver.asked(named("a.wild.example"))[1] not in ("", first[1])
    assert Resolver("other.example", "allowed.example").asked(named("allowed.example")) == first
    assert resolver.refused == []


@pytest.mark.parametrize("kind", [AAAA, HTTPS, TXT, ANY, 33, 0, 65535])
def test_listed_name_has_nothing_else(kind: int) -> None:
    """No IPv6 address, no key for ECH, no other server: they would lead past the made-up address."""
    assert Resolver("allowed.example").asked(named("allowed.example", kind=kind)) == (NO_ERROR, "")


@pytest.mark.parametrize(
    "name",
    [
        "refused.example",
        "x.allowed.example",
        "example",
        "wild.example",
        "allowed.example.refused.example",
    ],
)
def test_other_name_does_not_exist(name: str) -> None:
    resolver = Resolver("allowed.example", "*.wild.example")
    assert resolver.asked(named(name)) == (NAME_ERROR, "")
    assert resolver.refused == [(name, A)]


@pytest.mark.parametrize(
    "labels",
    [
        (b"allowed.example",),
        (b"allowed\0", b"example"),
        (b"allowed", b"example\0"),
        (b"allowed", b"example", b"\0refused"),
        (b"\xd0\xbf", b"example"),
        (b"-allowed", b"example"),
        (b"allowed example",),
        (),
    ],
)
def test_what_is_no_name_of_a_host_does_not_exist(labels: tuple[bytes, ...]) -> None:
    assert Resolver("allowed.example", "*.wild.example").asked(query(*labels)) == (NAME_ERROR, "")


@pytest.mark.parametrize(
    "message",
    [
        b"short",
        named("allowed.example", flags=0x8180),
        named("allowed.example", flags=0x2800),
        named("allowed.example", family=3),
        named("allowed.example", questions=2),
        named("allowed.example", questions=0),
        query(b"allowed")[:-5] + b"\xc0\x0c\0\1\0\1",
        named("allowed.example")[:-1],
        named("allowed.example")[:20],
        query(*(b"a" * 63,) * 5),
    ],
)
def test_what_is_no_plain_query_gets_no_answer(message: bytes) -> None:
    assert Resolver("allowed.example").ask(message) is None


def test_answer_about_the_longest_name_fits_into_a_datagram() -> None:
    """One that did not fit ended the process that knows the list, and the box with it."""
    longest = (*(b"a" * 63,) * 3, b"a" * 61)
    reply = Resolver(b".".join(longest).decode()).ask(query(*longest, extra=EDNS))
    assert reply is not None
    assert len(reply) <= LARGEST_ANSWER


def test_question_is_repeated_letter_by_letter() -> None:
    """Some resolvers mix cases to know their answers."""
    message = named("aLLoWed.eXample")
    reply = Resolver("allowed.example").ask(message)
    assert reply is not None
    assert reply[12 : len(message)] == message[12:]


def test_names_below_a_star_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The box decides how many it asks for; those in the list itself are always known."""
    monkeypatch.setattr(dns, "MOST_GUESTS", 3)
    resolver = Resolver("allowed.example", "*.wild.example")
    assert [resolver.asked(named(f"x{number}.wild.example"))[0] for number in range(5)] == [0, 0, 0, 3, 3]
    assert resolver.asked(named("x1.wild.example"))[0] == NO_ERROR
    assert resolver.asked(named("allowed.example"))[0] == NO_ERROR


@given(st.lists(st.integers(0, 500), unique=True, max_size=60))
def test_no_two_names_share_an_address(numbers: list[int]) -> None:
    server = Resolver("*.wild.example").server
    addresses = {server.address_of(f"x{number}.wild.example"): f"x{number}.wild.example" for number in numbers}
    assert len(addresses) == len(numbers)
    assert all(address and server.name_of(address) == name for address, name in addresses.items())


def test_names_with_one_hash_get_neighbouring_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns, "sha256", lambda _: "f" * 64)
    server = Resolver("a.example", "b.example").server
    assert server.address_of("a.example") != server.address_of("b.example")


@given(st.binary(max_size=80), st.booleans())
def test_no_message_is_too_strange(noise: bytes, has_head: bool) -> None:
    resolver = Resolver("allowed.example", "*.wild.example")
    message = struct.pack(">6H", 1, 0x0100, 1, 0, 0, 0) + noise if has_head else noise
    reply = resolver.ask(message)
    assert reply is None or (reply[:2] == message[:2] and not address_in(reply))
