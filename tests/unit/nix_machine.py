"""A machine with Nix, and packages that are asked for there."""

from __future__ import annotations

from pathlib import Path

from claudebox.model import Origin, Plan
from hosts.machine import EVERYONE, TREES, Machine

HOME = "/home/alice"
PROJECT = f"{HOME}/shop"
SAID = Origin.of_option("--package")
HASH = "0a1b2c3d" * 4
HELLO = f"/nix/store/{HASH}-hello-2.12"
GLIBC = f"/nix/store/{HASH}-glibc-2.40"


def planned(machine: Machine, *names: str) -> Plan:
    return machine.plan(*(word for name in names for word in ("--package", name)), "--run", "make")


def make_machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path).plant((TREES / "debian12.txt").read_text()).plant(EVERYONE.read_text())
    machine.environ["PATH"] = "/usr/bin:/bin"  # without claude: its state has to be the user's own
    return machine.plant("/usr/bin/nix*\n/nix/store/x/")
