"""Checks at next to no cost, before anything starts, whether the broker can work."""

from __future__ import annotations

import os

from claudebox.features.broker.terms import TOKEN_URL
from claudebox.model import Broker
from claudebox.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features.broker.server.upstream import Address, Proxy

OTHERWISE = "choose: --auth passthrough, --auth none"
PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


def check(broker: Broker, environ: dict[str, str]) -> None:
    """Raise a Problem if the broker could not reach or trust the API."""
    for path in filter(None, (broker.certificates, broker.extra_certificates)):
        if not os.access(path, os.R_OK):
            raise no_trust(f"{path} cannot be read")
    is_usual = not broker.url or _is_plain(broker.url)
    if not is_usual or any(environ.get(name) for name in (*PROXIES, TOKEN_URL)):
        from claudebox.features.broker.server.upstream import API

        proxy_for(environ, address_of("ANTHROPIC_BASE_URL", broker.url or API))
        address_of(TOKEN_URL, environ.get(TOKEN_URL) or API)


def _is_plain(url: str) -> bool:
    """Whether the address looks like most do. A closer look costs as much as the rest of a launch."""
    host, _, rest = url.removeprefix("https://").partition("/")
    name, _, port = host.partition(":")
    is_path = not rest or rest.replace("/", "a").replace("-", "a").isalnum()
    return (
        url.startswith("https://")
        and url.isascii()
        and name.replace(".", "a").replace("-", "a").isalnum()
        and (port.isdigit() or ":" not in host)
        and is_path
    )


def address_of(name: str, url: str) -> Address:
    from claudebox.features.broker.server.upstream import read_address

    try:
        return read_address(url)
    except ValueError as error:
        raise Problem(f"{name} is nothing that the broker can use: {error}", OTHERWISE) from None


def proxy_for(environ: dict[str, str], address: Address) -> Proxy | None:
    from claudebox.features.broker.server.upstream import find_proxy

    try:
        return find_proxy(environ, address)
    except ValueError as error:
        raise Problem(f"the broker cannot use the proxy of this host: {error}", OTHERWISE) from None


def no_trust(reason: str) -> Problem:
    return Problem(f"the broker cannot read the certificates that this host trusts: {reason}", OTHERWISE)
