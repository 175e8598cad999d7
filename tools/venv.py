"""Make `.venv` in a checkout: usage `venv.py CHECKOUT INTERPRETER`.

It serves developers (`.venv/bin/claudebox`, a place for the test tools) and remembers, in `claudebox-python`, which
interpreter `claudebox` starts with. Nothing is downloaded.
"""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import venv
from pathlib import Path

COMMAND = """\
#!/bin/sh
# The checkout's command, wherever the checkout is moved.
self=$(readlink -f -- "$0") || exit 125
exec "${self%/*}/../../claudebox" "$@"
"""


def make(root: Path, python: str) -> None:
    directory = root / ".venv"
    if not works(directory / "bin" / "python"):
        # A virtual environment for another version is of no use; one without pip needs no more than the interpreter.
        venv.EnvBuilder(clear=True, symlinks=True, with_pip=False).create(directory)
    if not (directory / "bin" / "claudebox").exists():
        write(directory / "bin" / "claudebox", COMMAND, 0o755)
        for packages in directory.glob("lib/python3*/site-packages"):
            write(packages / "claudebox.pth", os.path.relpath(root / "src", packages) + "\n", 0o644)
    # Who cannot write here would compile at every start.
    subprocess.run([python, "-I", "-m", "compileall", "-q", root / "src"], check=False)
    # Last, because its presence says that the rest is done.
    write(directory / "claudebox-python", python + "\n", 0o644)


def works(python: Path) -> bool:
    if not python.exists():
        return False
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    return subprocess.run([python, "-I", "-c", check], check=False, stderr=subprocess.DEVNULL).returncode == 0


def write(path: Path, text: str, mode: int) -> None:
    """Put a whole file in place at once: somebody may be starting claudebox now."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.chmod(mode)
    new.replace(path)


def become_owner(root: Path) -> None:
    """As root in somebody's checkout: act as them, so that they can change it later and their links lead us nowhere."""
    owner = root.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.setgroups([])
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)


def main() -> None:
    root, python = Path(sys.argv[1]).resolve(), sys.argv[2]
    become_owner(root)
    os.umask(0o022)
    try:
        # A lock on the checkout itself leaves no file behind and ends with us, however we end.
        lock = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        make(root, python)
    except OSError as error:
        # A checkout that somebody else keeps works without: nothing to complain about at every start.
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            sys.exit(f"claudebox: no .venv: {error}")


if __name__ == "__main__":
    main()
