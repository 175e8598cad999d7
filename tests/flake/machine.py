"""Machines with Nix, made of this one: /nix is a directory that a test made, and whoever runs the tests owns it.

Neither root nor a daemon nor a network is needed. A bwrap of our own makes the machine; the box is one inside of it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claudebox.host.system import CERTIFICATE_BUNDLES
from conftest import CHECKOUT, Account

SYSTEM = f"{platform.machine()}-linux"
STUBS = Path(__file__).parent
NIX_CONFIGURATION = """\
experimental-features = nix-command flakes
flake-registry =
substituters =
sandbox = false
build-users-group =
"""
NOT_SOURCE = shutil.ignore_patterns(".*", "__pycache__", "dist", "build", "*.egg-info")


@dataclass
class Machine:
    """A machine like this one, which has Nix besides. The store is empty at first."""

    account: Account
    nix_program: str

    @property
    def directory(self) -> Path:
        return self.account.home

    def run(
        self, *command: str, cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on this machine, which has no network."""
        environ = {**self.account.environ, **self._nix_variables(), **(env or {})}
        words = [f"{name}={value}" for name, value in environ.items()]
        place = str(cwd or self.directory)
        make = ["bwrap", "--unshare-net", "--tmpfs", "/", *self._files(), "--chdir", place]
        return self.account.run(*make, "--", self._env(), "-i", *words, *command, timeout=300)

    def seen_from_here(self, path: str | Path) -> Path:
        """Where a file of that machine's store is on this one."""
        return self.directory / str(path).removeprefix("/")

    def nix(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(self.nix_program, *words)

    def _nix_variables(self) -> dict[str, str]:
        """Nothing of the configuration of this machine or of the user counts."""
        nowhere = str(self.directory / "nowhere")
        return {
            "NIX_CONFIG": NIX_CONFIGURATION,
            "NIX_REMOTE": "local",  # as `auto`, a newer one would make a store in the home
            "NIX_CONF_DIR": nowhere,
            "NIX_USER_CONF_FILES": nowhere,
        }

    def _env(self) -> str:
        return "/usr/bin/env"

    def _files(self) -> list[str]:
        words = ["--bind", str(self.directory / "nix"), "/nix"]
        for entry in Path("/").iterdir():
            if entry.is_symlink():
                words += ["--symlink", os.readlink(entry), str(entry)]
            elif entry.name != "nix":
                words += ["--dev-bind", str(entry), str(entry)]
        return words


@dataclass
class NixOS(Machine):
    """A machine of which hardly anything but the store is left: no /usr, no libraries, two symlinks for `#!` lines."""

    tools: dict[str, str]  # name: path

    def _env(self) -> str:
        return self.tools["env"]

    def _files(self) -> list[str]:
        words = [*("--dev-bind", "/dev", "/dev"), *("--dev-bind", "/proc", "/proc"), *("--dev-bind", "/sys", "/sys")]
        words += [*("--tmpfs", "/tmp"), *("--tmpfs", "/run"), *("--perms", "0755", "--dir", "/etc")]
        for name in ("passwd", "group"):
            words += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
        for link, tool in {"/bin/sh": "sh", "/usr/bin/env": "env"}.items():
            words += ["--symlink", self.tools[tool], link]
        words += ["--bind", str(self.directory / "nix"), "/nix"]
        return [*words, "--bind", str(self.directory), str(self.directory)]


@dataclass
class Flake:
    """A copy of the checkout on a machine, whose inputs are stand-ins."""

    machine: Machine
    checkout: Path

    @property
    def url(self) -> str:
        return f"path:{self.checkout}"

    @property
    def stubs(self) -> Path:
        return self.machine.directory / "stubs"

    def nix(self, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Nix with the stand-ins for this flake's inputs."""
        inputs = [
            *("--override-input", "nixpkgs", f"path:{self.stubs}/stub-nixpkgs"),
            *("--override-input", "nix-index-database", f"path:{self.stubs}/stub-nix-index-database"),
        ]
        return self.machine.nix(*command.split(), "--offline", "--no-write-lock-file", *inputs, *words)

    def ask(self, command: str, *words: str) -> str:
        """The answer to a command that has to succeed."""
        done = self.nix(command, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def build(self, output: str) -> Path:
        link = self.machine.directory / "result"
        self.ask("build", f"{self.url}#{output}", "--out-link", str(link))
        return Path(os.readlink(link))

    def replace(self, file: str, old: str, new: str) -> None:
        path = self.checkout / file
        text = path.read_text()
        assert old in text, f"{file} has no {old!r}"
        path.write_text(text.replace(old, new))

    def copy(self, name: str) -> Flake:
        """What makes the package once more, to spoil it."""
        to = self.checkout.with_name(name)
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.checkout, to, ignore=shutil.ignore_patterns("bench", "docs", "tests"))
        return Flake(self.machine, to)


@dataclass
class Package:
    """claudebox as Nix built it: what its module `pinned` says."""

    machine: Machine
    path: Path
    programs: dict[str, str]
    search_path: tuple[str, ...]
    certificates: str

    @property
    def command(self) -> str:
        return str(self.path / "bin/claudebox")

    def tool(self, name: str) -> str:
        """Where PATH finds a program."""
        candidates = (f"{place}/{name}" for place in self.search_path)
        return next(path for path in candidates if self.machine.seen_from_here(path).exists())


def read_package(machine: Machine, path: Path) -> Package:
    (module,) = machine.seen_from_here(path).glob("lib/python3*/site-packages/claudebox/host/pinned.py")
    pinned: dict[str, Any] = {}
    exec(module.read_text(), pinned)
    return Package(machine, path, pinned["PROGRAMS"], pinned["PATH"], pinned["CERTIFICATES"])


def set_up(account: Account, nix_program: str) -> Flake:
    """A machine, the stand-ins and the checkout."""
    machine = Machine(account, nix_program)
    (machine.directory / "nix").mkdir()
    shutil.copytree(STUBS, machine.directory / "stubs", ignore=NOT_SOURCE)
    (machine.directory / "stubs/stub-nixpkgs/machine.json").write_text(json.dumps(facts()))
    checkout = machine.directory / "checkout"
    shutil.copytree(CHECKOUT, checkout, ignore=NOT_SOURCE)
    account.own(machine.directory)
    return Flake(machine, checkout)


def facts() -> dict[str, str]:
    """What stub-nixpkgs has to know of this machine."""
    python = Path(sys.executable).resolve()
    return {
        "certificates": next(path for path in CERTIFICATE_BUNDLES if os.path.isfile(path)),
        "python": str(python),
        "pythonName": f"python{sys.version_info.major}.{sys.version_info.minor}",
        "stdlib": sysconfig.get_path("stdlib"),
        "venv": sys.prefix,
    }
