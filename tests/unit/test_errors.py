"""A hint is what this account can type."""

from __future__ import annotations

import pytest

from claudebox.errors import for_account, quote

ROOT, SOMEBODY = 0, 1000
IN_QUOTES = quote("/home/it's my sudo directory")
HINTS = {
    "sudo apt install passt": "apt install passt",
    "sudo apt install x && sudo adduser $USER y": "apt install x && adduser $USER y",
    "echo a=1 | sudo tee /etc/x": "echo a=1 | tee /etc/x",
    "to allow it:\n   sudo sysctl -w a=0\n   sudo modprobe b": "to allow it:\n   sysctl -w a=0\n   modprobe b",
    "(on Debian: sudo apt install a), or (sudo b)": "(on Debian: apt install a), or (b)",
    "echo 'KERNEL' | sudo tee /etc/x": "echo 'KERNEL' | tee /etc/x",
    # Not a command of its own.
    "start it as that account: sudo -u alice claudebox": "start it as that account: sudo -u alice claudebox",
    "sudo chmod u-s '/home/my sudo programs/bwrap'": "chmod u-s '/home/my sudo programs/bwrap'",
    f"sudo rm {IN_QUOTES}\n   sudo ls {IN_QUOTES}": f"rm {IN_QUOTES}\n   ls {IN_QUOTES}",
    "mv /opt/pseudo x": "mv /opt/pseudo x",
    "": "",
}


@pytest.mark.req("UX-05")
@pytest.mark.parametrize(("hint", "typed"), HINTS.items())
def test_root_needs_no_sudo(hint: str, typed: str) -> None:
    assert for_account(hint, ROOT) == typed
    assert for_account(hint, SOMEBODY) == hint
