"""A refusal in the words of each protocol."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudebox.features.names.server.refusal import METHODS, UNRECOGNIZED_NAME, Refusal, in_words_of

pytestmark = pytest.mark.req("NAME-01")

BY_LIST = Refusal("port 25 of mail.example is not in this box's list", is_lists=True)
BY_NETWORK = Refusal("no connection to 198.51.100.10 port 80: Connection refused", 0)


@pytest.mark.parametrize("method", METHODS)
def test_http_gets_a_sentence(method: bytes) -> None:
    said = in_words_of(method + b"/ HTTP/1.1\r\n", BY_LIST)
    assert said is not None
    head, _, body = said.decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 403 ")
    assert f"Content-Length: {len(body)}" in head
    assert body == "claudebox: port 25 of mail.example is not in this box's list\n"


def test_network_is_no_refusal() -> None:
    """What the list allows and the network does not give is the network's fault: TLS and SSH see a reset, as always."""
    said = in_words_of(b"GET / HTTP/1.1\r\n", BY_NETWORK)
    assert said is not None
    assert said.startswith(b"HTTP/1.1 502 ")
    assert in_words_of(b"\x16\3\1\2\0\1", BY_NETWORK) == b""
    assert in_words_of(b"SSH-2.0-OpenSSH_9\r\n", BY_NETWORK) == b""


def test_tls_gets_an_alert() -> None:
    assert in_words_of(b"\x16\3\1\2\0\1", BY_LIST) == bytes((0x15, 3, 3, 0, 2, 2, 49))
    wrong_name = Refusal("TLS for x", UNRECOGNIZED_NAME)
    assert in_words_of(b"\x16", wrong_name) == bytes((0x15, 3, 3, 0, 2, 2, 112))


@given(st.text(max_size=60))
def test_ssh_gets_a_message_that_is_well_formed(text: str) -> None:
    said = in_words_of(b"SSH-2.0-OpenSSH_9\r\n", Refusal(text))
    assert said is not None
    version, _, packet = said.partition(b"\r\n")
    length, padding = int.from_bytes(packet[:4], "big"), packet[4]
    assert version == b"SSH-2.0-claudebox"
    assert len(packet) == 4 + length
    assert len(packet) % 8 == 0
    assert padding >= 4
    assert packet[5:10] == b"\1\0\0\0\x0b"
    assert f"claudebox: {text}".encode() in packet


@pytest.mark.parametrize("first", [b"G", b"POS", b"SSH", b"SSH-2.0-Open", b"PRI * HT"])
def test_more_is_needed_to_tell(first: bytes) -> None:
    assert in_words_of(first, BY_LIST) is None


@pytest.mark.parametrize("first", [b"\0\0\0\x08", b"EHLO x\r\n", b"\x12\1\0", b"SSH-" + b"x" * 300])
def test_for_others_there_are_no_words(first: bytes) -> None:
    assert in_words_of(first, BY_LIST) == b""
