"""Connects the box with the internet, and with nothing else.

The process that will become bwrap moves into a network namespace of its own and loads the filter there. A child of it,
which stayed on the host's network, becomes pasta and carries the packets. The box is started only when both are done:
no program ever runs without the filter.

Nothing outlives the rest: see attended.py. pasta holds one end of a pipe; when that ends, so does the box.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

from claudebox.launch.attended import fork_below
from claudebox.launch.descriptors import close_all_but
from claudebox.launch.system_calls import c_function
from claudebox.model import Network, Uplink
from claudebox.problem import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

NEW_USER_NAMESPACE = 0x10000000
NEW_PID_NAMESPACE = 0x20000000
NEW_NETWORK_NAMESPACE = 0x40000000
PATIENCE_MS = 10_000
LOG_SIZE = 4096
FIRST_FREE_PORT = 1024
PID_SIZE = 32
# When all is set up, and not before, it writes its number into the pipe that is its standard output.
ATTACHED = ("--foreground", "--netns", "/proc/self/fd/0", "--no-netns-quit", "--pid", "/proc/self/fd/1")
APPARMOR_SWITCH = "kernel.apparmor_restrict_unprivileged_userns"

# Of the new namespace: IPv6 addresses that can be used at once, and ping for everybody.
KERNEL_SETTINGS = (
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv4/ping_group_range", "0 0"),
)


def connect(network: Network, uplink: Uplink) -> None:
    """Move into a network namespace with this uplink, as a child of what this process was."""
    _enter_user_namespace()
    _unshare(NEW_PID_NAMESPACE, "pid")
    life, pastas_end = os.pipe()
    fork_below(life, pastas_end)
    log = _log("pasta")
    go, permission = os.pipe()
    # As /proc knows it, which is older than the pid namespace.
    number = os.readlink("/proc/self")
    if os.fork() == 0:
        os.close(permission)
        _become_pasta(uplink, number, go, pastas_end, log)
    os.close(pastas_end)
    os.close(go)
    _enter_network_namespace(uplink.sysctls)
    os.write(permission, b".")
    os.close(permission)
    refusal = _load_filter(uplink)
    if refusal:
        raise _filter_problem(refusal)
    if not _is_ready(life):
        raise _pasta_problem(network, _content(log))


def _enter_user_namespace() -> None:
    """In it this process is root, which is what it takes to configure a network namespace, and nowhere else."""
    user, group = os.geteuid(), os.getegid()
    _unshare(NEW_USER_NAMESPACE, "user")
    try:
        _write("/proc/self/uid_map", f"0 {user} 1")
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/gid_map", f"0 {group} 1")
    except OSError as error:
        raise Problem(f"the user namespace cannot be set up: {error.strerror}", *_advice()) from None


def _enter_network_namespace(sysctls: tuple[tuple[str, str], ...] = ()) -> None:
    _unshare(NEW_NETWORK_NAMESPACE, "network")
    for name, value in (*KERNEL_SETTINGS, *sysctls):
        try:
            _write(f"/proc/sys/net/{name}", value)
        except OSError:
            pass  # a kernel without IPv6, for one


def _unshare(flag: int, kind: str) -> None:
    call = c_function("unshare")
    if call is None or call(flag) != 0:
        raise Problem(f"the kernel does not let claudebox make a {kind} namespace for the box", *_advice())


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _become_pasta(uplink: Uplink, parent: str, go: int, life: int, log: int) -> NoReturn:
    """In a session of its own: no key of the terminal is meant for it."""
    try:
        os.setsid()
        if os.read(go, 1):
            # New versions close every other descriptor; and they may not look into /proc of their parent.
            namespace = os.open(f"/proc/{parent}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            _become(uplink.pasta, ("pasta", *ATTACHED, *uplink.options), (namespace, life, log))
    finally:
        os._exit(1)


def _load_filter(uplink: Uplink) -> str:
    """ "" if it is loaded, else what nft says."""
    rules, log = os.memfd_create("ruleset"), _log("nft")
    os.write(rules, uplink.ruleset.encode())
    os.lseek(rules, 0, os.SEEK_SET)
    nft = os.fork()
    if nft == 0:
        try:
            _become(uplink.nft, ("nft", "-f", "-"), (rules, log, log))
        finally:
            os._exit(1)
    _, status = os.waitpid(nft, 0)
    refusal = "" if status == 0 else _content(log) or f"{uplink.nft} failed"
    os.close(rules)
    os.close(log)
    return refusal


def _become(program: str, words: tuple[str, ...], streams: tuple[int, int, int]) -> None:
    """The first word counts: pasta and passt are one program."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    close_all_but([])
    os.chdir("/")
    for number in (_signal.SIGINT, _signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)  # Python's own choices
    try:
        os.execve(program, words, {})
    except OSError as error:
        os.write(2, f"{program} cannot be started: {error.strerror}\n".encode())


def _log(name: str) -> int:
    """A file in memory of limited size. A pipe that nobody reads would end who writes to it."""
    import fcntl

    descriptor = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(descriptor, LOG_SIZE)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
    return descriptor


def _content(log: int) -> str:
    return os.pread(log, LOG_SIZE, 0).rstrip(b"\0").decode(errors="replace").strip()


def _is_ready(life: int) -> bool:
    """Whether pasta has set up everything. False if it ended, or takes too long."""
    import select

    poll = select.poll()
    poll.register(life, select.POLLIN)
    return bool(poll.poll(PATIENCE_MS)) and bool(os.read(life, PID_SIZE))


def _filter_problem(refusal: str) -> Problem:
    # nft points at the place with a second and a third line.
    return Problem(f"the network's filter cannot be loaded: {refusal.splitlines()[0]}", *_advice("nf_tables"))


def _pasta_problem(network: Network, log: str) -> Problem:
    lines = log.splitlines() or ["it did not answer"]
    refusal = next((line for line in lines if "bind" in line or "Listen failed" in line), "")
    if refusal and network.published:
        return _port_problem(network, refusal)
    return Problem(f"pasta cannot connect the box: {lines[-1]}", *_advice("tun"))


def _port_problem(network: Network, refusal: str) -> Problem:
    """The refusal names the option that was given to pasta, or the address that it made of it."""
    named = refusal.replace(":", " ").replace("/", " ").replace("'", " ").replace(",", " ").split()
    ports = [port for port in network.published if str(port.host) in named] or [*network.published]
    numbers = ", ".join(str(port.host) for port in ports)
    # Not even for root: pasta has no privileges on the host.
    is_low = any(port.host < FIRST_FREE_PORT for port in ports)
    hint = "choose one from 1024 on: --publish 8080:80" if is_low else "see who has it: ss -ltnp"
    return Problem(f"{ports[0].origin.rule}: port {numbers} of this host cannot be opened: {refusal}", hint)


def _advice(module: str = "") -> tuple[str]:
    """A hint, as the arguments of a Problem."""
    if _is_restricted():
        return (f"AppArmor forbids it here; to allow it:\n      sudo sysctl -w {APPARMOR_SWITCH}=0",)
    return (f"if the kernel has it as a module: sudo modprobe {module}" if module else "claudebox --check",)


def _is_restricted() -> bool:
    """Ubuntu lets only programs with a profile have capabilities in a user namespace."""
    try:
        with open("/proc/sys/" + APPARMOR_SWITCH.replace(".", "/")) as switch:
            return switch.read().strip() == "1"
    except OSError:
        return False
