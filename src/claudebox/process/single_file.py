"""Runs claudebox from a single file, a zip archive that is also a program (tools/build makes it).

All of it is read into memory at once. Python's own import from an archive opens the file again for each module: an
update while a box runs would then break what happens at the box's end. Nothing is unpacked, so there is no directory
whose owner, mode and content would have to be trusted.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib import ModuleSpec, spec_from_loader
from _frozen_importlib_external import SourceLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from zipimport import zipimporter

PACKAGE = "claudebox"
LISTING = f"{PACKAGE}/files"  # the names of all files, which an importer of archives does not tell
FILES: dict[str, bytes] = {}  # by their names in the archive; empty if claudebox is a directory


class Archive(SourceLoader):
    """Finds and loads the modules of claudebox in memory, and no others."""

    files = FILES

    def __init__(self, path: str) -> None:
        self.path = path

    def find_spec(self, fullname: str, _: Sequence[str] | None, __: ModuleType | None = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if _file_of(fullname) else None

    def get_filename(self, fullname: str) -> str:
        return f"{self.path}/{_file_of(fullname)}"

    def get_data(self, path: str) -> bytes:
        try:
            return FILES[path.removeprefix(f"{self.path}/")]
        except KeyError:
            raise OSError(f"not in the archive: {path}") from None


def _file_of(module: str) -> str:
    place = module.replace(".", "/")
    return next((name for name in (f"{place}.py", f"{place}/__init__.py") if name in FILES), "")


def serve_from_memory() -> None:
    """Read the archive that this module comes from, and import everything else from there."""
    importer: zipimporter = __spec__.loader  # type: ignore[assignment]
    archive = importer.archive
    for name in importer.get_data(f"{archive}/{LISTING}").decode().split("\n"):
        FILES[name] = importer.get_data(f"{archive}/{name}")
    sys.meta_path.insert(0, Archive(archive))


START = "import sys; sys.path.insert(0, sys.argv.pop(1)); {}from claudebox.cli import main; main()"
FROM_ARCHIVE = "from claudebox.process.single_file import serve_from_memory; serve_from_memory(); "


def own_command() -> list[str]:
    """The command uses the same interpreter, isolated: the current directory does not get on the module path."""
    source = os.path.abspath(__file__).removesuffix("/claudebox/process/single_file.py")
    start = START.format(FROM_ARCHIVE if os.path.isfile(source) else "")
    return [sys.executable, "-I", "-S", "-c", start, source]
