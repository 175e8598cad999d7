#!/usr/bin/env python3
"""Build packages of claudebox: a wheel, an sdist, a single file, a package for Debian, and the shared files.

Built twice they are equal, whatever the time, the umask and the place of the checkout. Times in them are that of
SOURCE_DATE_EPOCH, or of the last commit. All but wheel and sdist need nothing but Python.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import re
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from shared_files import COMPLETIONS, MANUAL, shared_files

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(__file__).resolve().parent
EARLIEST = 315532800  # 1980, before which an archive has no time
PYTHON = "3.11"

# Debian's zsh has a directory of its own for packages.
DEBIAN_PLACES = {COMPLETIONS["zsh"]: "share/zsh/vendor-completions/_claudebox"}
DEBIAN_MODULES = "usr/share/claudebox"
DEBIAN_COMMAND = f"""\
#!/usr/bin/python3 -IS
import gc
import sys

gc.disable()
sys.path.insert(0, "/{DEBIAN_MODULES}")

from claudebox.cli import main

main()
"""
DEBIAN_CONTROL = """\
Package: claudebox
Version: {version}
Architecture: all
Maintainer: claudebox contributors <claudebox@localhost>
Installed-Size: {size}
Depends: python3 (>= {python}), bubblewrap (>= 0.8.0)
Recommends: git, nftables, passt
Section: devel
Priority: optional
Description: Claude Code in a bubblewrap box
 Starts Claude Code in a box around one project, so that the agent can work
 freely, with your keys, tokens and other projects out of reach.
"""
# Ordinary users could not keep what Python compiles.
DEBIAN_SCRIPTS = {
    "postinst": f"""\
#!/bin/sh
set -e
if [ "$1" = configure ] && command -v py3compile >/dev/null; then
    py3compile -p claudebox /{DEBIAN_MODULES}
fi
""",
    "prerm": f"""\
#!/bin/sh
set -e
if command -v py3clean >/dev/null; then
    py3clean -p claudebox
else
    find /{DEBIAN_MODULES} -name __pycache__ -prune -exec rm -r {{}} +
fi
""",
}
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: claudebox

Files: *
Copyright: {holder}
License: Expat
{licence}
"""


def version() -> str:
    text = (ROOT / "src/claudebox/__init__.py").read_text()
    found = re.search(r'^__version__ = "(.*)"$', text, re.MULTILINE)
    assert found, "no __version__"
    return found[1]


def moment() -> int:
    """The time of everything in a package, in seconds."""
    if told := os.environ.get("SOURCE_DATE_EPOCH"):
        return max(EARLIEST, int(told))
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    return max(EARLIEST, int(done.stdout)) if done.returncode == 0 else EARLIEST


def modules() -> dict[str, bytes]:
    """The files of the package, by their names below `src`."""
    source = ROOT / "src"
    files = [path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(source).as_posix(): path.read_bytes() for path in sorted(files)}


def build_wheel(directory: Path) -> Path:
    return _hatch("wheel", directory / f"claudebox_cli-{version()}-py3-none-any.whl")


def build_sdist(directory: Path) -> Path:
    return _hatch("sdist", directory / f"claudebox_cli-{version()}.tar.gz")


def _hatch(target: str, file: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(file.parent)]
    environ = {**os.environ, "SOURCE_DATE_EPOCH": str(moment())}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: {done.stderr.strip()}\n\nhint: .venv/bin/python tools/build.py, which ./run-tests makes")
    return file


def build_single_file(directory: Path) -> Path:
    files = modules()
    listing = "\n".join(files).encode()
    files |= {"claudebox/files": listing, "__main__.py": (TOOLS / "single_file.py").read_bytes()}
    date = time.gmtime(moment())[:6]
    archive = io.BytesIO()
    archive.write((TOOLS / "single_file.sh").read_bytes())
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr, entry.create_system = 0o100644 << 16, 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(entry, content)
    return _written(directory / f"claudebox-{version()}.pyz", archive.getvalue(), 0o755)


def build_deb(directory: Path) -> Path:
    files = {f"{DEBIAN_MODULES}/{name}": (content, 0o644) for name, content in modules().items()}
    files["usr/bin/claudebox"] = (DEBIAN_COMMAND.encode(), 0o755)
    for place, text in shared_files().items():
        files[f"usr/{DEBIAN_PLACES.get(place, place)}"] = (text.encode(), 0o644)
    files[f"usr/{MANUAL}.gz"] = (_zipped(files.pop(f"usr/{MANUAL}")[0]), 0o644)
    files["usr/share/doc/claudebox/copyright"] = (_copyright().encode(), 0o644)
    files["usr/share/doc/claudebox/changelog.gz"] = (_zipped((ROOT / "CHANGELOG.md").read_bytes()), 0o644)
    size = sum(len(content) for content, _ in files.values()) // 1024 + 1
    control = DEBIAN_CONTROL.format(version=version().replace(".dev", "~dev"), size=size, python=PYTHON)
    about = {name: (text.encode(), 0o755) for name, text in DEBIAN_SCRIPTS.items()}
    about["control"] = (control.encode(), 0o644)
    members = {"debian-binary": b"2.0\n", "control.tar.gz": _tar(about), "data.tar.gz": _tar(files)}
    return _written(directory / f"claudebox_{version()}_all.deb", _ar(members), 0o644)


def build_shared(directory: Path) -> Path:
    """What a single file cannot install: to be unpacked below a prefix such as ~/.local."""
    files = {place: (text.encode(), 0o644) for place, text in shared_files().items()}
    return _written(directory / f"claudebox-{version()}-shared.tar.gz", _tar(files, has_directories=False), 0o644)


def _copyright() -> str:
    licence = (ROOT / "LICENSE").read_text()
    holder = re.search(r"Copyright (?:\(c\) )?(.*)", licence)
    lines = "".join(f" {line or '.'}\n" for line in licence.splitlines())
    return COPYRIGHT.format(holder=holder[1] if holder else "claudebox contributors", licence=lines.rstrip())


def _zipped(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=9, mtime=0)


def _tar(files: dict[str, tuple[bytes, int]], *, has_directories: bool = True) -> bytes:
    """A tar archive of root's. Debian wants every directory; unpacked in a prefix, they would change the user's own."""
    made = io.BytesIO()
    directories = {str(parent) for name in files for parent in Path(name).parents} if has_directories else set()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in sorted({*directories, *files}):
            content, mode = files.get(name, (b"", 0o755))
            entry = tarfile.TarInfo("./" if name == "." else f"./{name}")
            entry.type = tarfile.REGTYPE if name in files else tarfile.DIRTYPE
            entry.size, entry.mode, entry.mtime = len(content), mode, moment()
            entry.uname = entry.gname = "root"
            archive.addfile(entry, io.BytesIO(content))
    return _zipped(made.getvalue())


def _ar(members: dict[str, bytes]) -> bytes:
    made = b"!<arch>\n"
    for name, content in members.items():
        made += f"{name:<16}{moment():<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        made += content + b"\n" * (len(content) % 2)
    return made


def _written(path: Path, content: bytes, mode: int) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


PACKAGES: dict[str, Callable[[Path], Path]] = {
    "wheel": build_wheel,
    "sdist": build_sdist,
    "single-file": build_single_file,
    "deb": build_deb,
    "shared": build_shared,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"{', '.join(PACKAGES)}; all if none is named")
    parser.add_argument("--directory", type=Path, default=ROOT / "dist", help="where they are put (dist)")
    given = parser.parse_args()
    for unknown in set(given.packages) - PACKAGES.keys():
        parser.error(f"there is no package `{unknown}`")
    directory = given.directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    for name in given.packages or PACKAGES:
        print(PACKAGES[name](directory))


if __name__ == "__main__":
    main()
