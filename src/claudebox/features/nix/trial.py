"""Judges by a trial whether the builds of Nix's daemon are in a sandbox, and remembers that until something changes.

The daemon's configuration is not enough: the daemon may have been started with other options, or before the file was
changed, or root may have a file of its own.
"""

from __future__ import annotations

from claudebox import remembered
from claudebox.host import Host
from claudebox.host.digest import sha256
from claudebox.host.nix_daemon import CONFIG, SOCKET, read_config
from claudebox.model import Preparation
from claudebox.remembered import Form
from claudebox.state import find_state

FORM = Form("Whether the Nix daemon builds in a sandbox. claudebox tries it again when this file is gone.")
BOOT = "/proc/sys/kernel/random/boot_id"

CLOSED = "closed"
OPEN = "open"
UNKNOWN = "unknown"
OUTCOMES = (CLOSED, OPEN, UNKNOWN)
# Everybody can read this file, and no sandbox shows it. The daemon may have a /var/tmp of its own (systemd's
# PrivateTmp).
PUBLIC_FILE = "/etc/os-release"
# Nix says this if the file is not there. If it cannot be read for another reason, another build will fail, too.
NOT_SEEN = "unable to download 'file://"


def recall_outcome(host: Host) -> str:
    """The outcome of the last trial; "" if there was none, or of another daemon."""
    lines = remembered.recall(host.tree, find_state(host).nix_trial, FORM, host.person.uid).lines
    known = lines[1] if len(lines) == 2 and lines[0] == _circumstances(host) else ""
    return known if known in OUTCOMES else ""


def keeping_outcome(host: Host, outcome: str) -> tuple[Preparation, ...]:
    return remembered.note_with_directory(find_state(host).nix_trial, FORM, (_circumstances(host), outcome))


def copying(place: str, content: bytes, nonce: str) -> str:
    """A build that copies a file whose content is known, and fails if it does not see it.

    What copies is a part of Nix: no program has to be in the sandbox, not even a shell. `place` may hold an expression.
    The nonce makes it another build each time.
    """
    return (
        f'derivation {{ name = "claudebox-trial-{nonce}"; system = "builtin"; builder = "builtin:fetchurl"; '
        f'url = "file://{place}"; outputHashMode = "flat"; outputHashAlgo = "sha256"; '
        f'outputHash = "{sha256(content)}"; preferLocalBuild = true; unpack = false; executable = false; }}'
    )


def copying_its_own(nonce: str) -> str:
    """A build that succeeds in every sandbox, because the file that it copies is in the store."""
    return copying(f'${{builtins.toFile "claudebox-trial" "{nonce}"}}', nonce.encode(), nonce)


def judge(copied: list[bool | None], copied_its_own: bool | None) -> str:
    """The outcome. `copied` says of files of the host whether a build could copy them; None if it failed otherwise."""
    if True in copied:
        return OPEN
    return CLOSED if None not in copied and copied_its_own else UNKNOWN


def _circumstances(host: Host) -> str:
    """A digest of the daemon's configuration, of the socket on which it listens, and of the machine's last start."""
    settings = sorted((read_config(host.tree) or {}).items())
    status = host.tree.lstat(SOCKET)
    file = host.tree.status(CONFIG)
    identity = [(one.st_ino, one.st_mtime_ns) for one in (status, file) if one is not None]
    return sha256(repr((settings, identity, host.tree.text(BOOT))).encode(errors="surrogateescape"))
