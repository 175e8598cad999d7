"""Where the API is, and which way leads there: from the host's environment."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from claudebox.record import Record

API = "https://api.anthropic.com"
PORTS = {"https": 443, "http": 80}


class Address(Record):
    """The one place that requests go to."""

    host: str
    port: int
    is_tls: bool
    prefix: str = ""  # of every path

    @property
    def name(self) -> str:
        """As the `Host` header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS["https" if self.is_tls else "http"] else f"{host}:{self.port}"


class Proxy(Record):
    """An HTTP proxy that is asked for a tunnel."""

    host: str
    port: int
    authorization: str = ""


def read_address(url: str) -> Address:
    """Raises ValueError, with a text for the user."""
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError("it is no http or https address")
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError("it has more than a host, a port and a path")
    prefix = parts.path.rstrip("/")
    if not (url.isascii() and url.isprintable()) or " " in url:
        raise ValueError("it has characters that do not belong there")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise ValueError("without https, everybody on the way could read the credential")
    return Address(parts.hostname, parts.port or PORTS[parts.scheme], parts.scheme == "https", prefix)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def find_proxy(environ: dict[str, str], address: Address) -> Proxy | None:
    """As Claude Code would, outside. Raises ValueError, with a text for the user."""
    names = ("https_proxy", "HTTPS_PROXY") if address.is_tls else ()  # no tunnel for what is not encrypted
    url = next((environ[name] for name in (*names, "all_proxy", "ALL_PROXY") if environ.get(name)), "")
    if not url or not address.is_tls or _goes_around(environ, address):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"a proxy of the kind {parts.scheme}:// cannot be used")
    return Proxy(parts.hostname, parts.port or PORTS["http"], _basic(parts.username, parts.password))


def _basic(name: str | None, password: str | None) -> str:
    if name is None:
        return ""
    from base64 import b64encode

    return "Basic " + b64encode(f"{unquote(name)}:{unquote(password or '')}".encode()).decode()


def _goes_around(environ: dict[str, str], address: Address) -> bool:
    """Whether NO_PROXY names the host, a domain that it is in, or everything."""
    words = (environ.get("no_proxy") or environ.get("NO_PROXY") or "").replace(",", " ").split()
    for word in words:
        name, _, port = word.rpartition(":") if word.count(":") == 1 else (word, "", "")
        domain = name.lower().removeprefix("*").lstrip(".")
        if port and port != str(address.port):
            continue
        if name == "*" or (domain and (address.host == domain or address.host.endswith(f".{domain}"))):
            return True
    return _is_loopback(address.host)
