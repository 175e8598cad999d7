"""Machines with a real Nix daemon, whose configuration the test chooses.

    with NixHost(Configuration(sandbox="false")) as host:      # in tests: the fixture `host`
        host.settle(account).run("nix", "build", …)

A local flake plays nixpkgs. It is in the store, as NixOS has it, and the registry of the machine says so: the
global registry would be downloaded.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest
from _pytest.mark import ParameterSet

from conftest import ORDINARY_USER, Account, Box
from nix.machine import Machine, Resident
from nix.package import Package
from patience import PATIENCE
from running.needs import SYSTEM_PATH
from running.versions import SUITES, SYSTEM, each, path

SYSTEM_NIX = path("nix")
# Names of versions: the system's own, and those of later releases.
NIXES = [SYSTEM, *SUITES]
OLD_AND_NEW = [SYSTEM, SUITES[-1]]
NEWER = list(SUITES)
NIXPKGS = Path(__file__).with_name("nixpkgs")
LOOPBACK = Path(__file__).with_name("loopback.py")
SOCKET = "/nix/var/nix/daemon-socket/socket"
SILENCE = f"""
import os, pathlib, socket, time
os.umask(0)
pathlib.Path("{SOCKET}").parent.mkdir(parents=True)
listener = socket.socket(socket.AF_UNIX)
listener.bind("{SOCKET}")
listener.listen()
time.sleep(3600)
"""
PROFILE = "/nix/var/nix/profiles/default"
OTHER_GROUP = "claudebox-others"  # the ordinary user is one of them
BUILD_USERS = 4
FIRST_BUILD_USER = 30001
LANDLOCKED = (2, 34)  # builds with a network reach no socket without a file; 2.26 let them


@dataclass(frozen=True)
class Configuration:
    """What distinguishes one machine with Nix from another.

    `arguments` and `environ` are the daemon's, and say what no file does. Instead of a daemon there may be a socket
    where somebody listens and says nothing.
    """

    nix: str = SYSTEM_NIX
    sandbox: str = "true"
    trusted_users: str = "root"
    allowed_users: str = "*"
    included: str = ""  # more.conf, for nix.conf to include
    arguments: tuple[str, ...] = ()
    wrapper: tuple[str, ...] = ()  # a command that starts the daemon
    environ: tuple[tuple[str, str], ...] = ()
    is_silent: bool = False

    def text(self) -> str:
        lines = (
            "experimental-features = nix-command flakes",
            "build-users-group = nixbld",
            "substituters =",
            "flake-registry = /etc/nix/no-registry.json",
            # For derivations whose builder is a shell; they find nothing else of the host.
            "sandbox-paths = /bin=/usr/bin /lib=/usr/lib /lib64=/usr/lib64 /usr/bin /usr/lib",
            f"sandbox = {self.sandbox}",
            f"trusted-users = {self.trusted_users}",
            f"allowed-users = {self.allowed_users}",
        )
        return "".join(f"{line}\n" for line in lines)


class NixHost(Machine):
    """A machine with a daemon that answers."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        self.configuration = configuration
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.is_of_the_system = configuration.nix == SYSTEM_NIX
        self.path = SYSTEM_PATH if self.is_of_the_system else f"{PROFILE}/bin:{SYSTEM_PATH}"
        # Root's own configuration and caches are no part of this.
        self.environ = {"PATH": self.path, "HOME": str(self.directory / "home"), "LANG": "C.UTF-8"}

    def __enter__(self) -> Self:
        try:
            self._configure()
            self.start(without=() if self.is_of_the_system else (SYSTEM_NIX,))
            if not self.is_of_the_system:
                self._install()
            self._publish_nixpkgs()
            self.start_daemon()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        super().close()
        for process in self.processes.values():
            process.wait()

    def run_nix(self, program: str, *arguments: str, input: str = "") -> str:
        """As root, past the daemon."""
        return self.run(program, *arguments, input=input, env=self.environ)

    @property
    def version(self) -> tuple[int, ...]:
        told = self.run_nix("nix", "--version").split()[-1]
        return tuple(map(int, told.split(".")))

    def settle(self, account: Account) -> Resident:
        """This account, as one that lives here."""
        resident = Resident.moving(account, self)
        resident.environ = {**account.environ, "PATH": self.path}
        return resident

    def serve_loopback(self) -> None:
        """Have a server there, on a port of 127.0.0.1 (see loopback.py)."""
        if "loopback" not in self.processes:
            self._start("loopback", sys.executable, str(LOOPBACK))
            self._wait_for(lambda: "ready" in self.heard())

    def heard(self) -> list[str]:
        """What was asked for there."""
        return self.log("loopback").splitlines()

    def _configure(self) -> None:
        (self.directory / "home").mkdir()
        numbers = range(BUILD_USERS)
        users = [
            f"nixbld{number}:x:{FIRST_BUILD_USER + number}:30000::/var/empty:/usr/sbin/nologin\n" for number in numbers
        ]
        members = ",".join(f"nixbld{number}" for number in numbers)
        groups = f"nixbld:x:30000:{members}\n{OTHER_GROUP}:x:30100:{ORDINARY_USER}\n"
        (self.etc / "passwd").write_text(Path("/etc/passwd").read_text() + "".join(users))
        (self.etc / "group").write_text(Path("/etc/group").read_text() + groups)
        (self.etc / "nix").mkdir()
        os.setxattr(self.etc / "nix", "trusted.overlay.opaque", b"y")  # instead of the real one, not over it
        (self.etc / "nix" / "nix.conf").write_text(self.configuration.text())
        (self.etc / "nix" / "more.conf").write_text(self.configuration.included)
        (self.etc / "resolv.conf").write_text("nameserver 127.0.0.1\n")  # where nobody answers, which is quick
        (self.etc / "nix" / "no-registry.json").write_text('{"flakes": [], "version": 2}')

    def _install(self) -> None:
        """As the installer of Nix does: in the store, with a profile that leads to it."""
        package = Package.of(self.configuration.nix)
        package.put_into(self.directory)
        profile = self.directory / PROFILE.removeprefix("/")
        profile.parent.mkdir(parents=True)
        profile.symlink_to(package.path)
        self.run_nix("nix-store", "--load-db", input=package.registration)

    def _publish_nixpkgs(self) -> None:
        path = self.run_nix("nix-store", "--add", str(NIXPKGS)).strip()
        (self.directory / "nix/var/nix/gcroots").mkdir(parents=True, exist_ok=True)
        (self.directory / "nix/var/nix/gcroots/nixpkgs").symlink_to(path)
        entry = {"from": {"type": "indirect", "id": "nixpkgs"}, "to": {"type": "path", "path": path}}
        (self.root / "etc/nix/registry.json").write_text(json.dumps({"flakes": [entry], "version": 2}))

    def start_daemon(self) -> None:
        if self.configuration.is_silent:
            self._start("daemon", sys.executable, "-c", SILENCE)
        else:
            command = (*self.configuration.wrapper, "nix-daemon", *self.configuration.arguments)
            self._start("daemon", *command, **dict(self.configuration.environ))
        self._wait_for((self.directory / SOCKET.removeprefix("/")).exists)

    def _start(self, name: str, *command: str, **variables: str) -> None:
        """A program that runs as long as the machine."""
        with (self.directory / name).open("wb") as log:
            argv = self.entered(*command, patience=3600)
            environ = {**self.environ, **variables}
            started = subprocess.Popen(argv, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.processes[name] = started

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, [self.log(name) for name in self.processes]
            time.sleep(0.01)

    def log(self, name: str) -> str:
        return (self.directory / name).read_text()


def on(nixes: list[str] = OLD_AND_NEW, **words: object) -> pytest.MarkDecorator:
    """Have a test run on machines that are configured like this, one for each of these versions of Nix."""
    return pytest.mark.parametrize("host", configurations(nixes, **words), indirect=True)


def configurations(nixes: list[str] = OLD_AND_NEW, **words: object) -> list[ParameterSet]:
    found = each(lambda version: Configuration(path("nix", version), **words), nix=True)  # type: ignore[arg-type]
    return [parameter for parameter in found if parameter.id in nixes]


# What a box has of Nix, and what claudebox says about that.


def findings(box: Box, *options: str) -> list[tuple[str, str]]:
    """Kind and text of what the audit says about Nix."""
    done = box.claudebox("--audit", "--json", *options, "--run", "true")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["findings"]
    about = [(each["kind"], f"{each['subject']}: {each['text']}") for each in found]
    return [(kind, text) for kind, text in about if "nix" in text.lower()]


def kinds(box: Box, *options: str) -> set[str]:
    return {kind for kind, _ in findings(box, *options)}


def has_daemon(box: Box, *options: str) -> bool:
    """Whether the socket is in the box; and then only what is said to be there works."""
    told = box.sh(f'[ ! -S {SOCKET} ] || printf socket; printf " %s" "$NIX_REMOTE"', options)
    assert told in ("socket daemon", " ", " local"), told
    return told == "socket daemon"
