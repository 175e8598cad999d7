"""A Nix of another release of Debian, made into a path of a store: how it is on most machines that have it."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

DIGITS = "0123456789abcdfghijklmnpqrsvwxyz"  # as Nix writes hashes
# Programs that are the same file under another name.
NAMES = "nix-build nix-collect-garbage nix-daemon nix-env nix-hash nix-instantiate nix-shell nix-store".split()


def store_path(program: str) -> str:
    """Where a Nix goes. Real ones have the hash of how they were built there."""
    digest = hashlib.sha256(Path(program).read_bytes()).digest()
    return f"/nix/store/{''.join(DIGITS[byte % 32] for byte in digest)}-nix"


def install(program: str, root: Path) -> str:
    """Put a Nix into the store of a machine; what `nix-store --load-db` has to be told about it."""
    path = store_path(program)
    tree = root / path.removeprefix("/")
    (tree / "bin").mkdir(parents=True)
    (tree / "lib").mkdir()
    executable = shutil.copy(program, tree / "bin" / "nix")
    for name in NAMES:
        (tree / "bin" / name).symlink_to("nix")
    interpreter = Path(_output("patchelf", "--print-interpreter", program).decode().strip())
    for library in (*_libraries(program), interpreter):
        shutil.copy(library, tree / "lib")
    pointing = ("--set-interpreter", f"{path}/lib/{interpreter.name}", "--force-rpath", "--set-rpath", f"{path}/lib")
    _output("patchelf", *pointing, str(executable))
    archive = _output("nix-store", "--dump", str(tree), executable=program)
    nobody_built_it, references = "", "0"
    facts = (path, hashlib.sha256(archive).hexdigest(), str(len(archive)), nobody_built_it, references)
    return "".join(f"{fact}\n" for fact in facts)


def _libraries(program: str) -> list[str]:
    """What a program is linked to."""
    return re.findall(r" => (/\S+)", _output("ldd", program).decode())


def _output(*command: str, executable: str | None = None) -> bytes:
    return subprocess.run(command, executable=executable, capture_output=True, check=True).stdout
