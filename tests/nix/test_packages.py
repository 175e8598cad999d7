"""Packages that the user names: looked up on the host, there in the box."""

from __future__ import annotations

import pytest

from conftest import Box
from nix.daemon import NixHost, on
from nix.machine import Resident

pytestmark = pytest.mark.req("EXT-04")


def packages(*names: str) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("--package", name))


@pytest.mark.parametrize("mode", ["auto", "daemon", "store", "private"])
def test_package_and_what_it_needs_are_there(box: Box, mode: str) -> None:
    done = box.inside("cowsay", options=(*packages("cowsay"), "--nix", mode))
    assert done.stdout == "Moo.\n", done.stderr


@pytest.mark.parametrize("network", ["inet", "none"])
def test_network_of_the_box_does_not_matter(box: Box, network: str) -> None:
    done = box.inside("hello", options=(*packages("hello"), "--network", network))
    assert done.stdout == "Hello, world!\n", done.stderr


@pytest.mark.parametrize(("first", "second", "greeting"), [("loud", "quiet", "HELLO"), ("quiet", "loud", "hello")])
def test_first_package_comes_first(box: Box, first: str, second: str, greeting: str) -> None:
    assert box.sh("greet", packages(first, second)) == f"{greeting}\n"


def test_package_comes_before_what_the_box_has(box: Box, account: Resident) -> None:
    path = box.sh("echo $PATH", packages("hello"))
    assert path.startswith("/nix/store/")


def test_packages_come_from_a_file_too(box: Box, account: Resident) -> None:
    account.write(account.home / ".claudebox" / "config.toml", 'packages = ["loud"]\n')
    assert box.sh("greet") == "HELLO\n"


@pytest.mark.parametrize("name", ["missing", "broken"])
def test_what_cannot_be_had_is_named_and_the_rest_is_there(box: Box, name: str) -> None:
    done = box.inside("hello", options=packages(name, "hello"))
    assert done.stdout == "Hello, world!\n"
    assert name in done.stderr


def test_package_that_was_removed_meanwhile_is_fetched_again(box: Box, account: Resident, host: NixHost) -> None:
    assert box.sh("hello", packages("hello")) == "Hello, world!\n"
    for path in (host.root / "nix/var/nix/gcroots/auto").iterdir():
        path.unlink()
    host.run_nix("nix-collect-garbage")
    assert box.sh("hello", packages("hello")) == "Hello, world!\n"


def test_package_is_kept_while_it_is_wanted(box: Box, account: Resident, host: NixHost) -> None:
    """From inside anybody may collect garbage; what a box was promised is none."""
    script = "nix-collect-garbage >/dev/null 2>&1; hello"
    assert box.sh(script, packages("hello")) == "Hello, world!\n"


def test_name_is_no_option_of_nix(box: Box) -> None:
    done = box.inside("true", options=("--package", "--help"))
    assert "nix" not in done.stdout
    done = box.inside("true", options=("--package", "hello --impure"))
    assert (done.returncode, "is not the name of a package" in done.stderr) == (125, True)


@on(allowed_users="root")
def test_who_may_not_ask_the_daemon_is_told(box: Box) -> None:
    done = box.inside("true", options=packages("hello"))
    assert done.returncode == 0
    assert "hello" in done.stderr
