"""Who the agent is, which processes it sees, and that root outside is nobody special inside."""

import os
import subprocess

import pytest

from conftest import CLAUDEBOX, Account, Box
from running.versions import each_bwrap

pytestmark = pytest.mark.root_differs("who root is inside is what this file is about")

CANARY = "canary-2c80fa"


# Namespaces


@pytest.mark.req("SEC-02")
@each_bwrap
def test_box_has_namespaces_of_its_own(box: Box) -> None:
    kinds = ["pid", "ipc", "uts", "cgroup", "user", "mnt"]
    inside = box.sh(f"cd /proc/self/ns; for kind in {' '.join(kinds)}; do readlink $kind; done").split()
    assert len(inside) == len(kinds)
    assert {os.readlink(f"/proc/self/ns/{kind}") for kind in kinds}.isdisjoint(inside)


@pytest.mark.req("SEC-02")
def test_no_process_of_the_host_is_visible(box: Box, account: Account) -> None:
    sentinel = subprocess.Popen(account.becoming("sleep", "60.2480"))
    try:
        seen = box.sh("cat /proc/[0-9]*/cmdline /proc/[0-9]*/comm; echo; ls /proc | grep -c '^[0-9]'")
    finally:
        sentinel.kill()
        sentinel.wait()
    assert "60.2480" not in seen
    assert int(seen.split()[-1]) <= 5, "more processes than bwrap, the shell and its pipe"


@pytest.mark.req("SEC-02")
def test_process_of_the_host_gets_no_signal(box: Box, account: Account) -> None:
    # Aimed at one process by its number, never at all of them: a broken box must not harm the machine that tests it.
    sentinel = subprocess.Popen(account.becoming("sleep", "60"))
    try:
        box.inside("kill", "-9", str(sentinel.pid))
        assert sentinel.poll() is None
    finally:
        sentinel.kill()
        sentinel.wait()


@pytest.mark.req("SEC-02")
def test_processes_of_the_host_cannot_be_mounted(box: Box) -> None:
    for source in ("/proc", "/proc/1", "/proc/sys"):
        result = box.inside("true", options=("--mount-ro", f"{source}:/mnt"))
        assert result.returncode == 125, "the host's /proc names all processes of the host"


# Names


@pytest.mark.req("SEC-02")
@each_bwrap
def test_hostname_and_machine_id_are_not_the_hosts(box: Box) -> None:
    hostname, machine_id, boot_hosts = box.sh("hostname; cat /etc/machine-id; cat /etc/hosts").split("\n", 2)
    host = os.uname().nodename
    assert (hostname, machine_id) == ("claudebox", "c1a0deb0c1a0deb0c1a0deb0c1a0deb0")
    assert host == "localhost" or host not in boot_hosts.split()
    assert box.inside("cat", "/var/lib/dbus/machine-id").returncode != 0


@pytest.mark.req("SAND-04")
def test_accounts_are_only_those_that_are_needed(box: Box, account: Account) -> None:
    uid, gid, name = (1000, 1000, "claude") if account.is_root else (account.uid, account.gid, account.name)
    group = box.sh("id -gn").strip()
    assert box.sh("cat /etc/passwd /etc/group").splitlines() == [
        "root:x:0:0:root:/root:/bin/sh",
        f"{name}:x:{uid}:{gid}::{account.home}:/bin/bash",
        "nobody:x:65534:65534:nobody:/:/bin/false",
        "root:x:0:",
        f"{group}:x:{gid}:",
        "nogroup:x:65534:",
    ]


@pytest.mark.req("SAND-04")
def test_agent_is_an_ordinary_account_with_a_name(box: Box, account: Account) -> None:
    uid, name = (1000, "claude") if account.is_root else (account.uid, account.name)
    assert box.sh("id -u; id -un; whoami").split() == [str(uid), name, name]


@pytest.mark.req("SEC-02")
def test_groups_of_root_stay_outside(box: Box, account: Account) -> None:
    if not account.is_root:
        assert box.sh("id -g").strip() == str(account.gid)
        return
    result = account.run("setpriv", "--groups", "4,24,27", CLAUDEBOX, "--yes", "--run", "id", "-G", cwd=box.project)
    assert result.stdout == "1000\n"


# Privileges


@pytest.mark.req("SEC-02")
@each_bwrap
def test_no_capability_is_left(box: Box) -> None:
    none = dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0" * 16)
    for text in box.sh("cat /proc/self/status; echo --; cat /proc/1/status").split("--\n"):
        status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        assert {name: status[name] for name in (*none, "NoNewPrivs")} == {**none, "NoNewPrivs": "1"}
        assert status["Uid"].split()[0] != "0"


ACTS = (
    "umount /etc/resolv.conf",
    "umount -l /tmp",
    "mount -t tmpfs none /tmp",
    "mount --bind / /tmp",
    "mount -o remount,rw /usr",
    "mount -o remount,rw /",
    "chroot / true",
    "nsenter -t 1 -m true",
    "nsenter -t 1 -a true",
    'hostname "$(hostname)"',
    "mknod /tmp/disk b 8 0",
    "su -c true",
    "setpriv --reuid 0 true",
    "chown 0 README.md",
    # What only root may read is not there.
    *("ls /etc/shadow", "ls /etc/gshadow", "ls /etc/sudoers", "ls /root", "ls /var/lib/private", "ls /etc/ssl/private"),
)


@pytest.mark.req("SEC-02")
def test_privileged_acts_fail(box: Box) -> None:
    attempts = "; ".join(
        f"({act}) </dev/null && echo possible: {number} || echo refused" for number, act in enumerate(ACTS)
    )
    assert box.sh(attempts) == "refused\n" * len(ACTS)


@pytest.mark.req("SEC-02")
def test_root_only_file_below_usr_is_unreadable(box: Box, account: Account) -> None:
    if not account.is_root:
        assert (
            box.sh("find /usr/local/etc ! -readable") == account.run("find", "/usr/local/etc", "!", "-readable").stdout
        )
        return
    # In a mount namespace of its own, so that other tests do not meet the planted files.
    plant = f"""
    mount -t tmpfs none /usr/local/etc && cd /usr/local/etc && mkdir -p open closed &&
    echo {CANARY} | tee open/secret closed/secret secret > public && chmod 600 secret open/secret && chmod 700 closed &&
    chmod 644 public closed/secret && cd "$0" && exec "$@"
    """
    look = "grep -rl . /usr/local/etc"
    result = account.run(
        "unshare", "-m", "sh", "-c", plant, str(box.project), CLAUDEBOX, "--yes", "--run", "sh", "-c", look
    )
    assert result.stdout == "/usr/local/etc/public\n"


@pytest.mark.req("FAIL-01")
def test_root_of_a_user_namespace_gets_a_box_or_a_reason(box: Box, account: Account) -> None:
    """There root may not change its groups."""
    result = account.run("unshare", "-Ur", CLAUDEBOX, "--yes", "--run", "echo", "well", cwd=box.project)
    assert "Traceback" not in result.stderr
    assert (result.returncode, result.stdout) in ((0, "well\n"), (125, ""))


@pytest.mark.req("FAIL-01")
def test_root_is_told_of_a_project_that_it_cannot_write(box: Box, account: Account) -> None:
    """In a box root has the rights of any account, so a project of somebody else is not written."""
    if not account.is_root:
        return  # an ordinary account cannot enter it outside either
    os.chown(box.project, 4242, 4242)
    box.project.chmod(0o755)
    done = box.claudebox("--yes", "--run", "touch", "made")
    assert "belongs to #4242" in " ".join(done.stderr.split())
    assert (done.returncode, (box.project / "made").exists()) == (1, False)
    box.project.chmod(0o700)
    refused = box.claudebox("--yes", "--run", "true")
    assert refused.returncode == 125
    assert "sudo -u '#4242' claudebox" in " ".join(refused.stderr.split())
