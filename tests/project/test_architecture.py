"""Who may know whom, held by parsing the source; and what a start loads."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from syntax import nodes

pytestmark = pytest.mark.xdist_group("source")  # parsed once, and not by each worker
CHECKOUT = Path(__file__).resolve().parent.parent.parent
SOURCE = CHECKOUT / "src" / "claudebox"
FILES = sorted(SOURCE.rglob("*.py"))

# The house, from the ground up. A room, or a file of the root, knows what stands before it here, and nothing else.
HOUSE = (
    ("record", "paths", "errors", "text", "model"),
    ("host", "files", "state"),
    ("process", "settings"),
    ("sandbox", "servers"),
    ("output", "overlay"),
    ("facts", "features"),
    ("plan", "consent"),
    ("commands", "start", "cli"),
)
ROOMS = [room for floor in HOUSE for room in floor]
READING = {
    *("lstat", "stat", "readlink", "listdir", "scandir", "getxattr", "fstat", "open", "read", "close", "stat_result"),
    *("DirEntry", "urandom", "environ", "getcwd", "geteuid", "getegid", "uname", "fsdecode", "fsencode"),
    *("access", "W_OK", "defpath"),
    *("O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "O_PATH"),
}


def module_of(path: Path) -> str:
    """The name below `claudebox`; "" for the package itself."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").removesuffix(".")


MODULES = {module_of(path): path for path in FILES}


def feature_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if parts[0] == "features" and len(parts) > 1 and parts[1] != "table" else ""


def imported_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "a relative import"
        module = node.module or ""
        for alias in node.names:
            inner = f"{module}.{alias.name}"
            yield inner if inner.removeprefix("claudebox.") in MODULES else module


@cache
def imports(path: Path) -> frozenset[str]:
    """Every module that a file imports, anywhere in it; not what only the type checker sees."""
    for_types = {
        node
        for block in nodes(path)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    return frozenset(module for node in nodes(path) if node not in for_types for module in imported_by(node))


def ours(modules: frozenset[str]) -> set[str]:
    return {module.removeprefix("claudebox").lstrip(".") for module in modules if module.split(".")[0] == "claudebox"}


@pytest.mark.parametrize("room", ROOMS)
def test_room_knows_nothing_above_it(room: str) -> None:
    known = {
        f"{module} imports {name}"
        for module, path in MODULES.items()
        for name in ours(imports(path))
        if module.split(".")[0] == room and name and name.split(".")[0] not in ROOMS[: ROOMS.index(room) + 1]
    }
    assert {one for one in known if not one.endswith("__version__")} == set()


def test_house_has_every_room() -> None:
    assert {module.split(".")[0] for module in MODULES if module} == set(ROOMS)


def test_feature_imports_no_other_feature() -> None:
    others = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        for name in ours(imports(path))
        if feature_of(module) and feature_of(name) not in ("", feature_of(module))
    ]
    assert others == []


def used_of_os(path: Path) -> set[str]:
    return {
        node.attr
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
    }


def test_paths_are_normalized_in_one_way() -> None:
    """What `posixpath.normpath` leaves of `//home` is compared by its beginning, and would be another place."""
    users = {module for module, path in MODULES.items() if "posixpath.normpath" in path.read_text()}
    assert users == {"paths"}


def test_host_only_reads() -> None:
    for module, path in MODULES.items():
        if module.split(".")[0] == "host":
            assert used_of_os(path) <= READING, module
            assert "subprocess" not in imports(path), module


# What a start loads of Python, beyond what the bare interpreter does: each of the others (typing, re, json, subprocess,
# dataclasses, signal …) takes as long as a quarter of an interpreter's own start, or longer.
OF_PYTHON = {
    *("os", "os.path", "stat", "_stat", "posixpath", "genericpath", "_collections_abc", "abc", "_abc", "_signal"),
    *("errno",),
    *("itertools", "_sha2", "_sha256", "_ctypes", "__future__"),
    *("fcntl", "select", "_socket"),  # for the process that keeps masks on
}
LAYERS = tuple(f"claudebox.overlay.{name}" for name in ("changes", "landing", "machine", "mounting", "review", "store"))
# A machine where bwrap may not work is tried before, and one with a Nix store has more to look at: not measured here.
# What is called is noted from the beginning, so that a module that is loaded for nothing shows.
LAUNCHER = """
import sys
called = set()
def note(frame, event, _):
    if event == "call":
        called.add((frame.f_code.co_filename, frame.f_code.co_name))
sys.setprofile(note)
sys.path.insert(0, sys.argv.pop(1))
from claudebox import cli
from claudebox.host.tree import Tree
lstat = Tree.lstat
Tree.lstat = lambda tree, path: None if (path + "/").startswith("/nix/") else lstat(tree, path)
from claudebox import start
start.doubts_namespaces = lambda *_: False
import os
become = os.execve
def report(*arguments):
    sys.setprofile(None)
    for name, module in sorted(sys.modules.items()):
        own = [one for one in vars(module).values() if getattr(one, "__module__", "") == name]
        functions = {one.__name__ for one in own if hasattr(one, "__code__")}
        classes = {one.__name__ for one in own if isinstance(one, type)}
        ran = {word for file, word in called if file == getattr(module, "__file__", "")} - classes - {"<module>"}
        print(name, "used" if ran or not functions else "unused", file=sys.stderr)
    become(*arguments)
os.execve = report
cli.main()
"""


@pytest.mark.parametrize("tier", ["full", "none"])
def test_start_loads_nothing_that_it_does_not_use(tmp_path: Path, tier: str) -> None:
    """A launch ends in exec, so a script stands in for bwrap: all planning and opening has happened by then."""
    project = tmp_path / "home" / "shop"
    project.mkdir(parents=True)
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\nexit 42\n")
    bwrap.chmod(0o755)
    environ = {"HOME": str(tmp_path / "home"), "PATH": os.defpath, "CLAUDEBOX_BWRAP": str(bwrap), "LC_ALL": "C.UTF-8"}
    # The interpreter of the tests may be a virtual environment's; the launcher uses the one behind it.
    python = [os.path.realpath(sys.executable), "-I", "-S", "-c"]
    bare = subprocess.check_output([*python, "import sys; print(*sys.modules)"], text=True).split()
    command = [*python, LAUNCHER, str(SOURCE.parent), "--yes", "--quiet", "--network", tier, "--run", "true"]
    done = subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 42, f"the stand-in for bwrap was not reached: {done.stderr}"
    loaded = dict(line.split() for line in done.stderr.splitlines())
    assert "claudebox.sandbox.launch" in loaded
    ours = {name: use for name, use in loaded.items() if name.split(".")[0] == "claudebox"}
    assert loaded.keys() - ours.keys() - set(bare) <= OF_PYTHON
    unused = [name for name, use in ours.items() if use == "unused"]
    assert not unused, unused
    # Nothing here can be a layer.
    assert not {name for name in ours if name.startswith(LAYERS)}
