import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from broker.client import Answer, Client
from broker.standin import Certificates, Handler, Server, hello, make_certificates
from broker.talk import API_KEY, Talk
from claudebox.features.broker.credential import BACKLOG, parse_address
from claudebox.model import Proxy
from claudebox.servers.broker import Session, serve
from claudebox.servers.broker.credentials import Fixed, Subscription
from claudebox.servers.broker.upstream import Connection, Upstream, trust
from claudebox.servers.broker.usage import Allowance, Meter
from claudebox.state.memory import read_journal
from conftest import Box
from running.needs import needed

KEY = "sk-ant-api03-real-0123456789"
DUMMY = "dummy-of-this-box"


@pytest.fixture(scope="session")
@needed("openssl")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("ca"))


@pytest.fixture(autouse=True)
@needed("localhost")
def stand_ins() -> None:
    """Their addresses are called so."""


@dataclass
class Running:
    """A broker in this process."""

    session: Session
    port: int
    api: Server

    def client(self) -> Client:
        return Client(self.port, DUMMY)

    def ask(self, *words: Any, **more: Any) -> Answer:
        """One request, on a connection of its own."""
        with self.client() as client:
            return client.ask(*words, **more)

    @property
    def journal(self) -> list[dict[str, object]]:
        return read_journal(self.session.meter.journal)


Start = Callable[..., Running]


def end(upstream: Upstream) -> None:
    """Close what it keeps, and what it would keep."""
    setattr(upstream, "keep", Connection.close)  # noqa: B010  (a method)
    for connection in upstream.idle:
        connection.close()


@pytest.fixture
def start(tmp_path: Path, certificates: Certificates) -> Iterator[Start]:
    """Starts brokers with a stand-in each, which end with the test."""
    with ExitStack() as stack:

        def begin(
            handler: Handler = hello,
            credential: Fixed | Subscription | None = None,
            limits: Allowance | None = None,
            proxy: Proxy | None = None,
            url: str = "",
            *,
            fetches: bool = True,
        ) -> Running:
            api = stack.enter_context(Server(handler, certificates.server))
            address = parse_address(url or api.url).replace(proxy=proxy)
            upstream = Upstream(address, trust(str(certificates.authority)))
            stack.callback(end, upstream)
            session = Session(
                dummy=DUMMY,
                credential=credential or Fixed("ANTHROPIC_API_KEY", KEY),
                upstream=upstream,
                meter=Meter(limits or Allowance(), str(tmp_path / "journal")),
                fetches=fetches,
            )
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=BACKLOG))
            over, stop = os.pipe()
            thread = threading.Thread(target=serve, args=(listener, session, over), daemon=True)
            thread.start()
            stack.callback(os.close, over)
            stack.callback(thread.join)
            stack.callback(os.close, stop)
            return Running(session, listener.getsockname()[1], api)

        yield begin


@pytest.fixture
def talk(box: Box, claude: str, certificates: Certificates) -> Talk:
    return Talk(box, claude, certificates)


@pytest.fixture
def with_key(talk: Talk) -> Talk:
    talk.environ["ANTHROPIC_API_KEY"] = API_KEY
    return talk


@pytest.fixture
def user_with_key(shop: Box, claude: str, certificates: Certificates) -> Talk:
    return Talk(shop, claude, certificates, {"ANTHROPIC_API_KEY": API_KEY})
