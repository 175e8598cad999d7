"""The way to the API: whom it trusts, through which proxy, and what it refuses."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.conftest import KEY, Start
from broker.standin import Certificates, Server, hello, make_certificates
from claudebox.errors import Problem
from claudebox.features.broker.credential import find_proxy, parse_address
from claudebox.model import Address, Proxy
from claudebox.servers.broker.policy import Unavailable
from claudebox.servers.broker.upstream import Upstream, trust

API = Address("api.example", 443, is_tls=True)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://api.example", API),
        ("https://api.example/", API),
        ("https://API.example:8443/gateway/", Address("api.example", 8443, is_tls=True, prefix="/gateway")),
        ("http://127.0.0.1:4000", Address("127.0.0.1", 4000, is_tls=False)),
        ("http://[::1]:4000", Address("::1", 4000, is_tls=False)),
        ("http://localhost", Address("localhost", 80, is_tls=False)),
    ],
)
def test_address(url: str, address: Address) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize(
    "url",
    [
        *("http://api.example", "http://192.168.1.2", "ftp://x", "api.example", "", "https://", "https://u:p@x"),
        *("https://x/?a=b", "https://x/#f", "https://x/a b", "https://x/\r\nX: y", "https://x:port"),
    ],
)
def test_no_address(url: str) -> None:
    with pytest.raises(Problem, match="nothing that the broker can use"):
        parse_address(url)


@pytest.mark.parametrize(
    ("environ", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, Proxy("proxy", 3128)),
        ({"https_proxy": "proxy:3128"}, Proxy("proxy", 3128)),
        ({"ALL_PROXY": "http://u:p%40@proxy"}, Proxy("proxy", 80, "Basic dTpwQA==")),
        ({"HTTP_PROXY": "http://proxy"}, None),
        ({"HTTPS_PROXY": "http://proxy", "NO_PROXY": "*"}, None),
        ({"HTTPS_PROXY": "http://proxy", "NO_PROXY": "a,.example"}, None),
        ({"HTTPS_PROXY": "http://proxy", "no_proxy": "api.example:443"}, None),
        ({"HTTPS_PROXY": "http://proxy", "NO_PROXY": "api.example:80,xample,pi.example"}, Proxy("proxy", 80)),
    ],
)
def test_proxy(environ: dict[str, str], proxy: Proxy | None) -> None:
    assert find_proxy(environ, API) == proxy


@pytest.mark.parametrize("url", ["socks5://proxy:1080", "https://proxy"])
def test_other_kinds_of_proxy_are_refused(url: str) -> None:
    with pytest.raises(Problem, match="cannot be used"):
        find_proxy({"HTTPS_PROXY": url}, API)


@pytest.mark.req("AUTH-03")
def test_somebody_elses_certificate_is_refused(tmp_path: Path, start: Start) -> None:
    other = make_certificates(tmp_path)
    with Server(hello, other.server) as impostor:
        broker = start(url=impostor.url)
        answer = broker.ask()
        assert answer.status == 502
        assert "not trusted" in json.loads(answer.body)["error"]["message"]
        assert impostor.asked == []


@pytest.mark.req("AUTH-03")
def test_certificate_for_another_name_is_refused(certificates: Certificates) -> None:
    with Server(hello, certificates.server, address=("0.0.0.0", 0)) as api:
        upstream = Upstream(Address("127.0.0.2", api.port, is_tls=True), trust(str(certificates.authority)))
        with pytest.raises(Unavailable, match="not trusted"):
            upstream.connect()


def test_more_can_be_trusted(certificates: Certificates) -> None:
    with Server(hello, certificates.server) as api:
        upstream = Upstream(parse_address(api.url), trust("", str(certificates.authority)))
        upstream.connect().close()


@contextmanager
def proxy_server(answer: bytes, seen: list[bytes]) -> Iterator[int]:
    """A proxy that makes a tunnel if its answer says so."""

    def carry(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def run() -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(1)
            seen.append(head)
            client.sendall(answer)
            if b"200" not in answer:
                return
            port = int(head.split(b" ")[1].rpartition(b":")[2])
            with socket.create_connection(("127.0.0.1", port)) as target:
                back = threading.Thread(target=carry, args=(target, client), daemon=True)
                back.start()
                carry(client, target)
                back.join(5)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=run, daemon=True).start()
        yield int(listener.getsockname()[1])


@pytest.mark.req("AUTH-03")
def test_proxy_carries_what_it_cannot_read(start: Start) -> None:
    seen: list[bytes] = []
    with proxy_server(b"HTTP/1.1 200 Fine\r\nVia: x\r\n\r\n", seen) as port:
        broker = start(proxy=Proxy("127.0.0.1", port, "Basic dTpw"))
        assert broker.ask().status == 200
    assert len(seen) == 1
    assert seen[0].startswith(b"CONNECT localhost:%d HTTP/1.1\r\n" % broker.api.port)
    assert b"proxy-authorization: Basic dTpw" in seen[0]
    assert KEY.encode() not in seen[0]


def test_proxy_that_refuses_is_named(start: Start) -> None:
    refusal = b"HTTP/1.1 407 Who?\r\n\r\n"
    with proxy_server(refusal, []) as port, start(proxy=Proxy("127.0.0.1", port)).client() as client:
        answer = client.ask()
    assert "the proxy refuses (status 407)" in json.loads(answer.body)["error"]["message"]
