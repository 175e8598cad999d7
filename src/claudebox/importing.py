"""Imports claudebox's own modules without the search that Python makes for each.

A launch imports some sixty. For each of them Python asks every finder, tries every suffix that a file may have and
makes eleven system calls; together that costs more than the code that is loaded. Here the file follows from the name.
As in Python, a compiled file counts if time and size say that it belongs to its source. What is unusual is left to
Python.
"""

from __future__ import annotations

import marshal
import posix
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

OURS = "claudebox."
COMPILED = f".{sys.implementation.cache_tag}.pyc"
HEADER = 16  # bytes of a compiled file that come before the code
BEGINNING = MAGIC_NUMBER + bytes(4)  # compiled by this Python, and valid if time and size are those of its source


class Loader(SourceFileLoader):
    """Loads a module from its compiled file, in the place where Python puts that."""

    def __init__(self, name: str, file: str, compiled: str, source: posix.stat_result) -> None:
        super().__init__(name, file)
        self.compiled = compiled
        self.source = source

    def get_code(self, fullname: str) -> CodeType | None:
        content = self._read()
        if content.startswith(BEGINNING + _word(int(self.source.st_mtime)) + _word(self.source.st_size)):
            code: CodeType = marshal.loads(memoryview(content)[HEADER:])  # noqa: S302  (Python would load the same file)
            return code
        return super().get_code(fullname)

    def _read(self) -> bytes:
        try:
            descriptor = posix.open(self.compiled, posix.O_RDONLY | posix.O_CLOEXEC)
        except OSError:
            return b""
        try:
            return posix.read(descriptor, posix.fstat(descriptor).st_size)
        finally:
            posix.close(descriptor)


def _word(number: int) -> bytes:
    return (number & 0xFFFFFFFF).to_bytes(4, "little")


class Finder:
    """Finds the modules of claudebox, and no others."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, _: ModuleType | None = None) -> ModuleSpec | None:
        if path is None or not fullname.startswith(OURS):
            return None
        directory, name = path[0], fullname.rpartition(".")[2]
        spec = _spec(fullname, directory, name)
        if spec is None:
            spec = _spec(fullname, f"{directory}/{name}", "__init__")
            if spec is not None:
                spec.submodule_search_locations = [f"{directory}/{name}"]
        return spec


def _spec(fullname: str, directory: str, name: str) -> ModuleSpec | None:
    file, compiled = f"{directory}/{name}.py", f"{directory}/__pycache__/{name}{COMPILED}"
    try:
        source = posix.stat(file)
    except OSError:
        return None
    spec = ModuleSpec(fullname, Loader(fullname, file, compiled, source), origin=file)
    spec.has_location = True
    spec.cached = compiled
    return spec


def import_quickly() -> None:
    sys.meta_path.insert(0, Finder())
