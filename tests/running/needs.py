"""What a test can need of the machine beyond Python and the test tools: one row for each need.

A test says it by a marker of that name, or asks for a fixture that says it (`@needed("claude")`). `./run-tests` gets
what the chosen tests need. Where that is not possible such a test is skipped and counted, with the command that would
help; in CI it fails.
"""

import ctypes
import functools
import os
import platform
import shlex
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from running import pins

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
KERNEL_HEADERS = "/usr/include/asm-generic/unistd.h"
TUN = "/dev/net/tun"

ROOT, PACKAGES, CLAUDE, AGENT, DEBIAN, NOBODY = "root", "packages", "npm", "agent", "debian", "nobody"

Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True)
class Need:
    """`provider` says who can bring it: the package manager, npm, Debian's archive, or nobody but the user."""

    name: str
    meaning: str
    programs: tuple[str, ...] = ()
    provider: str = PACKAGES
    argument: str = ""  # for the provider: a version, or a suite
    lacks: Callable[[], str] = lambda: ""  # what is missing besides the programs, as it is measured
    command: str | Callable[[], str] = ""  # what a person can do, where the package manager is not the answer
    only_in_all: bool = False

    def missing(self) -> str:
        """What is missing, or nothing."""
        absent = [program for program in self.programs if not find_program(program)]
        if absent:
            return f"{' and '.join(absent)} not installed"
        return self.lacks()

    def remedy(self) -> str:
        command = self.command() if callable(self.command) else self.command
        return command or "./run-tests installs it, as root or with sudo"


def find_program(name: str) -> str | None:
    return shutil.which(name, path=SYSTEM_PATH)


def lacks_root() -> str:
    if os.geteuid() != 0:
        return "not root"
    return "" if _can_mount() else "root without the right to mount"


@functools.cache
def _can_mount() -> bool:
    done = subprocess.run(
        ["unshare", "--mount", "true"],
        env={"PATH": SYSTEM_PATH},
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode == 0


@functools.cache
def lacks_boxes() -> str:
    """Where the kernel or a security module refuses namespaces, bwrap is there and of no use."""
    bwrap = find_program("bwrap") or "bwrap"
    trial = [bwrap, "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "--", "/bin/true"]
    done = subprocess.run(trial, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return "" if done.returncode == 0 else done.stderr.strip()


def lacks_tun() -> str:
    try:
        found = os.stat(TUN)
    except OSError:
        return f"there is no {TUN}"
    mode = stat.S_IMODE(found.st_mode)
    return "" if mode & 0o006 == 0o006 else f"{TUN} has mode {mode:04o}"


def open_tun() -> str:
    """The command for it. In a container without the device, modprobe would not make it appear."""
    if os.path.exists(TUN):
        return f"sudo chmod 0666 {TUN}"
    return f"sudo mkdir -p {os.path.dirname(TUN)} && sudo mknod --mode=0666 {TUN} c 10 200"


@functools.cache
def lacks_attributes() -> str:
    """Files in memory have them since Linux 6.6."""
    for place in (tempfile.gettempdir(), "/var/tmp"):
        with tempfile.NamedTemporaryFile(dir=place) as file:
            try:
                os.setxattr(file.name, "user.claudebox", b"y")
            except OSError as error:
                return f"{place}: {error.strerror}"
    return ""


def lacks_localhost() -> str:
    try:
        socket.getaddrinfo("localhost", 80)
    except OSError as error:
        return f"localhost: {error.strerror}"
    return ""


def lacks_debian() -> str:
    """A package that needs another one looks for it among those that dpkg installed."""
    if find_program("dpkg") is None:
        return "dpkg not installed"
    for package in ("bubblewrap", "python3"):
        done = subprocess.run(["dpkg", "-s", package], capture_output=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            return f"dpkg has not installed {package}"
    return ""


def lacks_headers() -> str:
    return "" if os.path.exists(KERNEL_HEADERS) else f"there is no {KERNEL_HEADERS}"


def lacks_claude(version: str) -> str:
    return "" if os.access(pins.claude(version), os.X_OK) else f"there is no Claude Code {version}"


def lacks_suite(suite: str, program: str) -> str:
    return "" if os.access(pins.newer(program, suite), os.X_OK) else f"there is no {program} of {suite}"


@functools.cache
def lacks_landlock() -> str:
    """Scopes came with the sixth version of Landlock."""
    create_ruleset, ask_for_version = 444, 1
    version = ctypes.CDLL(None, use_errno=True).syscall(create_ruleset, None, ctypes.c_size_t(0), ask_for_version)
    return "" if version >= 6 else f"Landlock has version {max(version, 0)}, and scopes came with 6"


def lacks_x86() -> str:
    return "" if platform.machine() == "x86_64" else f"this is {platform.machine()}"


def claude_need(name: str, meaning: str, version: str, only_in_all: bool = False) -> Need:
    return Need(
        name,
        meaning,
        ("node",),
        CLAUDE,
        version,
        functools.partial(lacks_claude, version),
        "./run-tests installs it, where npm is installed and reaches its registry",
        only_in_all,
    )


def lacks_agent(name: str) -> str:
    return "" if os.access(pins.agent(name), os.X_OK) else f"there is no {name}"


def agent_need(name: str) -> Need:
    return Need(
        name,
        f"another agent, {name}",
        ("node",),
        AGENT,
        name,
        functools.partial(lacks_agent, name),
        "./run-tests --all installs it, where npm is installed and reaches its registry",
        only_in_all=True,
    )


def newer_command(program: str, suite: str) -> list[str]:
    return ["tools/newer-programs", program, suite, *pins.packages(program, suite)]


def suite_need(name: str, meaning: str, suite: str, program: str) -> Need:
    return Need(
        name,
        meaning,
        (),
        DEBIAN,
        suite,
        functools.partial(lacks_suite, suite, program),
        f"on a Debian whose mirror has these versions: {shlex.join(newer_command(program, suite))}",
        only_in_all=True,
    )


TABLE = (
    Need("root", "the right to do everything", (), NOBODY, lacks=lacks_root, command="sudo ./run-tests"),
    Need(
        "box",
        "a bwrap that can make a box, and git",
        ("bwrap", "git"),
        lacks=lacks_boxes,
        command="./claudebox --check",
    ),
    Need(
        "network",
        "networks of the tests' own, and pasta",
        ("pasta", "nft", "ip"),
        lacks=lacks_tun,
        command=open_tun,
    ),
    Need("nft", "the firewall's own reader of rules", ("nft",)),
    Need("ip", "a way to make networks", ("ip",)),
    Need("nix", "Nix", ("nix", "patchelf"), command="install Nix, or run on a distribution that has it"),
    claude_need("claude", "the pinned Claude Code", pins.CLAUDE),
    claude_need("old_claude", "a Claude Code that knows less", pins.OLD_CLAUDE),
    Need(
        *("dpkg", "a Debian, or what is made of it", (), NOBODY),
        lacks=lacks_debian,
        command="on a Debian: apt-get install bubblewrap",
    ),
    *map(agent_need, ("codex", "gemini")),
    Need("gcc", "a C compiler with the kernel's headers", ("gcc", "make"), lacks=lacks_headers),
    Need("gdb", "a debugger", ("gdb",)),
    Need("git", "git", ("git",)),
    Need("mandoc", "readers of manual pages", ("mandoc", "man")),
    Need("less", "a pager", ("less",)),
    Need("npm", "Node's package manager", ("npm", "node")),
    Need("openssl", "a maker of certificates", ("openssl",)),
    Need("clients", "programs that fetch", ("curl", "wget", "ssh", "git", "pip3", "node", "npm", "openssl")),
    Need("ps", "a list of processes", ("ps",)),
    Need("shellcheck", "the shell's linter", ("shellcheck",)),
    Need("shells", "the shells that complete", ("zsh", "fish")),
    Need("sqlite3", "SQLite's shell", ("sqlite3",)),
    Need("disks", "makers of file systems", ("mkfs.ext4", "mkfs.btrfs", "mkfs.xfs"), only_in_all=True),
    Need("strace", "a tracer of system calls", ("strace",)),
    Need("tmux", "a terminal in a terminal", ("tmux",)),
    Need(
        "localhost",
        "that everybody knows who localhost is",
        (),
        NOBODY,
        lacks=lacks_localhost,
        command="echo 127.0.0.1 localhost | sudo tee -a /etc/hosts",
    ),
    Need(
        "attributes",
        "files that can have attributes, as layers need them",
        (),
        NOBODY,
        lacks=lacks_attributes,
        command="Linux 6.6 or later",
    ),
    Need(
        "landlock", "a kernel with Landlock's scopes", (), NOBODY, lacks=lacks_landlock, command="Linux 6.12 or later"
    ),
    Need(
        "x86", "a processor that the attack was written for", (), NOBODY, lacks=lacks_x86, command="an x86-64 machine"
    ),
    *(
        need
        for suite in pins.SUITES
        for need in (
            suite_need(suite, f"bwrap, pasta and nft of Debian's {suite}", suite, "bwrap"),
            suite_need(f"{suite}_nix", f"Nix of Debian's {suite}", suite, "nix"),
        )
    ),
)
NEEDS = {need.name: need for need in TABLE}


def needed(*names: str) -> Callable[[Function], Function]:
    """Say what a fixture needs, below `@pytest.fixture`; every test that asks for the fixture then has the markers."""
    unknown = [name for name in names if name not in NEEDS]
    assert not unknown, f"running/needs.py has no {unknown}"

    def remember(function: Function) -> Function:
        function.needs = names  # type: ignore[attr-defined]
        return function

    return remember


def in_order(names: Iterable[str]) -> list[Need]:
    wanted = set(names)
    return [need for need in TABLE if need.name in wanted]


def programs_of(names: Iterable[str]) -> list[str]:
    """All that the package manager has to bring, each once."""
    found = [program for need in in_order(names) for program in need.programs]
    if any(need.provider in (CLAUDE, AGENT) for need in in_order(names)):
        found.append("npm")
    if any(need.provider == DEBIAN for need in in_order(names)):
        found.append("patchelf")
    return list(dict.fromkeys(found))
