"""Checks whether a box can have the internet alone: finds the programs, connects a box for real, explains failures."""

from __future__ import annotations

import os
import socket
from typing import Any

from claudebox.errors import Problem
from claudebox.features.network.act import connect
from claudebox.features.network.uplink import TUN, is_about_tun, plan_uplink, tun_fault
from claudebox.host import Host, system
from claudebox.host.programs import choose_uplink
from claudebox.host.tree import Tree
from claudebox.model import Origin, Uplink
from claudebox.process import trial
from claudebox.process.trial import FAIL, NOTE, OK, CheckRow
from claudebox.settings.table import INET
from claudebox.settings.values import Settings, Word
from claudebox.state.reach import reach_of
from claudebox.view.argv import called_pasta

NAME = "network inet"
MODULES = "sudo modprobe -a nf_tables nft_ct nft_nat nft_chain_nat nft_reject_inet"
PRIVATE = ("10.255.255.1", "fdff:ffff:ffff::1")
PORT = 9  # discard
REJECTION_PATIENCE_SECONDS = 3  # although a rejection comes at once


def chosen(name: str, host: Host, settings: Settings) -> str:
    """The path of pasta or nft. Raises a Problem if there is none that can be used."""
    named = {"pasta": settings.pasta, "nft": settings.nft}[name]
    (path,) = choose_uplink(host.tree, {name: named}, host.environ.get("PATH", ""), host.cwd, reach_of(host))
    return called_pasta(path) if name == "pasta" else path


def uplink_rows(host: Host, settings: Settings) -> list[CheckRow]:
    """Rows about the uplink, which is a failure only if the user's settings need it."""
    lacking = FAIL if settings.network.text == INET else NOTE
    rows: list[CheckRow] = []
    found: dict[str, str] = {}
    for name in ("pasta", "nft"):
        try:
            found[name] = chosen(name, host, settings)
            rows.append(CheckRow(OK, name, _shown(found[name])))
        except Problem as problem:
            rows.append(CheckRow.of_problem(name, problem, lacking))
    if len(found) < len(rows):
        missing = " and ".join(row.name for row in rows if row.state != OK)
        return [*rows, CheckRow(lacking, NAME, f"not tried: it needs {missing}")]
    return [*rows, _trial_row(host, found["pasta"], found["nft"], lacking)]


def _shown(path: str) -> str:
    """The program with its version, which some versions of pasta cannot tell."""
    number = trial.program_version(path)
    return path if number == trial.NO_VERSION else f"{number}, {path}"


def _trial_row(host: Host, pasta: str, nft: str, lacking: str) -> CheckRow:
    wanted = Settings(network=Word(INET, Origin.of_option("--check")))
    try:
        uplink = plan_uplink(wanted, host.neighbourhood(host.tree), host.tree, host.person.uid, pasta, nft)
        passed = trial.run_in_namespaces("features.network.check", uplink.__dict__)
    except Problem as problem:
        why, fix = explain(host.tree, host.person.uid, problem.message)
        return CheckRow(lacking, NAME, problem.message, why, fix)
    if passed:
        why = "the filter was loaded and does not filter: what is private can be reached with --network inet"
        return CheckRow(FAIL, NAME, f"not rejected: {' and '.join(passed)}", why)
    return CheckRow(OK, NAME, "pasta and nft connected a box; its filter rejected a private address")


def explain(tree: Tree, uid: int, message: str) -> tuple[str, tuple[str, ...]]:
    """The reason behind a message, and the commands that mend it."""
    if "namespace cannot" in message or "namespace for the box" in message:
        if system.is_restricted(tree, ""):
            why = "AppArmor lets only known programs use user namespaces, and claudebox is none of them"
            return why, trial.sysctl("kernel.apparmor_restrict_unprivileged_userns=0")
        return trial.explain(tree, "", message)
    if "filter cannot be loaded" in message:
        return "the kernel needs nf_tables with connection tracking, NAT and reject", (MODULES,)
    if is_about_tun(message):
        why, fix = tun_fault(tree, uid)
        return why or f"{TUN} can be opened, and does not work", fix
    return "", ()


def main() -> None:
    """Connect this process as a box is connected, and try what the filter has to reject. pasta ends when it does."""
    trial.answer_in_namespaces(_passed_addresses)


def _passed_addresses(uplink: dict[str, Any]) -> list[str]:
    """The addresses that should have been rejected and were not."""
    life = os.pipe()  # in the child alone: who held the other end, too, would not see that pasta has ended
    connect(Uplink(**uplink), *life)
    return [address for address in PRIVATE if not is_rejected(address)]


def is_rejected(address: str) -> bool:
    """Whether a connection is refused. Silence is not enough: the packet may be on its way."""
    try:
        socket.create_connection((address, PORT), timeout=REJECTION_PATIENCE_SECONDS).close()
    except TimeoutError:
        return False
    except OSError:
        return True
    return False
