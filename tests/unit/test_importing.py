"""Modules of ours are found quickly, and are the same as those that Python would find."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from claudebox import cli, importing

LINE = "print('{}')\n"
TIME = 1_700_000_000


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A package of the same name with the real finder in it, and a module and a package to find."""
    package = tmp_path / "claudebox"
    (package / "inner").mkdir(parents=True)
    source = Path(importing.__file__)
    for file in (source, source.parent / "__init__.py"):
        (package / file.name).write_text(file.read_text())
    (package / "module.py").write_text(LINE.format("first"))
    (package / "inner" / "__init__.py").write_text(LINE.format("inner"))
    (package / "inner" / "part.py").write_text(LINE.format("part"))
    return package


def run(checkout: Path, code: str) -> str:
    start = f"import sys; sys.path.insert(0, {str(checkout.parent)!r}); {code}"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", start], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_modules_of_ours_are_found_by_name() -> None:
    assert isinstance(cli.__loader__, importing.Loader)
    assert Path(cli.__spec__.cached or "") == Path(cli.__file__).parent / "__pycache__" / f"cli{importing.COMPILED}"


def test_packages_and_modules_are_found_compiled_or_not(checkout: Path) -> None:
    code = "import claudebox.inner.part, claudebox.module; print(claudebox.inner.__path__)"
    for _ in range(2):
        assert run(checkout, code).split("\n") == ["inner", "part", "first", f"['{checkout}/inner']"]
        assert (checkout / "__pycache__" / f"module{importing.COMPILED}").exists()


@pytest.mark.parametrize(("second", "time"), [("a longer one", TIME), ("later", TIME + 1)])
def test_source_that_changed_counts(checkout: Path, second: str, time: int) -> None:
    """By its size, or by its time."""
    module = checkout / "module.py"
    os.utime(module, (TIME, TIME))
    assert run(checkout, "import claudebox.module") == "first"
    module.write_text(LINE.format(second))
    os.utime(module, (time, time))
    assert run(checkout, "import claudebox.module") == second


def test_compiled_file_decides_while_its_source_stays(checkout: Path) -> None:
    """Else nothing here shows that it is used at all."""
    module = checkout / "module.py"
    os.utime(module, (TIME, TIME))
    run(checkout, "import claudebox.module")
    module.write_text(LINE.format("again"))
    os.utime(module, (TIME, TIME))
    assert run(checkout, "import claudebox.module") == "first"


def test_other_compiled_files_are_left_to_python(checkout: Path) -> None:
    """Those that belong to a source by its hash, as packages have them whose files have no time."""
    module = checkout / "module.py"
    compiled = py_compile.compile(str(module), invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    assert compiled is not None
    assert run(checkout, "import claudebox.module") == "first"
    module.write_text(LINE.format("again"))
    assert run(checkout, "import claudebox.module") == "again"


def test_broken_compiled_file_is_made_again(checkout: Path) -> None:
    run(checkout, "import claudebox.module")
    (checkout / "__pycache__" / f"module{importing.COMPILED}").write_bytes(b"")
    assert run(checkout, "import claudebox.module") == "first"


def test_what_is_not_there_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"claudebox\.nothing"):
        import_module("claudebox.nothing")
