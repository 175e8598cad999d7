"""The machine that the tests run on, made of the one they were started on. None of its peculiarities may count.

As root, in namespaces of their own: processes, mounts, network, names and shared memory. When the tests end, however
they end, the kernel takes all of it away. Each worker has a machine of its own inside of that one. As an ordinary user
only what a process can decide about itself is decided: variables, limits, signals, the file mode mask.

    /tmp /var/tmp /dev/shm /home /root    empty, and in memory
    /dev                                  the usual devices, and a /dev/net/tun that everybody may open
    /nix                                  none, unless Python itself is in there
    /etc                                  a copy, with accounts to test as, one for each worker, and without the
                                          administrator's choices for git, Nix and Claude Code
    the checkout                          at its place; if these accounts cannot read it there, a copy elsewhere
"""

import ctypes
import fcntl
import os
import resource
import shlex
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from running import needs, pins

REFUSED = 125
ACCOUNTS = 16
FIRST_UID = 47110
ACCOUNT = "claudebox-test-{}"
COPY = "/var/tmp/claudebox"  # of the checkout
BEHIND = "/var/tmp/.machine"  # what the machine is made of
BE_WORKER = "--be-worker"
KEPT_VARIABLES = ("CI", "CLAUDEBOX_TEST_LAUNCHES")

MS_RDONLY, MS_BIND, MS_REC, MS_PRIVATE = 0x1, 0x1000, 0x4000, 0x40000
NEW_NAMESPACES = {"mount": 0x20000, "uts": 0x4000000, "ipc": 0x8000000, "pid": 0x20000000, "net": 0x40000000}
PR_SET_PDEATHSIG = 1
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
OPEN_FILES = 4096  # what the kernel itself allows everybody; one test uses number 1300
LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_CPU: resource.RLIM_INFINITY,
    resource.RLIMIT_DATA: resource.RLIM_INFINITY,
    resource.RLIMIT_AS: resource.RLIM_INFINITY,
    resource.RLIMIT_FSIZE: resource.RLIM_INFINITY,
    resource.RLIMIT_NOFILE: OPEN_FILES,
    resource.RLIMIT_STACK: 8 * 1024 * 1024,
}

NOT_OURS = ("claude-code", "gitconfig", "localtime", "nix", "timezone")
FILES = {
    "hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost\n",
    "resolv.conf": "nameserver 127.0.0.1\n",  # where nobody answers, which is quick
    "claudebox-tests": "This machine was made by tests/running/machine.py.\n",
}
CABLE = """\
link add eth0 up type veth peer name nowhere
link set nowhere up
address add 192.0.2.2/24 dev eth0
route add default via 192.0.2.1
"""

_libc = ctypes.CDLL(None, use_errno=True)


def run(command: Sequence[str], environ: Mapping[str, str], without: Sequence[str] = ()) -> int:
    """Run a program, which is given from the checkout, on such a machine; its exit status."""
    calm()
    if (most := resource.getrlimit(resource.RLIMIT_NOFILE)[0]) < OPEN_FILES:
        print(
            f"error: only {most} files may be open here, and the tests need {OPEN_FILES}\n\n"
            "hint: raise the limit where it was set: limits.conf, systemd's LimitNOFILE, or the shell's ulimit -n",
            file=sys.stderr,
        )
        return REFUSED
    if os.geteuid() != 0:
        with tempfile.TemporaryDirectory(prefix="claudebox-tests-") as home:
            return _spawn([str(pins.CHECKOUT / command[0]), *command[1:]], variables(environ, home))
    return _run_in_namespaces(command, environ, without)


def worker() -> str:
    """How pytest-xdist is told to start workers, each on a machine of its own."""
    starter = [sys.executable, "-E", "-s", str(Path(__file__).parent), BE_WORKER]
    return f"popen//python={shlex.join(starter)}" if os.geteuid() == 0 else "popen"


def be_worker(arguments: Sequence[str]) -> int:
    """Called by pytest-xdist as if this were Python."""
    return run([".venv/bin/python", *arguments], os.environ)


def calm() -> None:
    """What a process inherits and no test should notice: nohup, `&`, cron, a careful umask, a narrow limit."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(0o022)
    for kind, wanted in LIMITS.items():
        _limit(kind, wanted)


def _limit(kind: int, wanted: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY and (wanted == resource.RLIM_INFINITY or wanted > hard):
        try:
            resource.setrlimit(kind, (wanted, wanted))
        except (OSError, ValueError):
            resource.setrlimit(kind, (hard, hard))  # the most that is allowed
    else:
        resource.setrlimit(kind, (wanted, hard))


def variables(environ: Mapping[str, str], home: str) -> dict[str, str]:
    """All that a test sees of the environment of whoever started them."""
    kept = {name: environ[name] for name in KEPT_VARIABLES if name in environ}
    fixed = {
        "HOME": home,
        "LANG": "C.UTF-8",
        "PATH": needs.SYSTEM_PATH,
        "TERM": "xterm",
        "TZ": "UTC",
        "USER": "root" if os.geteuid() == 0 else environ.get("USER", ""),
        "CLAUDEBOX_TEST_CACHE": str(pins.CACHE),
    }
    return {**fixed, **kept}


def _run_in_namespaces(command: Sequence[str], environ: Mapping[str, str], without: Sequence[str]) -> int:
    flags = 0
    for flag in NEW_NAMESPACES.values():
        flags |= flag
    if _libc.unshare(flags) != 0:
        why = os.strerror(ctypes.get_errno())
        print(
            f"error: root cannot make namespaces here: {why}\n\n"
            "hint: start ./run-tests as an ordinary user, or in a container that is privileged",
            file=sys.stderr,
        )
        return REFUSED
    first = os.fork()
    if first == 0:
        _die_with_parent()
        os._exit(_be_first(command, environ, without))
    return _wait_for(first)


def _wait_for(first: int) -> int:
    """Whoever ends us ends the machine."""

    def end(number: int, _: object) -> None:
        os.kill(first, signal.SIGKILL)
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    signal.signal(signal.SIGINT, lambda *_: None)  # the tests have got it, too, and say where they were
    return os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _be_first(command: Sequence[str], environ: Mapping[str, str], without: Sequence[str]) -> int:
    """The first process of the machine: furnish it, start the program, bury whoever dies without a parent."""
    try:
        checkout = furnish()
        hide(without)
        os.chdir(checkout)
    except OSError as error:
        print(f"error: cannot make a machine to test on: {error}", file=sys.stderr)
        return REFUSED
    return _spawn([f"{checkout}/{command[0]}", *command[1:]], variables(environ, "/root"))


def _spawn(command: Sequence[str], environ: Mapping[str, str]) -> int:
    program = os.fork()
    if program == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            os.execve(command[0], list(command), dict(environ))
        except OSError as error:
            print(f"error: {command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(REFUSED)
    signal.signal(signal.SIGINT, lambda *_: None)
    while True:
        pid, status = os.wait()
        if pid == program:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def furnish() -> str:
    """Returns where the checkout is."""
    checkout = os.open(pins.CHECKOUT, os.O_PATH)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc")
    # Before anything covers it.
    old = Path("/dev")
    for place in ("/var/tmp", "/tmp"):
        mount("tmpfs", place, "tmpfs", data="mode=1777")
    os.mkdir(BEHIND, 0o755)
    make_devices(old)
    for place in ("/home", "/root", "/nix"):
        if os.path.isdir(place) and not _is_used(place):
            mount("tmpfs", place, "tmpfs", data="mode=0700" if place == "/root" else "mode=0755")
    mount("tmpfs", "/dev/shm", "tmpfs", data="mode=1777")
    if not os.path.exists("/etc/claudebox-tests"):  # or else a machine in a machine, which has it already
        make_etc()
    make_homes()
    socket.sethostname("claudebox-tests")
    raise_loopback()
    lay_cable()
    try:
        return show_checkout(checkout)
    finally:
        os.close(checkout)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    words = [os.fsencode(word) if word else None for word in (source, target, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(data) if data else None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount {source} {target}: {os.strerror(number)}")


def _is_used(place: str) -> bool:
    """Python, the programs to test with: what is needed cannot be hidden."""
    used = {os.path.realpath(path) for path in (sys.executable, pins.CACHE, pins.CHECKOUT / ".venv/bin/python")}
    return any(path.startswith(f"{place}/") for path in used)


def make_devices(old: Path) -> None:
    new = Path(BEHIND, "dev")
    new.mkdir()
    mount("tmpfs", str(new), "tmpfs", data="mode=0755")
    for name, (major, minor) in DEVICES.items():
        make_device(new / name, major, minor, old / name)
    for name, target in LINKS.items():
        (new / name).symlink_to(target)
    (new / "net").mkdir()
    make_device(new / "net/tun", 10, 200, old / "net/tun")
    for name in ("pts", "shm", "mqueue"):
        (new / name).mkdir()
    mount("devpts", str(new / "pts"), "devpts", data="newinstance,ptmxmode=0666,mode=0620,gid=5")
    mount(str(new), "/dev", flags=MS_BIND | MS_REC)


def make_device(path: Path, major: int, minor: int, old: Path) -> None:
    """Where a container may make none, the one that is there has to do."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        path.chmod(0o666)
    except OSError:
        if old.exists():
            path.touch()
            mount(str(old), str(path), flags=MS_BIND)


def make_etc() -> None:
    """A copy that can be changed; a mount over a single file would need that file to be there."""
    new = Path(BEHIND, "etc")
    copy = ["cp", "-aT", "/etc", str(new)]
    # A file may vanish meanwhile, such as a lock of whoever adds an account at this moment.
    if subprocess.run(copy, env={"PATH": needs.SYSTEM_PATH}, check=False).returncode:
        subprocess.run(copy, env={"PATH": needs.SYSTEM_PATH}, check=True)
    for name in NOT_OURS:
        path = new / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    for name, text in FILES.items():
        (new / name).unlink(missing_ok=True)
        (new / name).write_text(text)
    make_accounts(new)
    mount(str(new), "/etc", flags=MS_BIND)


def make_homes() -> None:
    for number in range(ACCOUNTS):
        home = f"/var/tmp/{ACCOUNT.format(number)}"
        os.mkdir(home, 0o755)
        os.chown(home, FIRST_UID + number, FIRST_UID + number)


def make_accounts(etc: Path) -> None:
    with (etc / "passwd").open("a") as passwd, (etc / "group").open("a") as group:
        for number in range(ACCOUNTS):
            name, identity, home = ACCOUNT.format(number), FIRST_UID + number, f"/var/tmp/{ACCOUNT.format(number)}"
            passwd.write(f"{name}:x:{identity}:{identity}::{home}:/bin/sh\n")
            group.write(f"{name}:x:{identity}:\n")


def show_checkout(descriptor: int) -> str:
    """Where it is: at its own place, if others can read it there; otherwise a copy."""
    place = pins.CHECKOUT
    if not place.exists():  # covered by now
        place.mkdir(parents=True)
        mount(f"/proc/self/fd/{descriptor}", str(place), flags=MS_BIND | MS_REC)
    if _is_open(place):
        return str(place)
    shutil.copytree(place, COPY, symlinks=True, ignore=shutil.ignore_patterns(".git", "__pycache__", ".*_cache"))
    for directory, _, files in os.walk(COPY):
        os.chmod(directory, 0o755)
        for path in (os.path.join(directory, name) for name in files):
            if not os.path.islink(path):
                os.chmod(path, 0o755 if os.stat(path).st_mode & 0o100 else 0o644)
    return COPY


def _is_open(checkout: Path) -> bool:
    """May others read everything that is there?"""
    if any(parent.stat().st_mode & 0o001 == 0 for parent in checkout.parents):
        return False
    for place in ("", "bin", "src", "tests", "tools", ".venv"):
        for directory, names, files in os.walk(checkout / place):
            if os.stat(directory).st_mode & 0o005 != 0o005:
                return False
            if any(not os.lstat(os.path.join(directory, name)).st_mode & 0o004 for name in files):
                return False
            if not place:
                names.clear()
    return True


def hide(programs: Sequence[str]) -> None:
    """Have a machine without some programs: who uses one of them without saying so fails."""
    found = {os.path.realpath(f"{place}/{name}") for place in needs.SYSTEM_PATH.split(":") for name in programs}
    for path in filter(os.path.exists, found):
        mount("/dev/null", path, flags=MS_BIND)


def raise_loopback() -> None:
    """Also with IPv6, if the kernel has it, whatever this machine's settings are."""
    for place in ("all", "default", "lo"):
        try:
            Path(f"/proc/sys/net/ipv6/conf/{place}/disable_ipv6").write_text("0")
        except OSError:
            pass  # none, or not to be changed
    get_flags, set_flags, up = 0x8913, 0x8914, 0x1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack("16xh14x", fcntl.ioctl(control, get_flags, request))
        fcntl.ioctl(control, set_flags, struct.pack("16sh14x", b"lo", flags | up))


def lay_cable() -> None:
    """A way out that leads nowhere: pasta has nothing to go by without one."""
    if ip := needs.find_program("ip"):
        subprocess.run([ip, "-batch", "-"], input=CABLE, text=True, check=True)
