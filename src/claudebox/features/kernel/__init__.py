"""What of the kernel programs in the box may use: system calls, namespaces, parts of /proc."""

from __future__ import annotations

import sys

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.system import keeps_namespaces_from_us
from claudebox.host.tree import Tree
from claudebox.model import HIDE, RO, Finding, Kernel, Mount, Origin, Plan
from claudebox.settings.table import ON, USERNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features import CheckRow, Host, Section, Settings

ELF = b"\x7fELF"

LIFE_FINDING = Finding(
    Finding.NOTE,
    "AppArmor",
    "claudebox may make no namespace of its own here: if it is killed, a hostile program can live on "
    "(sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0)",
)

# What root owns in /proc and could write without any capability, such as the host's core_pattern. Other accounts may
# not touch it anyway.
ROOTS = Origin.of_rule("root", "root's part of the kernel")
ROOT_READ_ONLY = ("/proc/bus", "/proc/fs")
ROOT_HIDDEN = (
    *("/proc/acpi", "/proc/driver", "/proc/kcore", "/proc/mtrr"),
    *("/proc/scsi", "/proc/sysrq-trigger", "/proc/timer_list", "/proc/kmsg", "/proc/slabinfo"),
    *("/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/pagetypeinfo", "/proc/vmallocinfo"),
)
KERNELS = Origin.of_rule("kernel", "settings, keys, events")
KERNEL_SETTINGS = "/proc/sys"  # some belong to the namespaces of the box, and so to the account that made them
# What the kernel shows in every namespace, and what can be learned from it. Each cover costs a start some time, so what
# tells only how busy this host is stays (docs/security-model.md).
HIDDEN = {
    "/proc/keys": "names of what you have unlocked",
    "/proc/key-users": "how many keys each account has",
    "/proc/locks": "locks of every program, at places in a file that another box can choose to tell something",
    "/proc/interrupts": "counts the keys that you press, and packets",
    "/proc/irq": "the same, a file for each device",
    "/proc/softirqs": "the same, by kind",
    "/proc/asound": "who plays or records sound, and when",
    "/proc/sched_debug": "names of all processes, before Linux 5.13",
    "/proc/latency_stats": "what every program waits for",
}
OPTION = "- user namespaces: `--userns on`; Chromium does not need them if you start it with `--no-sandbox`\n"


class KernelFeature(Feature):
    settings = (USERNS,)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.sandbox.seccomp import call_filter

        tree, userns, host = facts.tree, facts.settings[USERNS], facts.host
        has_userns = userns.text == ON
        if has_userns and facts.is_root:
            what = f"{userns.origin.shown}: not as root: in a user namespace the agent could change the host's cgroups"
            raise Problem(what, "start claudebox from an ordinary account")
        owns_pid_namespace = not keeps_namespaces_from_us(tree, host.person.uid)
        # With a cover in the way, the kernel would let no namespace of the box have a /proc.
        covered = covers(tree, KERNELS, (KERNEL_SETTINGS,), tuple(HIDDEN)) if not has_userns else []
        if facts.is_root:
            covered += covers(tree, ROOTS, ROOT_READ_ONLY, ROOT_HIDDEN)
        text = "programs in the box can become root of namespaces, where more of the kernel can be attacked"
        risks = [Finding(Finding.RISK, userns.origin.shown, text)] if has_userns else []
        return Contribution(
            mounts=tuple(covered),
            findings=(*risks, *([] if owns_pid_namespace else [LIFE_FINDING])),
            kernel=Kernel(
                call_filter(host.machine, with_namespaces=has_userns, with_setgid=facts.is_shared),
                disable_userns=not has_userns and can_disable_userns(tree, facts.bwrap),
                drop_groups=facts.is_root,
                owns_pid_namespace=owns_pid_namespace,
            ),
        )

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import ASK, Section

        return (Section(told=((ASK, OPTION),)),)

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        from claudebox.process.isolation import can_scope
        from claudebox.process.trial import FAIL, NOTE, OK, CheckRow
        from claudebox.sandbox.seccomp import MACHINES

        why = f"the system call filter knows {' and '.join(MACHINES)}"
        machine = CheckRow(FAIL, "machine", host.machine, why)
        if host.machine in MACHINES:
            machine = CheckRow(OK, "machine", f"{host.machine}, Python {sys.version.split()[0]}")
        why = "programs in the box can connect to abstract unix sockets of the host: X11, D-Bus, an IDE"
        scopes = CheckRow(NOTE, "Landlock scopes", "this kernel has none (they came with Linux 6.12)", why)
        if can_scope():
            scopes = CheckRow(OK, "Landlock scopes", "abstract sockets and processes of the host are out of reach")
        return [machine, scopes]


def can_disable_userns(tree: Tree, bwrap: str) -> bool:
    """Whether bwrap can, as it can since 0.8. Where it cannot, the system call filter holds by itself."""
    program = tree.read(bwrap) or b""
    return not program.startswith(ELF) or b"--disable-userns" in program


def covers(tree: Tree, origin: Origin, read_only: tuple[str, ...], hidden: tuple[str, ...]) -> list[Mount]:
    """Cover what this kernel has of it."""
    paths = {path: tree.is_dir(path) for path in (*read_only, *hidden) if tree.exists(path)}
    return [
        Mount(RO, path, origin, source=path, is_dir=is_dir)
        if path in read_only
        else Mount(HIDE, path, origin, is_dir=is_dir)
        for path, is_dir in paths.items()
    ]
