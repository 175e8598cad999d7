"""A Nix of another release of Debian, made into a path of a store: how it is on most machines that have it."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

DIGITS = "0123456789abcdfghijklmnpqrsvwxyz"  # as Nix writes hashes
# Programs that are the same file under another name.
NAMES = "nix-build nix-collect-garbage nix-daemon nix-env nix-hash nix-instantiate nix-shell nix-store".split()


class Package:
    """Made once, in a directory that goes away with this process."""

    @staticmethod
    @functools.cache
    def of(program: str) -> Package:
        return Package(program)

    def __init__(self, program: str) -> None:
        self.program = program
        self.path = f"/nix/store/{_hash(Path(program).read_bytes())}-nix"
        # Beside the stores of the machines, which get links to the files.
        self.directory = tempfile.TemporaryDirectory(prefix="claudebox-nix-package-", dir="/var/tmp")
        self.tree = Path(self.directory.name) / "tree"
        self._fill()

    def _fill(self) -> None:
        for name in ("bin", "lib"):
            (self.tree / name).mkdir(parents=True)
        executable = str(shutil.copy(self.program, self.tree / "bin" / "nix"))
        for name in NAMES:
            (self.tree / "bin" / name).symlink_to("nix")
        interpreter = _output("patchelf", "--print-interpreter", self.program).decode().strip()
        for library in (*re.findall(r" => (/\S+)", _output("ldd", self.program).decode()), interpreter):
            shutil.copy(library, self.tree / "lib")
        libraries = f"{self.path}/lib"
        _output("patchelf", "--set-interpreter", f"{libraries}/{Path(interpreter).name}", executable)
        _output("patchelf", "--force-rpath", "--set-rpath", libraries, executable)
        _output("chmod", "-R", "a-w", str(self.tree))

    def put_into(self, root: Path) -> None:
        """Have it in the store of a machine, which does not know yet."""
        shutil.copytree(self.tree, root / self.path.removeprefix("/"), symlinks=True, copy_function=os.link)

    @functools.cached_property
    def registration(self) -> str:
        """What `nix-store --load-db` has to be told."""
        archive = _output("nix-store", "--dump", str(self.tree), executable=self.program)
        nobody_built_it, references = "", "0"
        facts = (self.path, hashlib.sha256(archive).hexdigest(), str(len(archive)), nobody_built_it, references)
        return "".join(f"{fact}\n" for fact in facts)


def _hash(content: bytes) -> str:
    """In place of what real ones have there, which says how they were built."""
    return "".join(DIGITS[byte % 32] for byte in hashlib.sha256(content).digest())


def _output(*command: str, executable: str | None = None) -> bytes:
    return subprocess.run(command, executable=executable, capture_output=True, check=True).stdout
