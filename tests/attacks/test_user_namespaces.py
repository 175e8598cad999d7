"""In a user namespace of its own a program is root: much of the kernel is open to it that ordinary users never see."""

import shutil

import pytest

from attacks.unprotected import FILTER, NO_NAMESPACES, without
from conftest import Account, Box

pytestmark = [pytest.mark.req("SEC-02"), pytest.mark.root_differs("root needs no user namespace for most of this")]

# Every way to make or enter a namespace, one line each: the call, and what came of it.
MAKE = """
import ctypes, errno, os, platform, signal
libc = ctypes.CDLL(None, use_errno=True)
CLONE, CLONE3 = {"x86_64": (56, 435), "aarch64": (220, 435)}[platform.machine()]
KINDS = {"user": 1 << 28, "pid": 1 << 29, "network": 1 << 30, "mount": 1 << 17, "uts": 1 << 26, "ipc": 1 << 27,
         "cgroup": 1 << 25, "time": 0x80}

def attempt(name, call):
    child = os.fork()
    if child == 0:
        ctypes.set_errno(0)
        result = call()
        os._exit(0 if result >= 0 else ctypes.get_errno())
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(name, errno.errorcode[status] if status else "made", flush=True)

def clone(flags):
    made = libc.syscall(CLONE, ctypes.c_ulong(flags | signal.SIGCHLD), 0, 0, 0, 0)
    if made == 0:
        os._exit(0)
    return made

def clone3(flags):
    arguments = (ctypes.c_uint64 * 11)(flags, 0, 0, 0, signal.SIGCHLD)
    made = libc.syscall(CLONE3, ctypes.byref(arguments), ctypes.sizeof(arguments))
    if made == 0:
        os._exit(0)
    return made

for kind, flag in KINDS.items():
    user = 0 if kind == "user" else KINDS["user"]
    attempt(f"unshare {kind}", lambda: libc.unshare(flag | user))
    attempt(f"clone3 {kind}", lambda: clone3(flag | user))
    if kind != "time":
        attempt(f"clone {kind}", lambda: clone(flag | user))
        attempt(f"clone {kind} with upper bits", lambda: clone(flag | user | 0xABCD << 32))
attempt("setns", lambda: libc.setns(os.open("/proc/self/ns/user", os.O_RDONLY), 0))
"""


def made(box: Box, **how: tuple[str, ...]) -> dict[str, str]:
    done = box.inside("python3", "-c", MAKE, **how)
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


def test_none_can_be_made_in_the_box(box: Box) -> None:
    found = made(box)
    assert len(found) > 25
    wanted = {name: "ENOSYS" if name.startswith("clone3") else "EPERM" for name in found}
    assert found == wanted


def test_all_can_be_made_without_the_protections(box: Box) -> None:
    found = made(without(box, FILTER, NO_NAMESPACES))
    assert {name for name, outcome in found.items() if outcome != "made"} <= {"setns"}  # into the one it is in


@pytest.mark.parametrize("missing", [FILTER, NO_NAMESPACES])
def test_each_protection_is_enough_alone(box: Box, missing: str) -> None:
    assert "made" not in made(without(box, missing)).values()


def test_bwrap_that_cannot_switch_them_off_is_not_asked_to(box: Box) -> None:
    """Before 0.8 it does not know the option. The filter is enough."""
    name = b"--disable-userns"
    with open(shutil.which("bwrap") or "/usr/bin/bwrap", "rb") as program:
        older = program.read().replace(name, name.replace(b"disable", b"unknown"))
    path = box.account.write(box.account.home / "older" / "bwrap", "", 0o755)
    path.write_bytes(older)
    box.account.environ["CLAUDEBOX_BWRAP"] = str(path)
    assert set(made(box).values()) == {"EPERM", "ENOSYS"}


@pytest.mark.parametrize("tier", ["full", "none"])
def test_setting_allows_them(box: Box, account: Account, tier: str) -> None:
    """For programs that build a sandbox of their own."""
    options = ("--userns", "on", "--network", tier)
    done = box.inside("unshare", "-Urmpf", "sh", "-c", "mount -t tmpfs none /tmp && id -u", options=options)
    if account.is_root:
        assert (done.returncode, "not as root" in done.stderr) == (125, True)
    else:
        assert done.stdout == "0\n", done.stderr


NESTED = (
    "bwrap --unshare-all --ro-bind / / --tmpfs /tmp --proc /proc --dev /dev --die-with-parent -- sh -c 'echo $$; id -u'"
)


WITHOUT_ANOTHER_WAY = (0, 12)  # since then bwrap needs openat2, which could make setuid files: the box has none


def test_box_in_the_box(box: Box, account: Account) -> None:
    if account.is_root:
        return
    version = account.run("bwrap", "--version").stdout.split()[1]
    done = box.inside("sh", "-c", NESTED, options=("--userns", "on"))
    if tuple(map(int, version.split(".")[:2])) < WITHOUT_ANOTHER_WAY:
        assert done.stdout.split() == ["2", str(account.uid)], done.stderr
    else:
        assert (done.returncode, "Function not implemented" in done.stderr) == (1, True), done.stderr


def test_setting_gives_no_way_out(box: Box, account: Account) -> None:
    """Whoever makes a user namespace is root in it, but the mounts of the box are locked for it."""
    attacks = (
        "umount /usr",
        "umount -l /etc/resolv.conf",
        "umount -l /proc",
        'mount -o remount,bind,rw /usr && rmdir "$(mktemp -d -p /usr)"',
        'mount -o remount,bind,rw / && rmdir "$(mktemp -d -p /)"',
    )
    script = "; ".join(f"{{ {attack}; }} && echo possible: {number}" for number, attack in enumerate(attacks))
    result = box.inside("unshare", "-Urmpf", "sh", "-c", f"echo root; {script}", options=("--userns", "on"))
    assert result.stdout == ("" if account.is_root else "root\n")


def test_audit_says_what_the_setting_means(box: Box, account: Account) -> None:
    if not account.is_root:
        shown = box.claudebox("--userns", "on", "--audit", "--shell").stdout
        assert "! --userns: programs in the box can become root of namespaces" in shown
    assert "--userns" not in box.claudebox("--audit", "--shell").stdout


def test_project_gets_them_only_after_a_yes(box: Box, account: Account) -> None:
    account.write(box.project / ".claudebox.toml", 'userns = "on"\n')
    done = box.inside("unshare", "-U", "true")
    assert done.returncode != 0
    assert "asks for more (userns) and does not get it" in " ".join(done.stderr.split())
