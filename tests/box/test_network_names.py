"""Names become addresses and certificates are verified in the box as on the host."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import CLAUDEBOX, Account, Box
from patience import PATIENCE
from running.needs import needed

# A machine whose resolv.conf is three symlinks away, as with systemd-resolved, in a mount namespace of its own.
CHAIN = """
    etc=$HOME/etc && mkdir "$etc" && { cp -a /etc/. "$etc" 2>/dev/null; rm -f "$etc/resolv.conf" "$etc/chain"; } &&
    ln -s ./chain "$etc/resolv.conf" && ln -s ../run/systemd/resolve/stub-resolv.conf "$etc/chain" &&
    mount --bind "$etc" /etc && mount -t tmpfs none /run && mkdir -p /run/systemd/resolve /run/NetworkManager &&
    ln -s /run/NetworkManager/resolv.conf /run/systemd/resolve/stub-resolv.conf &&
    echo "nameserver 192.0.2.53" > /run/NetworkManager/resolv.conf && cd "$0" && exec "$@"
"""
CONNECT = """
import socket, ssl, sys
context = ssl.create_default_context()
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10) as plain:
    with context.wrap_socket(plain, server_hostname="shop.test") as secure:
        print(secure.recv(100).decode())
"""


@pytest.mark.req("SAND-12")
def test_localhost_has_an_address(box: Box) -> None:
    assert box.sh("getent hosts localhost; getent ahostsv4 localhost; getent hosts claudebox").count("localhost") >= 2


@pytest.mark.req("SAND-12")
def test_resolver_file_is_the_hosts(box: Box) -> None:
    assert box.sh("cat /etc/resolv.conf") == Path("/etc/resolv.conf").read_text()


@pytest.mark.req("SAND-12")
def test_resolver_file_behind_a_chain_of_symlinks_is_found(box: Box, account: Account) -> None:
    command = [CLAUDEBOX, "--yes", "--run", "sh", "-c", "cat /etc/resolv.conf; ls -d /run/[!c]*"]
    if account.is_root:
        private = ["unshare", "-m"]
    else:
        private = ["unshare", "-Urm"]
        command = ["unshare", "-U", f"--map-user={account.uid}", f"--map-group={account.gid}", *command]
    result = account.run(*private, "sh", "-c", CHAIN, str(box.project), *command)
    assert result.stdout == "nameserver 192.0.2.53\n/run/user\n", result.stderr


@pytest.mark.req("SAND-13")
def test_bundle_of_the_system_is_readable(box: Box) -> None:
    for name in ("SSL_CERT_FILE", "NIX_SSL_CERT_FILE"):
        assert "-----BEGIN CERTIFICATE-----" in box.sh(f'cat "${name}"')


@pytest.fixture(scope="module")
@needed("openssl")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the certificate of an authority, and a server's key and certificate signed by it."""
    place = tmp_path_factory.mktemp("authority")
    openssl = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    signs = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]  # newer Pythons check strictly
    authority = [*openssl, *signs, "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem"]
    subprocess.run(authority, cwd=place, check=True, capture_output=True)
    names = ["-addext", "subjectAltName=DNS:shop.test", "-addext", "basicConstraints=critical,CA:FALSE"]
    server = [*openssl, *names, "-subj", "/CN=shop.test", "-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "server.key"]
    subprocess.run([*server, "-out", "server.pem"], cwd=place, check=True, capture_output=True)
    return place


@contextmanager
def tls_server(authority: Path) -> Iterator[int]:
    """The port of a server on loopback that greets whoever completes the handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(PATIENCE)

    def serve() -> None:
        try:
            plain, _ = listener.accept()
            with plain, context.wrap_socket(plain, server_side=True) as secure:
                secure.sendall(b"trusted")
        except OSError:
            pass  # the client did not trust us

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        thread.join()
        listener.close()


@pytest.mark.req("SAND-13")
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "NIX_SSL_CERT_FILE"])
def test_handshake_succeeds_with_the_bundle_that_the_host_names(
    box: Box, account: Account, authority: Path, variable: str
) -> None:
    bundle = account.write(account.home / "company" / "bundle.pem", (authority / "ca.pem").read_text())
    with tls_server(authority) as port:
        result = box.inside("/usr/bin/python3", "-c", CONNECT, str(port), env={variable: str(bundle)})
    assert result.stdout == "trusted\n", result.stderr


@pytest.mark.req("SAND-13")
def test_bundle_behind_a_symlink_works(box: Box, account: Account, authority: Path) -> None:
    account.write(account.home / "company" / "bundle.pem", (authority / "ca.pem").read_text())
    link = account.home / "bundle.pem"
    link.symlink_to("company/bundle.pem")
    with tls_server(authority) as port:
        result = box.inside("/usr/bin/python3", "-c", CONNECT, str(port), env={"SSL_CERT_FILE": str(link)})
    assert result.stdout == "trusted\n", result.stderr


@pytest.mark.req("SAND-13")
def test_handshake_fails_without_that_bundle(box: Box, authority: Path) -> None:
    with tls_server(authority) as port:
        result = box.inside("/usr/bin/python3", "-c", CONNECT, str(port))
    assert "CERTIFICATE_VERIFY_FAILED" in result.stderr
