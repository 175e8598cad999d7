"""Names become addresses and certificates are verified in the box as on the host."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.standin import Server, make_certificates, reply
from conftest import CLAUDEBOX, Account, Box
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
import sys, urllib.request
print(urllib.request.urlopen(f"https://localhost:{sys.argv[1]}").read().decode())
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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The port of one that only somebody with its authority trusts, and the certificate of that."""
    made = make_certificates(tmp_path_factory.mktemp("authority"))
    with Server(lambda _: iter([reply(b"trusted")]), made.server) as running:
        yield str(running.port), made.authority.read_text()


@pytest.mark.req("SAND-13")
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "NIX_SSL_CERT_FILE"])
def test_handshake_succeeds_with_the_bundle_that_the_host_names(
    box: Box, account: Account, server: tuple[str, str], variable: str
) -> None:
    bundle = account.write(account.home / "company" / "bundle.pem", server[1])
    result = box.inside("/usr/bin/python3", "-c", CONNECT, server[0], env={variable: str(bundle)})
    assert result.stdout == "trusted\n", result.stderr


@pytest.mark.req("SAND-13")
def test_bundle_behind_a_symlink_works(box: Box, account: Account, server: tuple[str, str]) -> None:
    account.write(account.home / "company" / "bundle.pem", server[1])
    link = account.home / "bundle.pem"
    link.symlink_to("company/bundle.pem")
    result = box.inside("/usr/bin/python3", "-c", CONNECT, server[0], env={"SSL_CERT_FILE": str(link)})
    assert result.stdout == "trusted\n", result.stderr


@pytest.mark.req("SAND-13")
def test_handshake_fails_without_that_bundle(box: Box, server: tuple[str, str]) -> None:
    result = box.inside("/usr/bin/python3", "-c", CONNECT, server[0])
    assert "CERTIFICATE_VERIFY_FAILED" in result.stderr
