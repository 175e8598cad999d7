"""Finds out why pasta may not get a tun device, and what mends that.

udev gives the device mode 0666. Where there is no udev, in containers and small machines, it keeps the mode that the
kernel gave it, which is 0600.
"""

from __future__ import annotations

from claudebox.host.system import is_container
from claudebox.host.tree import Tree

TUN = "/dev/net/tun"
LOAD = "sudo modprobe tun"
FROM_OUTSIDE = "docker run --device /dev/net/tun …"
OPEN_NOW = f"sudo chmod 0666 {TUN}"
OPEN_FOR_GOOD = """echo 'KERNEL=="tun", MODE="0666"' | sudo tee /etc/udev/rules.d/tun.rules"""
OWNERS, EVERYBODYS = 0o600, 0o006

# What an old and a new pasta say if they cannot open the device.
REFUSALS = ("tun socket", "tap device")


def is_about_tun(message: str) -> bool:
    return any(refusal in message for refusal in REFUSALS)


def tun_fault(tree: Tree, uid: int) -> tuple[str, tuple[str, ...]]:
    """What is wrong with the device for this user, and the commands that mend it. Empty if it can be opened."""
    status = tree.status(TUN)
    if status is None:
        return f"there is no {TUN}", (FROM_OUTSIDE if is_container(tree) else LOAD,)
    needed = OWNERS if status.st_uid == uid else EVERYBODYS
    if status.st_mode & needed == needed:
        return "", ()
    mode = f"{status.st_mode & 0o7777:04o}"
    owner = "root" if status.st_uid == 0 else f"user {status.st_uid}"
    return f"{TUN} has mode {mode} and belongs to {owner}: you cannot open it", (OPEN_NOW, OPEN_FOR_GOOD)


def tun_hint(tree: Tree, uid: int) -> str:
    """The same, as the hint of a Problem."""
    why, commands = tun_fault(tree, uid)
    return "\n      ".join((why, *commands))
