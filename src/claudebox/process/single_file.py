"""Runs claudebox from a single file, a zip archive that is also a program (tools/build makes it).

All of it is read into memory at once. Python's own import from an archive opens the file again for each module: an
update while a box runs would then break what happens at the box's end. Nothing is unpacked, so there is no directory
whose owner, mode and content would have to be trusted.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import SourceLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any
    from zipimport import zipimporter

PACKAGE = "claudebox"
LISTING = f"{PACKAGE}/files"  # the names of all files, which an importer of archives does not tell
FILES: dict[str, bytes] = {}  # by their names in the archive; empty if claudebox is a directory


class Loader(SourceLoader):
    """Loads one module from memory."""

    files = FILES

    def __init__(self, archive: str, name: str) -> None:
        self.archive = archive
        self.name = name

    def get_filename(self, _: str) -> str:
        return f"{self.archive}/{self.name}"

    def get_data(self, path: str) -> bytes:
        try:
            return FILES[path.removeprefix(f"{self.archive}/")]
        except KeyError:
            raise OSError(f"not in the archive: {path}") from None


class Finder:
    """Finds the modules of claudebox in memory, and no others."""

    def __init__(self, archive: str) -> None:
        self.archive = archive

    def find_spec(self, fullname: str, _: Sequence[str] | None, __: ModuleType | None = None) -> ModuleSpec | None:
        place = fullname.replace(".", "/")
        for name in (f"{place}.py", f"{place}/__init__.py"):
            if name in FILES:
                loader: Any = Loader(self.archive, name)  # it has what Python asks for
                spec = ModuleSpec(fullname, loader, origin=f"{self.archive}/{name}")
                spec.has_location = True
                if name.endswith("/__init__.py"):
                    spec.submodule_search_locations = [f"{self.archive}/{place}"]
                return spec
        return None


def serve_from_memory() -> None:
    """Read the archive that this module comes from, and import everything else from there."""
    importer: zipimporter = __spec__.loader  # type: ignore[assignment]
    archive = importer.archive
    for name in importer.get_data(f"{archive}/{LISTING}").decode().split("\n"):
        FILES[name] = importer.get_data(f"{archive}/{name}")
    sys.meta_path.insert(0, Finder(archive))


START = "import sys; sys.path.insert(0, sys.argv.pop(1)); {}from claudebox.cli import main; main()"
FROM_ARCHIVE = "from claudebox.process.single_file import serve_from_memory; serve_from_memory(); "


def own_command() -> list[str]:
    """The command uses the same interpreter, isolated: the current directory does not get on the module path."""
    source = os.path.abspath(__file__).removesuffix("/claudebox/process/single_file.py")
    start = START.format(FROM_ARCHIVE if os.path.isfile(source) else "")
    return [sys.executable, "-I", "-S", "-c", start, source]
