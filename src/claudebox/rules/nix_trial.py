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


def trial_expression(canary: str, nonce: str) -> str:
    """A build that looks for a file of the host which everybody can read. The nonce makes it another one each time."""
    script = f"if [ -e {quote(canary)} ]; then echo {OPEN}; else echo {CLOSED}; fi > $out # {nonce}"
    escaped = script.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${")
    return (
        'derivation { name = "claudebox-trial"; system = builtins.currentSystem; builder = "/bin/sh"; '
        f'args = [ "-c" "{escaped}" ]; }}'
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
