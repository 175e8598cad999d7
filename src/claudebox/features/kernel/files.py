"""What of the kernel's own files the box may not change or see."""

from __future__ import annotations

from claudebox.host.tree import Tree
from claudebox.model import (
    HIDE,
    RO,
    Mount,
    Origin,
)

# Of /proc, for root alone: other accounts may not touch these anyway.
KERNEL_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq")
KERNEL_HIDDEN = (
    *("/proc/acpi", "/proc/asound", "/proc/driver", "/proc/kcore", "/proc/latency_stats", "/proc/mtrr"),
    *("/proc/sched_debug", "/proc/scsi", "/proc/sysrq-trigger", "/proc/timer_list", "/proc/kmsg", "/proc/slabinfo"),
    *("/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/pagetypeinfo", "/proc/vmallocinfo"),
)
KERNEL_SETTINGS = "/proc/sys"  # of which some belong to the namespaces of the box, and so to who made them
KEYS = ("/proc/keys", "/proc/key-users")  # names of what the user has unlocked


def kernel_masks(tree: Tree) -> list[Mount]:
    """What root owns in /proc, and could therefore write without any capability: the host's core_pattern for one."""
    origin = Origin("root", "root's part of the kernel")
    shown = [path for path in KERNEL_READ_ONLY if tree.exists(path)]
    hidden = [path for path in KERNEL_HIDDEN if tree.exists(path)]
    return [
        *(Mount(RO, path, origin, source=path, is_dir=tree.is_dir(path)) for path in shown),
        *(Mount(HIDE, path, origin, is_dir=tree.is_dir(path)) for path in hidden),
    ]


def kernel_covers(tree: Tree) -> list[Mount]:
    """For everybody: settings cannot be changed, and the names of keys, which the kernel shows in every namespace, not
    be seen."""
    origin = Origin("kernel", "settings and names of keys")
    settings = Mount(RO, KERNEL_SETTINGS, origin, source=KERNEL_SETTINGS)
    keys = [Mount(HIDE, path, origin, is_dir=False) for path in KEYS if tree.exists(path)]
    return [*([settings] if tree.exists(KERNEL_SETTINGS) else []), *keys]
