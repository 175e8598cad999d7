"""Whether the builds of Nix's daemon are in a sandbox: tried, and remembered for as long as nothing changed.

What its configuration says is not enough: it may have been started with other options, or before the file was changed,
or root may have a file of its own.
"""

from __future__ import annotations

from claudebox.host import Host
from claudebox.host.digest import sha256
from claudebox.host.nix import CONFIG, SOCKET, read_config
from claudebox.model import Preparation
from claudebox.quoting import quote
from claudebox.rules.instance import STATE

RECORD = "nix-trial"
HEADER = "Whether the Nix daemon builds in a sandbox. claudebox tries it again when this file is gone."
BOOT = "/proc/sys/kernel/random/boot_id"

CLOSED = "closed"
OPEN = "open"
UNKNOWN = "unknown"
OUTCOMES = (CLOSED, OPEN, UNKNOWN)
# Beside a file of our own: the daemon may have another /tmp and /var/tmp than we do (PrivateTmp of systemd).
NEVER_IN_A_SANDBOX = ("/etc/nix", "/home", "/root", "/sys")


def recall_outcome(host: Host) -> str:
    """What came of the last trial, or "" if that was another daemon, or none."""
    lines = (host.tree.text(_path(host)) or "").splitlines()
    is_ours = lines[:2] == [HEADER, _circumstances(host)] and len(lines) == 3
    return lines[2] if is_ours and lines[2] in OUTCOMES else ""


def keeping_outcome(host: Host, outcome: str) -> tuple[Preparation, ...]:
    path = _path(host)
    content = f"{HEADER}\n{_circumstances(host)}\n{outcome}\n".encode()
    directory = Preparation(Preparation.DIRECTORY, path.rpartition("/")[0])
    return (directory, Preparation(Preparation.FILE, path, content))


def trial_expression(canary: str, nonce: str, *, asks_for_no_sandbox: bool) -> str:
    """A build that looks for files of the host which everybody can see. The nonce makes it another one each time."""
    places = " ".join((quote(canary), *NEVER_IN_A_SANDBOX))
    look = f"seen={CLOSED}; for place in {places}; do [ ! -e $place ] || seen={OPEN}; done"
    script = f"{look}; echo $seen > $out # {nonce}"
    escaped = script.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${")
    return (
        'derivation { name = "claudebox-trial"; system = builtins.currentSystem; builder = "/bin/sh"; '
        f'args = [ "-c" "{escaped}" ]; __noChroot = {"true" if asks_for_no_sandbox else "false"}; }}'
    )


def _path(host: Host) -> str:
    return f"{host.person.home}/{STATE}/{RECORD}"


def _circumstances(host: Host) -> str:
    """Of the daemon: its configuration, the socket that it listens on, and when the machine was started."""
    settings = sorted((read_config(host.tree) or {}).items())
    status = host.tree.lstat(SOCKET)
    file = host.tree.status(CONFIG)
    identity = [(one.st_ino, one.st_mtime_ns) for one in (status, file) if one is not None]
    return sha256(repr((settings, identity, host.tree.text(BOOT))).encode(errors="surrogateescape"))
