"""Programs that claudebox is told to use instead of nft, pasta and bwrap: the same, but for one thing."""

import os
import shutil
from pathlib import Path

from conftest import Account

REAL = {
    name: shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or name for name in ("nft", "pasta", "bwrap")
}
BASH = shutil.which("bash") or "/bin/bash"

WAITS = """
: >{gate}.arrived
read -r _ <{gate}
exec {program} "$@"
"""
# bwrap itself stops when the files are in place: it starts the program after it has read something.
WAITS_IN_THE_MIDDLE = """
exec {{block}}<>{gate}
exec {program} --block-fd "$block" "$@"
"""
DOES_NOTHING = """
exit 0
"""
# As if claudebox had not asked for another user namespace, for no capabilities, and for a filter of system calls.
KEEPS_CAPABILITIES = """
for word; do
    shift
    case $word in
    --unshare-user | --disable-userns) ;;
    --uid | --gid | --cap-drop | --seccomp) dropped=yes ;;
    *) [ "$dropped" ] || set -- "$@" "$word"; dropped= ;;
    esac
done
exec {program} --cap-add ALL "$@"
"""


def install(account: Account, name: str, text: str, **words: str) -> Path:
    """Have the account's claudebox use a program that does this instead."""
    path = account.home / "standins" / name
    account.write(path, f"#!{BASH}{text.format(program=REAL[name], **words)}", 0o755)
    account.environ[f"CLAUDEBOX_{name.upper()}"] = str(path)
    return path


class Gate:
    """Where a start is held until the test lets it go on."""

    def __init__(self, account: Account) -> None:
        self.path = account.home / "standins" / "gate"
        self.path.parent.mkdir(exist_ok=True)
        os.mkfifo(self.path)
        account.own(self.path.parent)

    def is_reached(self, init: int | None) -> bool:
        """Whether somebody waits: the program that stands in, or else the first process of the box."""
        return self.path.with_name("gate.arrived").exists() or (init is not None and _is_reading_a_pipe(init))

    def open(self) -> None:
        """For whoever waits, if anybody still does."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        os.write(descriptor, b"\n")
        os.close(descriptor)


def _is_reading_a_pipe(pid: int) -> bool:
    try:
        return "pipe_read" in Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        return False


def hold(account: Account, name: str, text: str) -> Gate:
    """Have a program wait at a gate."""
    gate = Gate(account)
    install(account, name, text, gate=str(gate.path))
    return gate
