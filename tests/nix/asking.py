"""What a box has of Nix, and what claudebox says about that."""

from __future__ import annotations

import json

from conftest import Box

SOCKET = "/nix/var/nix/daemon-socket/socket"


def findings(box: Box, *options: str) -> list[tuple[str, str]]:
    """Kind and text of what the audit says about Nix."""
    done = box.claudebox("--audit", "--json", *options, "--run", "true")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["findings"]
    about = [(each["kind"], f"{each['subject']}: {each['text']}") for each in found]
    return [(kind, text) for kind, text in about if "nix" in text.lower()]


def kinds(box: Box, *options: str) -> set[str]:
    return {kind for kind, _ in findings(box, *options)}


def has_daemon(box: Box, *options: str) -> bool:
    """Whether the socket is in the box; and then only what is said to be there works."""
    told = box.sh(f'[ ! -S {SOCKET} ] || printf socket; printf " %s" "$NIX_REMOTE"', options)
    assert told in ("socket daemon", " ", " local"), told
    return told == "socket daemon"
