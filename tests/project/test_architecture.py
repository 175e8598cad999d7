"""The rooms of the design, held by parsing the source; and what a launch may import."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent.parent
SOURCE = CHECKOUT / "src" / "claudebox"
FILES = sorted(SOURCE.rglob("*.py"))

# Each room and what it may know. A room names only rooms that stand above it in this table.
ROOMS: dict[str, tuple[str, ...]] = {
    "importing": (),
    "version": ("importing",),
    "problem": (),
    "record": (),
    "paths": (),
    "quoting": (),
    "pinned": (),
    "own_command": (),
    "model": ("record",),
    "settings": ("model", "problem", "record"),
    "arguments": ("settings", "problem", "record"),
    "host": ("model", "paths", "problem", "quoting", "record"),
    "rules": ("host", "settings", "model", "paths", "problem", "pinned", "quoting", "record"),
    "plan": ("rules", "host", "arguments", "settings", "model", "paths", "problem", "record"),
    "layers": ("rules", "host", "arguments", "settings", "model", "paths", "problem", "record", "version"),
    "view": ("rules", "settings", "model", "paths", "problem", "quoting", "record", "version"),
    "broker": ("model", "problem", "record"),
    "launch": ("broker", "view", "rules", "host", "model", "paths", "problem", "quoting", "record"),
    "doctor": (
        "layers",
        "launch",
        "view",
        "plan",
        "rules",
        "host",
        "arguments",
        "settings",
        "model",
        "paths",
        "problem",
        "record",
        "version",
    ),
    "prove": (
        "own_command",
        "layers",
        "view",
        "plan",
        "host",
        "arguments",
        "settings",
        "model",
        "paths",
        "problem",
        "record",
    ),
    "instances": ("view", "problem", "quoting", "record"),
    "demo": ("own_command", "view", "host", "problem", "record"),
    "cli": (
        "layers",
        "broker",
        "prove",
        "demo",
        "instances",
        "doctor",
        "launch",
        "view",
        "plan",
        "rules",
        "host",
        "arguments",
        "settings",
        "model",
        "paths",
        "problem",
        "version",
    ),
}
# Rooms that only compute. The rest look at the machine (host), act on it (launch, instances), try it (doctor, demo) or
# talk (cli).
PURE = {
    "problem",
    "record",
    "paths",
    "quoting",
    "pinned",
    "model",
    "settings",
    "arguments",
    "rules",
    "plan",
    "layers",
    "view",
}
PURE_IMPORTS = {
    "__future__",
    "collections.abc",
    "itertools",
    "json",
    "marshal",
    "posixpath",
    "stat",
    "typing",
    "unicodedata",
} | {
    *("_sha2", "_sha256", "hashlib"),
    *("difflib", "ipaddress", "marshal", "re", "tomllib"),
}
SIDE_EFFECTS = {"open", "print", "input", "exec", "eval", "__import__", "breakpoint", "compile"}
READING = {
    *(
        "lstat",
        "stat",
        "readlink",
        "listdir",
        "scandir",
        "getxattr",
        "fstat",
        "open",
        "read",
        "close",
        "stat_result",
        "DirEntry",
    ),
    *("environ", "getcwd", "geteuid", "getegid", "uname", "fsdecode", "fsencode"),
    *("O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "O_PATH"),
}
LONGEST_FUNCTION = 50
LONGEST_FILE = 400


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "version"


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, anywhere in it."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            module = node.module or ""
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield inner if (SOURCE.parent / inner.replace(".", "/")).with_suffix(".py").exists() else module


def test_rooms_point_downwards_only() -> None:
    rooms = list(ROOMS)
    for room, below in ROOMS.items():
        assert all(rooms.index(other) < rooms.index(room) for other in below), room


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_room_knows_only_what_is_below(path: Path) -> None:
    room = room_of(module_of(path))
    known = {room_of(module) for module in imports(path) if module.split(".")[0] == "claudebox"}
    assert known <= {room, *ROOMS[room]}


@pytest.mark.parametrize("path", [path for path in FILES if room_of(module_of(path)) in PURE], ids=module_of)
def test_pure_room_has_no_side_effect(path: Path) -> None:
    foreign = {module for module in imports(path) if module.split(".")[0] != "claudebox"}
    assert foreign <= PURE_IMPORTS
    called = {
        node.func.id
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert called.isdisjoint(SIDE_EFFECTS)


def used_of_os(path: Path) -> set[str]:
    return {
        node.attr
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
    }


@pytest.mark.parametrize("path", [path for path in FILES if room_of(module_of(path)) == "host"], ids=module_of)
def test_host_only_reads(path: Path) -> None:
    assert used_of_os(path) <= READING
    assert "subprocess" not in set(imports(path))


def test_only_launch_becomes_another_program() -> None:
    acting = {
        room_of(module_of(path))
        for path in FILES
        if any(
            name.startswith(("exec", "fork", "spawn", "posix_spawn", "system", "popen")) for name in used_of_os(path)
        )
    }
    starting = {module_of(path) for path in FILES if "subprocess" in set(imports(path))}
    assert acting == {"launch", "prove"}  # whose probe forks, to try what cannot be undone
    # Nix and Claude are asked before the box starts, if what they said the last time is not enough.
    asking = {f"claudebox.launch.{name}" for name in ("claude_trial", "nix_closure", "nix_trial", "packages")}
    assert {module for module in starting if room_of(module) == "launch"} == asking
    assert {room_of(module) for module in starting} <= {"launch", "doctor", "demo", "prove"}


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_file_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_functions_are_short(path: Path) -> None:
    functions = (node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    long = {node.name for node in functions if (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION}
    assert long == set()


# What a launch loads of Python, beyond what the bare interpreter does.
BUDGET = {
    "os",
    "stat",
    "_stat",
    "posixpath",
    "genericpath",
    "_collections_abc",
    "abc",
    "_abc",
    "_signal",
    "errno",
    "itertools",
}
BUDGET |= {"_sha2", "_sha256", "_ctypes"}  # of which a Python has one; the name of a project's state is a hash
BUDGET |= {"__future__"}  # small, and asked for by every file
MOST_MODULES_OF_OURS = 65
# Loaded while bwrap makes the mounts, when there is time.
MEANWHILE = {
    *("claudebox.features.guard.act", "claudebox.launch.parent.witness", "claudebox.features.guard.changes"),
    *("claudebox.host.fingerprint", "claudebox.host.git.gitlinks"),
}
# A machine where bwrap may not work is tried before, which costs what it costs, and one with a Nix store has more to
# look at: not measured here.
LAUNCHER = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from claudebox import cli
from claudebox.host.tree import Tree
lstat = Tree.lstat
Tree.lstat = lambda tree, path: None if (path + "/").startswith("/nix/") else lstat(tree, path)
cli.doubts_namespaces = lambda *_: False
cli.main()
"""


def modules_of(python: str, *arguments: str, cwd: Path, env: dict[str, str]) -> tuple[set[str], int]:
    """What an interpreter imports until it ends or becomes another program, and its exit status."""
    command = [python, "-I", "-S", "-X", "importtime", *arguments]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    rows = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    return {row.rpartition("|")[2].strip() for row in rows} - {"imported package"}, done.returncode


def test_launch_imports_next_to_nothing(tmp_path: Path) -> None:
    """A launch ends in exec, so a script stands in for bwrap: all planning and opening has happened by then."""
    project = tmp_path / "home" / "shop"
    project.mkdir(parents=True)
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\nexit 42\n")
    bwrap.chmod(0o755)
    environ = {"HOME": str(tmp_path / "home"), "PATH": os.defpath, "CLAUDEBOX_BWRAP": str(bwrap), "LC_ALL": "C.UTF-8"}
    # The interpreter of the tests may be a virtual environment's; the launcher uses the one behind it.
    python = os.path.realpath(sys.executable)
    bare, _ = modules_of(python, "-c", "pass", cwd=project, env=environ)
    words = ("-c", LAUNCHER, str(SOURCE.parent), "--yes", "--run", "true")
    loaded, status = modules_of(python, *words, cwd=project, env=environ)
    assert status == 42, "the stand-in for bwrap was not reached"
    ours = {module for module in loaded if module.split(".")[0] == "claudebox"}
    assert "claudebox.launch" in ours
    assert loaded - bare - ours <= BUDGET
    assert ours >= MEANWHILE
    assert len(ours - MEANWHILE) <= MOST_MODULES_OF_OURS
    assert not {module for module in ours if module.startswith(("claudebox.doctor", "claudebox.view.as_json"))}
