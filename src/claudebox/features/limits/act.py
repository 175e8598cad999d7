"""Asks systemd to put this process, and so the box, into a control group of its own with limits.

`systemd-run --scope` does the same, but starts another program in the group. Here the process that makes the box has to
be in the group before it enters other namespaces, where its number is another.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem
from claudebox.features.limits import Limits
from claudebox.features.limits.decide import GROUPS

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
    lacking = [name for name, wanted in _files(limits).items() if group is None or _read(group, name) != wanted]
    if lacking:
        raise Problem(
            f"systemd did not limit the box: {', '.join(lacking)} is not as it should be",
            "start it without --memory, --pids and --cpu",
        )


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


def _group(unit: str) -> str | None:
    """Wait until this process is in the group that was asked for: systemd answers before that is so."""
    import time

    end = time.monotonic() + MOVE_PATIENCE_SECONDS
    while time.monotonic() < end:
        with open("/proc/self/cgroup") as groups:
            for line in groups:
                path = line.strip().removeprefix("0::")
                if line.startswith("0::") and path.endswith(f"/{unit}"):
                    return GROUPS + path
        time.sleep(GLANCE_SECONDS)
    return None


def _read(group: str, name: str) -> str:
    try:
        with open(f"{group}/{name}") as file:
            return file.read().strip()
    except OSError:
        return ""
