"""A Plan as the command line of bwrap."""

from __future__ import annotations

from claudebox import model
from claudebox.model import Launch, Mount, Plan
from claudebox.record import Record


class Data(Record):
    """An argument that becomes the number of a descriptor with this content."""

    content: bytes
    label: str


SECCOMP = "seccomp"  # the label of the system call filter
Argument = str | Data
Operation = tuple[Argument, ...]


def bwrap_operations(plan: Plan, launch: Launch | None = None) -> list[Operation]:
    """Each option with its values, in order, without the program: as they are pasted, or for a launch.

    A pasted command has no relay beside it, so with a list of hosts its box has an empty network.
    """
    mounts, environment = (plan.mounts, plan.environment) if launch is None else (launch.mounts, launch.environment)
    return [
        *_isolation(plan, makes_network=launch is not None and launch.makes_network),
        ("--seccomp", Data(plan.kernel.seccomp, SECCOMP)),
        *(operation for mount in mounts for operation in _mount(mount)),
        ("--remount-ro", "/"),
        # bwrap cannot bound it, and what programs write in it has a place of its own: /dev/shm.
        ("--remount-ro", "/dev"),
        *(("--setenv", variable.name, variable.value) for variable in environment if variable.late),
        ("--chdir", plan.project),
    ]


def program_words(plan: Plan) -> tuple[str, ...]:
    """The program that bwrap starts. The `--` keeps a program called `--bind` from becoming an option of bwrap."""
    return ("--", *plan.wrapper, *plan.program.argv)


def _isolation(plan: Plan, *, makes_network: bool) -> list[Operation]:
    # The user namespace and --cap-drop are for root, who otherwise keeps every capability and can unmount the masks.
    return [
        ("--unshare-user", "--uid", str(plan.person.uid), "--gid", str(plan.person.gid)),
        ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup"),
        ("--hostname", plan.hostname),
        ("--cap-drop", "ALL"),
        ("--die-with-parent",),
        # With an uplink, or a list, bwrap already starts in the box's own network.
        *([] if plan.network.is_hosts or plan.network.uplink or makes_network else [("--unshare-net",)]),
        # In a user namespace of its own, a program has all capabilities, and so reaches far more of the kernel.
        *([("--disable-userns",)] if plan.kernel.disable_userns else []),
    ]


def _mount(mount: Mount) -> list[Operation]:
    path, source = mount.path, mount.source
    if mount.kind in (model.RO, model.ABSENT) or (mount.kind == model.MASK and source):
        return [("--ro-bind", source, path)]
    if mount.kind in model.WRITABLE:
        return [("--bind", source, path)]
    if mount.kind == model.SYMLINK:
        return [("--symlink", source, path)]
    if mount.kind == model.TMPFS:
        size = ("--size", str(mount.size)) if mount.size else ()
        return [("--perms", f"{mount.mode:04o}", *size, "--tmpfs", path)]
    if mount.kind == model.FILE:
        return [("--perms", f"{mount.mode:04o}", "--file", Data(mount.content, path), path)]
    if mount.kind in (model.COVER, model.MASK):
        # The file itself is not bound: meanwhile it may have become a symlink to another.
        return [("--perms", f"{mount.mode:04o}", "--ro-bind-data", Data(mount.content, path), path)]
    if mount.kind == model.PROC:
        return [("--proc", path)]
    if mount.kind == model.DEV:
        return [("--dev", path)]
    assert mount.kind == model.HIDE, mount.kind
    if mount.is_dir:
        return [("--perms", "0555", "--tmpfs", path), ("--remount-ro", path)]
    return [("--ro-bind", "/dev/null", path)]
