"""How much memory, how many processes and processors the box may use.

systemd puts them into force: it makes a control group for the box, which no ordinary account can do by itself. A limit
that would not hold is a Problem.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features.limits import CPU, LIMITS, MEMORY, PIDS, Limits
from claudebox.model import Finding, Step

PLACES = ("/usr/bin", "/bin", "/run/current-system/sw/bin")
GROUPS = "/sys/fs/cgroup"
DELEGATE = "/etc/systemd/system/user@.service.d"
NOT_IN_FORCE = f"""let systemd hand this to your account, and log in again:
      sudo mkdir -p {DELEGATE}
      printf '[Service]\\nDelegate=cpu memory pids\\n' |
        sudo tee {DELEGATE}/delegate.conf
      sudo systemctl daemon-reload
      or start the box without --memory, --pids and --cpu"""


def decide(facts: Facts, _: Draft) -> Contribution:
    # systemd and the kernel use the same names.
    said = {one.name: value for one in (MEMORY, PIDS, CPU) if (value := facts.settings[one]) is not None}
    uid = facts.host.person.uid
    bus = f"/run/user/{uid}/bus" if uid else "/run/dbus/system_bus_socket"
    busctl = next((f"{place}/busctl" for place in PLACES if facts.tree.is_executable(f"{place}/busctl")), "")
    if not busctl or not facts.tree.exists(bus):
        first, lacking = next(iter(said.values())).origin.shown, bus if busctl else "busctl"
        raise Problem(
            f"{first} needs systemd, which does not manage your processes here: there is no {lacking}",
            "start claudebox from a login that systemd manages\n"
            "      (on Debian: sudo apt install dbus-user-session), or without limits",
        )
    numbers = [said[name].number if name in said else 0 for name in ("memory", "pids", "cpu")]
    return Contribution(
        findings=tuple(
            Finding(Finding.NOTE, limit.origin.shown, f"{name} of the box is limited to {limit.text}")
            for name, limit in said.items()
        ),
        steps=(Step(Step.BEFORE, LIMITS),),
        records=(Limits(busctl, *numbers),),
    )


SERVICE = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
SIGNATURE = "ssa(sv)a(sa(sv))"  # name, mode, properties, further units
MOVE_PATIENCE_SECONDS = 5.0  # into the group, once systemd has agreed
GLANCE_SECONDS = 0.01
PERIOD = 100_000  # microseconds, for each of which the kernel counts how much of the processors was used
LOG_SIZE = 4096


def put_into_force(limits: Limits) -> None:
    """Return when the limits hold, or raise a Problem."""
    unit = f"claudebox-{os.getpid()}-{os.urandom(4).hex()}.scope"
    refusal = _ask(limits, unit)
    if refusal:
        raise Problem(f"systemd refuses to limit the box: {refusal}", "start it without --memory, --pids and --cpu")
    group = _group(unit)
    lacking = [name for name, wanted in _files(limits).items() if not group or _read(group, name) != wanted]
    if lacking:
        what = f"systemd did not limit the box: {', '.join(lacking)} is not as it should be"
        raise Problem(what, NOT_IN_FORCE)


def request(limits: Limits, unit: str, pid: int, *, is_root: bool) -> list[str]:
    """The words that tell busctl to make a group with this process in it."""
    properties = [("PIDs", "au", "1", str(pid)), ("CollectMode", "s", "inactive-or-failed")]
    if limits.memory:
        properties += [("MemoryMax", "t", str(limits.memory)), ("MemorySwapMax", "t", "0")]
    if limits.pids:
        properties += [("TasksMax", "t", str(limits.pids))]
    if limits.cpu:
        properties += [("CPUQuotaPerSecUSec", "t", str(limits.cpu))]
    words = [word for entry in properties for word in entry]
    call = ("--system" if is_root else "--user", "--quiet", "call", *SERVICE, "StartTransientUnit", SIGNATURE)
    return [*call, unit, "fail", str(len(properties)), *words, "0"]


def _files(limits: Limits) -> dict[str, str]:
    """What the kernel's files say about a group that has these limits."""
    files = {}
    if limits.memory:
        page = os.sysconf("SC_PAGE_SIZE")
        files["memory.max"] = str(limits.memory // page * page)
    if limits.pids:
        files["pids.max"] = str(limits.pids)
    if limits.cpu:
        files["cpu.max"] = f"{limits.cpu * PERIOD // 1_000_000} {PERIOD}"
    return files


def _ask(limits: Limits, unit: str) -> str:
    """Ask systemd for the group. Returns its refusal, or "" if it agreed."""
    import subprocess

    uid = os.geteuid()
    words = [limits.busctl, *request(limits, unit, os.getpid(), is_root=uid == 0)]
    run, null = f"/run/user/{uid}", subprocess.DEVNULL
    environ = {"XDG_RUNTIME_DIR": run, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={run}/bus", "LC_ALL": "C"}
    try:
        done = subprocess.run(words, cwd="/", env=environ, stdin=null, stdout=null, stderr=subprocess.PIPE, check=False)
    except OSError as error:
        return f"{limits.busctl} cannot be started: {error.strerror}"
    said = done.stderr[:LOG_SIZE].decode(errors="replace").strip()
    return "" if done.returncode == 0 else said or f"{limits.busctl} failed"


def _group(unit: str) -> str:
    """Wait until this process is in the group that was asked for: systemd answers before that is so."""
    import time

    end = time.monotonic() + MOVE_PATIENCE_SECONDS
    while time.monotonic() < end:
        with open("/proc/self/cgroup") as file:
            path = file.read().rpartition("0::")[2].strip()  # the line of version 2, which is the last
        if path.endswith(f"/{unit}"):
            return GROUPS + path
        time.sleep(GLANCE_SECONDS)
    return ""


def _read(group: str, name: str) -> str:
    try:
        with open(f"{group}/{name}") as file:
            return file.read().strip()
    except OSError:
        return ""
