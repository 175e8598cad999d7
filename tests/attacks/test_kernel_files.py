"""What the kernel shows of itself as files: nothing of it can be written, and the hardware is not there."""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conftest import Account, Box

pytestmark = [pytest.mark.req("SEC-02"), pytest.mark.root_differs("the kernel lets root write here")]

# Opened, never written to: where this has success, nothing happens.
WRITABLE = """
import os
OWN = {"/proc/self", "/proc/thread-self"}
for directory, names, files in os.walk("/proc"):
    names[:] = [name for name in names if not name.isdigit() and f"{directory}/{name}" not in OWN]
    for name in files:
        path = f"{directory}/{name}"
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))
            print(path)
        except OSError:
            pass
"""
HARMLESS = {f"/proc/pressure/{what}" for what in ("cpu", "io", "irq", "memory")}  # to be woken up when it rises
DEVICES = set("console core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero".split())


@pytest.mark.parametrize("tier", ["full", "none"])
def test_nothing_of_the_kernel_can_be_written(box: Box, tier: str) -> None:
    found = box.inside("python3", "-c", WRITABLE, options=("--network", tier)).stdout.split()
    assert set(found) <= HARMLESS


def test_root_could_on_the_host(account: Account) -> None:
    if account.is_root:
        assert "/proc/sys/kernel/core_pattern" in account.run("python3", "-c", WRITABLE).stdout.split()


def test_user_could_in_a_plain_bwrap(user: Account) -> None:
    """Settings of the namespaces that are its own."""
    words = "bwrap --unshare-all --disable-userns --unshare-user --ro-bind / / --proc /proc --dev /dev -- python3 -c"
    assert set(user.run(*words.split(), WRITABLE).stdout.split()) - HARMLESS != set()


def test_hardware_is_not_there(box: Box, account: Account) -> None:
    look = "ls /sys /sys/class/net /sys/fs/cgroup 2>/dev/null | head -1"
    assert account.run("sh", "-c", look).stdout != ""
    assert box.sh(look) == ""


def test_devices_are_those_that_every_program_needs(box: Box) -> None:
    assert set(box.sh("ls /dev").split()) <= DEVICES


def test_what_the_kernel_shows_to_root_alone_is_not_there(box: Box, account: Account) -> None:
    look = "cat /proc/slabinfo /proc/vmallocinfo /proc/timer_list /proc/pagetypeinfo 2>/dev/null | head -c 1"
    if account.is_root:
        assert account.run("sh", "-c", look).stdout != ""
    assert box.sh(f"{look}; echo done") == "done\n"


def test_messages_of_the_kernel_cannot_be_read(box: Box) -> None:
    # Not only silence: a box that did not start would be silent, too.
    assert box.sh("dmesg 2>/dev/null || echo refused") == "refused\n"
    assert box.sh("cat /dev/kmsg /proc/kmsg 2>/dev/null; echo done") == "done\n"
