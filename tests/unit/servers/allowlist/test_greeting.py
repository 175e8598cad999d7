"""What a client says first: the server name in TLS, however it is cut, and a refusal in the words of each protocol."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudebox.servers.allowlist.greeting import (
    METHODS,
    UNRECOGNIZED_NAME,
    BadHello,
    Refusal,
    in_words_of,
    is_tls,
    server_name,
)
from unit.servers.allowlist.messages import ECH, GREASE, block, client_hello, extension, records
from unit.servers.allowlist.messages import server_name as name_extension

pytestmark = pytest.mark.req("NAME-01")

BY_LIST = Refusal("port 25 of mail.example is not in this box's list", is_lists=True)
BY_NETWORK = Refusal("no connection to 198.51.100.10 port 80: Connection refused", 0)
ALLOWED = client_hello(GREASE, name_extension(b"Allowed.Example"), ECH)


def test_name_is_found_in_lower_case() -> None:
    assert is_tls(records(ALLOWED))
    assert server_name(records(ALLOWED)) == "allowed.example"


def test_real_client_is_understood() -> None:
    context, outgoing = ssl.create_default_context(), ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="allowed.example")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    assert server_name(outgoing.read()) == "allowed.example"


@given(st.integers(1, 400))
def test_name_may_be_cut_into_records(size: int) -> None:
    assert server_name(records(ALLOWED, size)) == "allowed.example"


@given(st.integers(1, 400), st.data())
def test_part_of_a_message_says_nothing_yet(size: int, data: st.DataObject) -> None:
    whole = records(ALLOWED, size)
    assert server_name(whole[: data.draw(st.integers(0, len(whole) - 1))]) is None


def test_what_follows_the_message_does_not_matter() -> None:
    assert server_name(records(ALLOWED) + b"\x14\3\3\0\1\1" + b"early data") == "allowed.example"
    assert server_name(records(ALLOWED + client_hello(name_extension(b"other.example")))) == "allowed.example"


def test_hello_without_a_name_has_none() -> None:
    """A key for ECH alone names nobody: the name that it hides cannot be compared."""
    for hello in (client_hello(), client_hello(GREASE), client_hello(ECH)):
        assert server_name(records(hello)) == ""


@pytest.mark.parametrize(
    "hello",
    [
        client_hello(name_extension(b"allowed.example"), name_extension(b"other.example")),
        client_hello(name_extension(b"allowed.example"), name_extension(b"allowed.example")),
        client_hello(extension(0, block(2, b"\0" + block(2, b"a.example") + b"\0" + block(2, b"b.example")))),
        client_hello(extension(0, block(2, b"\0" + block(2, b"a.example")) + b"x")),
        client_hello(name_extension(b"allowed.example", kind=1)),
        client_hello(name_extension(b"")),
        client_hello(name_extension(b"a" * 256)),
        client_hello(name_extension("пример".encode())),
        client_hello(extension(0, b"")),
        client_hello(extension(0, b"\0\5\0\0\\9a")),
        client_hello(name_extension(b"allowed.example"), tail=b"more"),
        b"\1" + block(3, b"\3\3" + bytes(10)),
        b"\2" + block(3, bytes(50)),
        b"\1\xff\xff\xff",
    ],
)
def test_what_two_could_read_in_two_ways_is_refused(hello: bytes) -> None:
    with pytest.raises(BadHello):
        server_name(records(hello))


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\2\0\0\5hello",
        b"\x16\3\1\0\0",
        b"\x16\3\1\xff\xff",
        records(ALLOWED[:50]) + b"\x17\3\3\0\1x",
        b"\x15\3\1\0\2\1\x5a" + records(ALLOWED),
        b"\x15\0\0\0\2\1\x5a" + records(ALLOWED),
    ],
)
def test_records_of_another_kind_are_refused(data: bytes) -> None:
    assert is_tls(data)
    with pytest.raises(BadHello):
        server_name(data)


@given(st.binary(max_size=200))
def test_nothing_is_too_strange(noise: bytes) -> None:
    for data in (b"\x16" + noise, b"\x16\3\1\0\xc8" + noise, records(client_hello(noise))):
        try:
            assert server_name(data) in (None, "") or isinstance(server_name(data), str)
        except BadHello:
            pass


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\n", b"SSH-2.0-x\r\n", b"", b"\x80\x2e\1\3\1"])
def test_other_protocols_are_not_tls(first: bytes) -> None:
    assert not is_tls(first)


@pytest.mark.parametrize("method", METHODS)
def test_http_gets_a_sentence(method: bytes) -> None:
    said = in_words_of(method + b"/ HTTP/1.1\r\n", BY_LIST)
    head, _, body = said.decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 403 ")
    assert f"Content-Length: {len(body)}" in head
    assert body == "claudebox: port 25 of mail.example is not in this box's list\n"


def test_network_is_no_refusal() -> None:
    """What the list allows and the network does not give is the network's fault: TLS and SSH see a reset, as always."""
    said = in_words_of(b"GET / HTTP/1.1\r\n", BY_NETWORK)
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
    version, _, packet = said.partition(b"\r\n")
    length, padding = int.from_bytes(packet[:4], "big"), packet[4]
    assert version == b"SSH-2.0-claudebox"
    assert len(packet) == 4 + length
    assert len(packet) % 8 == 0
    assert padding >= 4
    assert packet[5:10] == b"\1\0\0\0\x0b"
    assert f"claudebox: {text}".encode() in packet


@pytest.mark.parametrize("first", [b"", b"G", b"SSH", b"\0\0\0\x08", b"EHLO x\r\n", b"\x12\1\0"])
def test_for_others_there_are_no_words(first: bytes) -> None:
    assert in_words_of(first, BY_LIST) == b""
