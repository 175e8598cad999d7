"""The daemon is given only where it does not lead out of the box.

Each attack is shown twice: with the daemon asked for by name it works, from inside the box; otherwise it does not.
"""

import pytest

from conftest import ORDINARY_USER, Box, make_account
from nix.attacks import AbstractSocket, Fetch, FetchByProgram, HostFile, PostBuildHook, build, derivation
from nix.daemon import (
    LANDLOCKED,
    NEWER,
    NIXES,
    OTHER_GROUP,
    SOCKET,
    Configuration,
    NixHost,
    configurations,
    findings,
    has_daemon,
    kinds,
    on,
)
from nix.machine import Resident
from patience import comes_true
from running.versions import SYSTEM

pytestmark = pytest.mark.req("NIXG-01")

BY_NAME = ("--nix", "daemon")
# As systemd's PrivateTmp does it.
PRIVATE_TMP = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /var/tmp && exec "$@"', "private-tmp")
CLOSED = [("--network", "inet"), ("--network", "none")]


def assert_refused(box: Box, *options: str) -> None:
    """No daemon, and a word about that, which is not a reproach: the user did nothing wrong."""
    assert not has_daemon(box, *options)
    assert kinds(box, *options) == {"note"}


# A trusted user


TRUSTED = on(trusted_users=f"root {ORDINARY_USER}")


@TRUSTED
def test_hook_runs_as_root_if_the_daemon_was_asked_for(box: Box, account: Resident) -> None:
    attack = PostBuildHook(account, box.project)
    done = box.inside(*attack.command(), options=BY_NAME)
    assert attack.ran_as() == "0", done.stderr
    assert "risk" in kinds(box, *BY_NAME)


@TRUSTED
def test_hook_does_not_run_as_root_otherwise(box: Box, account: Resident) -> None:
    attack = PostBuildHook(account, box.project)
    box.inside(*attack.command())
    box.inside(*attack.command(), "--store", f"unix://{SOCKET}")
    assert attack.ran_as() in (None, str(account.uid))
    assert_refused(box)


@TRUSTED
@pytest.mark.parametrize("place", ["/nix", "/nix/var", "/nix:/elsewhere"])
def test_no_mount_brings_the_daemon(box: Box, account: Resident, place: str) -> None:
    """A read-only mount keeps nobody from connecting to a socket in it."""
    attack = PostBuildHook(account, box.project)
    for socket in (SOCKET, SOCKET.replace("/nix", "/elsewhere", 1)):
        command = (*attack.command(), "--store", f"unix://{socket}")
        box.inside("env", "NIX_REMOTE=daemon", *command, options=("--mount-ro", place))
    assert attack.ran_as() in (None, str(account.uid))


def test_socket_is_no_mount_to_ask_for(box: Box) -> None:
    done = box.inside("true", options=("--network", "none", "--mount-ro", SOCKET))
    assert done.returncode == 125
    assert "--nix" in done.stderr
    done = box.inside("test", "-S", SOCKET, options=("--mount-ro", "/nix"))
    assert done.returncode == 0, "where the daemon is given, nothing hides it"


@pytest.mark.parametrize(
    "host",
    [
        Configuration(trusted_users=f"@{ORDINARY_USER}"),
        Configuration(trusted_users=f"root @{OTHER_GROUP}"),
        Configuration(trusted_users=f"root\t{ORDINARY_USER}  # and nobody else"),
        Configuration(trusted_users=f"root\nextra-trusted-users = {ORDINARY_USER}"),
        Configuration(trusted_users="*"),
        Configuration(trusted_users="root\n!include /etc/nix/more.conf", included=f"trusted-users = {ORDINARY_USER}\n"),
        Configuration(trusted_users="root\ninclude more.conf", included=f"trusted-users = {ORDINARY_USER}\n"),
    ],
    ids=lambda configuration: configuration.trusted_users.replace("\n", "; ").replace(ORDINARY_USER, "user"),
    indirect=True,
)
def test_trust_is_seen_however_it_is_written(box: Box, account: Resident) -> None:
    attack = PostBuildHook(account, box.project)
    account.run(*attack.command())
    assert attack.ran_as() == "0", "this user is not trusted at all"
    assert_refused(box)


def test_own_configuration_does_not_count(box: Box, account: Resident) -> None:
    account.write(account.home / ".config" / "nix" / "nix.conf", f"trusted-users = {ORDINARY_USER}\n")
    assert has_daemon(box)


def test_root_gets_no_daemon(host: NixHost) -> None:
    for account in make_account("root"):
        resident = host.settle(account)
        box = Box(resident, resident.write(resident.home / "shop" / "README.md").parent)
        assert_refused(box)


# Builds that are not sandboxed


UNSANDBOXED = on(sandbox="false")
RELAXED = on(sandbox="relaxed")


@UNSANDBOXED
def test_build_reads_a_file_of_the_host_if_the_daemon_was_asked_for(box: Box, account: Resident) -> None:
    attack = HostFile(account)
    done = box.inside(*attack.command(), options=BY_NAME)
    assert done.stdout == f"{attack.words}\n", done.stderr
    assert "risk" in kinds(box, *BY_NAME)


@UNSANDBOXED
def test_build_reads_no_file_of_the_host_otherwise(box: Box, account: Resident) -> None:
    attack = HostFile(account)
    assert attack.words not in box.inside(*attack.command()).stdout
    assert attack.words not in box.inside(*attack.command(), "--store", f"unix://{SOCKET}").stdout
    assert_refused(box)


@RELAXED
def test_relaxed_sandbox_is_none(box: Box, account: Resident) -> None:
    attack = HostFile(account)
    assert attack.words not in box.inside(*attack.command("__noChroot = true;")).stdout
    assert_refused(box)


@pytest.mark.parametrize(
    "host",
    [
        Configuration(sandbox="true\nbuild-use-chroot = false"),
        Configuration(sandbox="true\nbuild-use-sandbox = relaxed"),
        Configuration(sandbox="true\nsandbox = false"),
        Configuration(sandbox="true\nextra-sandbox-paths = /var/tmp"),
        Configuration(sandbox="true\nbuild-chroot-dirs = /bin=/usr/bin /lib=/usr/lib /lib64=/usr/lib64 /var/tmp"),
        Configuration(sandbox="true\nextra-build-sandbox-paths = /tmp=/var/tmp /var/tmp?"),
        Configuration(sandbox="true\nextra-sandbox-paths = /var=/usr/../var"),
    ],
    ids=lambda configuration: configuration.sandbox.replace("\n", "; "),
    indirect=True,
)
def test_open_sandbox_is_seen_however_it_is_written(box: Box, account: Resident) -> None:
    attack = HostFile(account)
    seen = [account.run(*attack.command(more)).stdout for more in ("", "__noChroot = true;")]
    assert f"{attack.words}\n" in seen, "this sandbox is closed"
    assert_refused(box)


@UNSANDBOXED
def test_own_word_for_a_sandbox_does_not_count(box: Box, account: Resident) -> None:
    account.write(account.home / ".config" / "nix" / "nix.conf", "sandbox = true\n")
    account.environ["NIX_CONFIG"] = "sandbox = true"
    assert_refused(box)


@on(NIXES, sandbox="true\nsandbox-paths =")
@pytest.mark.req("SAND-07")
def test_sandbox_without_a_shell_is_one(box: Box) -> None:
    """As Debian has it: other packages of Nix bring a /bin/sh for builds."""
    assert has_daemon(box)


@on(arguments=("--option", "sandbox", "relaxed"))
def test_relaxed_sandbox_that_no_file_tells_of_is_seen(box: Box, account: Resident) -> None:
    attack = HostFile(account)
    assert account.run(*attack.command("__noChroot = true;")).stdout == f"{attack.words}\n"
    assert_refused(box)


@on(wrapper=PRIVATE_TMP, arguments=("--option", "sandbox", "false"))
def test_sandbox_that_is_off_is_seen_by_a_daemon_with_a_tmp_of_its_own(box: Box, account: Resident) -> None:
    assert account.run(*build(derivation("echo /etc/nix/* >$out"))).stdout.startswith("/etc/nix/")
    assert_refused(box)


@on(arguments=("--option", "sandbox", "false", "--option", "builders", "/nix/farm x86_64-linux,aarch64-linux"))
def test_sandbox_of_another_machine_does_not_count(box: Box, account: Resident) -> None:
    """Of one that builds for this daemon, unless somebody asks for a build here: that everybody may."""
    attack = HostFile(account)
    here = account.run(*attack.command(), "--option", "builders", "", "--max-jobs", "1")
    elsewhere = account.run(*attack.command())
    assert (here.stdout, elsewhere.stdout) == (f"{attack.words}\n", "")
    assert_refused(box)


# A network of its own


@pytest.mark.parametrize("network", CLOSED, ids=lambda options: options[1])
@pytest.mark.parametrize("attack", [Fetch, FetchByProgram])
def test_daemon_goes_round_the_network_of_the_box_if_it_was_asked_for(
    box: Box, host: NixHost, network: tuple[str, ...], attack: type[Fetch]
) -> None:
    attempt = attack(host)
    done = box.inside(*attempt.command(), options=(*network, *BY_NAME))
    assert attempt.arrived(), done.stderr
    assert "risk" in kinds(box, *network, *BY_NAME)


@pytest.mark.parametrize("network", CLOSED, ids=lambda options: options[1])
def test_nothing_goes_round_it_otherwise(box: Box, host: NixHost, network: tuple[str, ...]) -> None:
    for attack in (Fetch(host), FetchByProgram(host), AbstractSocket(host)):
        box.inside(*attack.command(), options=network)
        assert not attack.arrived()
    assert_refused(box, *network)


@on(NIXES)
def test_sandboxed_build_reaches_sockets_without_a_file(account: Resident, host: NixHost) -> None:
    """Newer ones keep builds away from them, if the kernel can."""
    attempt = AbstractSocket(host)
    done = account.run(*attempt.command())
    arrived = comes_true(attempt.arrived) if host.version < LANDLOCKED else attempt.arrived()
    assert arrived == (host.version < LANDLOCKED), done.stderr


def test_project_cannot_ask_for_the_daemon_by_itself(box: Box, account: Resident) -> None:
    account.write(box.project / ".claudebox.toml", 'nix = "daemon"\nnetwork = "none"\n')
    done = box.inside("test", "-S", SOCKET)
    assert done.returncode != 0


# A daemon of which nothing can be known


@pytest.mark.parametrize(
    "host",
    [
        *configurations(NEWER, arguments=("--option", "trusted-users", f"root {ORDINARY_USER}")),
        *configurations(NIXES, arguments=("--option", "sandbox", "false")),
        *configurations(allowed_users="root"),
    ],
    indirect=True,
)
@pytest.mark.req("FAIL-01")
def test_what_no_file_says_and_what_cannot_be_asked_is_no_daemon(box: Box) -> None:
    assert_refused(box)


@on([SYSTEM], is_silent=True)
@pytest.mark.req("FAIL-01")
def test_daemon_that_does_not_answer_is_not_waited_for(box: Box) -> None:
    done = box.inside("test", "!", "-S", SOCKET)
    assert done.returncode == 0, done.stderr
    assert "it does not answer" in done.stderr


def test_explanation_says_what_would_change_it(box: Box) -> None:
    [(kind, text)] = findings(box, "--network", "none")
    assert kind == "note"
    assert "--explain nix" in text
    told = box.claudebox("--network", "none", "--explain", "nix", "--run", "true").stdout
    assert "--nix daemon" in told
    assert "--network none" in told
