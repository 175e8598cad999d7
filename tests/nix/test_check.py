"""What `--check` says about Nix, and what it starts for that."""

from __future__ import annotations

import pytest

from conftest import ORDINARY_USER, Box
from nix.daemon import NIXES, on
from nix.machine import Resident


def rows(box: Box) -> dict[str, str]:
    """State and text of each row that is about Nix."""
    lines = box.claudebox("--check").stdout.splitlines()
    return {line[6:24].strip(): f"{line[:6].strip()} {line[24:]}" for line in lines if line[6:9].lower() == "nix"}


@on(NIXES)
@pytest.mark.req("UX-05")
def test_daemon_that_is_no_way_out(box: Box) -> None:
    assert rows(box)["nix"].startswith("ok 2.")
    assert rows(box)["Nix in the box"].startswith("ok the store, read-only, and the host's daemon")


@on(trusted_users=f"root {ORDINARY_USER}")
@pytest.mark.req("UX-05", "NIXG-01")
def test_daemon_that_is_one(box: Box) -> None:
    assert rows(box)["Nix in the box"].startswith("note the store, read-only; nothing can be built")


@pytest.mark.req("UX-05")
def test_nix_of_the_project_is_not_started(box: Box, account: Resident) -> None:
    started = account.home / "started"
    account.write(box.project / "bin" / "nix", f"#!/bin/sh\ntouch {started}\necho nix 9.9\n", 0o755)
    account.environ["PATH"] = f"{box.project}/bin:{account.environ['PATH']}"
    assert rows(box)["nix"].startswith("ok 2.")
    assert not started.exists()
