"""An allowlist that grew is asked about; one that shrank, or that a wider tier covered, is not."""

from pathlib import Path

import pytest

from claudebox.consent import agreement, find_news
from claudebox.model import Plan
from consent.boxes import granted_anew, is_agreed
from hosts.machine import EVERYONE, TREES, Machine

pytestmark = pytest.mark.req("UX-02", "NAME-01")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path, environ={"TERM": "xterm"}).plant("/usr/bin/pasta*\n/usr/sbin/nft*")
    return machine.plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())


def listed(machine: Machine, *hosts: str) -> Plan:
    return machine.plan("--network", "allowlist", *(word for host in hosts for word in ("--allow", host)), "-p", "x")


def test_new_host_is_asked_about(machine: Machine) -> None:
    before, after = listed(machine, "a.example", "@npm"), listed(machine, "a.example", "b.example", "@npm")
    assert granted_anew(after, before) == ["allow b.example port 80,443"]
    assert is_agreed(before, after)


def test_new_port_is_asked_about(machine: Machine) -> None:
    assert not is_agreed(listed(machine, "a.example", "a.example:22"), listed(machine, "a.example"))
    assert not is_agreed(listed(machine, "a.example:*"), listed(machine, "a.example:22"))


def test_name_does_not_cover_all_below_the_same(machine: Machine) -> None:
    assert not is_agreed(listed(machine, "*.example.org"), listed(machine, "a.example.org"))


def test_wider_tier_covers_every_list(machine: Machine) -> None:
    inet, few = machine.plan("--network", "inet", "-p", "x"), listed(machine, "a.example", "@claude")
    assert granted_anew(few, inet) == []
    assert granted_anew(inet, few) == ["network inet"]


def test_yes_to_the_tier_by_its_old_name_is_not_remembered(machine: Machine) -> None:
    before = listed(machine, "a.example")
    old = frozenset("network names" if line == "network allowlist" else line for line in agreement(before))
    assert [grant.lines[0] for grant in find_news(before, (old,)).grants] == [("network", "allowlist")]
    assert not find_news(before, (frozenset(agreement(before)),)).amount


EARLIER = """\
runs claude
network allowlist
publish 8080:80
host-port 5432
allow *.example.org port 80,443
login /home/alice/.claude/.credentials.json
ro /usr
ro /etc/alternatives
ro /etc/bash.bashrc
ro /etc/ca-certificates
ro /etc/ld.so.cache
ro /etc/ld.so.conf
ro /etc/ld.so.conf.d
ro /etc/nsswitch.conf
ro /etc/profile
ro /etc/protocols
ro /etc/services
ro /etc/terminfo
ro /etc/java-17-openjdk
ro /srv/data
ro /etc/ssl/certs
ro /etc/ssl/openssl.cnf
rw /home/alice/.claudebox/instances/c3085d9538be063a/claude as /home/alice/.claude
ro /home/alice/.claudebox/instances/c3085d9538be063a/SANDBOX.md as /etc/claude-code/SANDBOX.md
rw /home/alice/shop
ro /home/alice/.claudebox/instances/c3085d9538be063a/CLAUDE.md as /home/alice/.claude/CLAUDE.md
rw /home/alice/.claudebox/instances/c3085d9538be063a/auth as /run/user/1000/claude-auth
ro /home/alice/.local/share/claude/versions/*
variable HOME from box
variable USER from box
variable SHELL from box
variable PATH from box
variable TMPDIR from box
variable XDG_RUNTIME_DIR from box
variable TERM from allowed
variable SSL_CERT_FILE from certificates
variable NIX_SSL_CERT_FILE from certificates
variable CLAUDE_CONFIG_DIR from claude
variable DISABLE_AUTOUPDATER from claude
variable DISABLE_INSTALLATION_CHECKS from claude
variable CLAUDE_SECURESTORAGE_CONFIG_DIR from claude
variable TOKEN from --env looks secret
secret TOKEN: enters and looks secret (its name says so)
note --network\\x20allowlist: claude does not reach its API: --allow @claude
without /srv/data/part
"""


def test_agreement_of_an_earlier_version_counts(machine: Machine) -> None:
    """It also has a line for each part of the project's own state, which nobody is asked about any more."""
    machine.plant("/srv/data/part/x")
    words = ("--publish", "8080:80", "--host-port", "5432", "--mount-ro", "/srv/data", "--hide", "/srv/data/part")
    plan = machine.plan("--allow", "*.example.org", *words, "--env", "TOKEN=x", "-p", "x")
    assert not find_news(plan, (frozenset(EARLIER.splitlines()),)).amount
    without = machine.plan("--allow", "*.example.org", *words[:6], "--env", "TOKEN=x", "-p", "x")
    assert find_news(without, (frozenset(EARLIER.splitlines()),)).lost == (("without", "/srv/data/part"),)
