"""The rooms of the design, held by parsing the source; and what a launch may import."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from claudebox.contribution import Contribution, Draft
from claudebox.features.table import COMPLETING, DECIDING, Decision, load
from claudebox.model import Plan, Step
from syntax import nodes, parsed

pytestmark = pytest.mark.xdist_group("source")  # parsed once, and not by each worker
CHECKOUT = Path(__file__).resolve().parent.parent.parent
SOURCE = CHECKOUT / "src" / "claudebox"
FILES = sorted(SOURCE.rglob("*.py"))

# The rooms from the ground floor up. A module may know its own room and what is below it, never what is above.
ROOMS: dict[str, tuple[str, ...]] = {
    "words of our own": ("importing", "archive", "problem", "record", "paths", "quoting", "pinned", "own_command", ""),
    "vocabulary": ("model", "allowed"),
    "what can be said": (
        "settings.table",
        "settings.values",
        "settings.types",
        "settings.words",
        "settings.mistakes",
    ),
    "the host, read only": ("host", "host.*"),
    "what features share": (
        *(
            "state",
            "remembered",
            "places",
            "mounts",
            "reach",
            "secret_values",
            "tools",
            "contribution",
            "facts",
        ),
        *("ranges", "addresses", "journal", "process", "process.*", "files", "login"),
        *("layers", "layers.*", "known_variables", "users_settings"),
    ),
    "what was said": ("settings", "settings.*"),
    "features decide": ("features", "features.table", "features.*", "agreement"),
    "views": ("view", "view.*", "terminal", "trial"),
    "features act": (
        *("features.*.act", "features.*.check", "features.*.connection", "features.*.fetch", "features.*.explain"),
    ),
    "all together": ("plan", "explain", "explain.*", "instances"),
    "launch": ("launch", "launch.*"),
    "modes": (
        "start",
        "asking",
        "uninstall",
        "showing",
        "reviewing",
        "features.*.log",
        "doctor",
        "setup",
        "prove",
        "prove.*",
        "demo",
    ),
    "the command": ("cli",),
}
# They stand on another floor than their folder says.
EXCEPTIONS = {
    "features.guard.quarantine": "features act",
    "features.review.commits": "features act",
    "features.review.show": "features act",
    "features.review.end": "features act",
    "features.login.keep_in_step": "features act",
    "features.broker.server.*": "features act",
    "features.names.server.*": "features act",
    "features.names.namespace": "views",
}

# What only computes: it may know what the standard library calculates, and looks at the world through `host` alone.
PURE = (
    *("problem", "record", "paths", "quoting", "pinned", "model", "settings", "settings.*", "state", "remembered"),
    *("places", "mounts", "reach", "secret_values", "tools", "contribution", "facts", "plan", "agreement"),
    *("ranges", "addresses", "allowed", "known_variables", "users_settings"),
    *("explain", "explain.*", "view", "view.*", "features.*"),
)
ACTING = (
    *(
        "features.*.act",
        "features.*.check",
        "features.nix.fetch",
    ),
    *("features.guard.quarantine", "features.review.commits", "features.review.show", "features.review.end"),
    *("features.broker.server", "features.broker.server.*", "features.login.*"),
    *("features.names.server", "features.names.server.*", "features.names.namespace"),
    "features.table",
)
PURE_IMPORTS = {
    *("__future__", "collections.abc", "itertools", "json", "marshal", "posixpath", "stat", "typing", "unicodedata"),
    *("_sha2", "_sha256", "hashlib", "binascii", "difflib", "ipaddress", "re", "tomllib"),
}
SIDE_EFFECTS = {"open", "print", "input", "exec", "eval", "__import__", "breakpoint", "compile"}
READING = {
    *("lstat", "stat", "readlink", "listdir", "scandir", "getxattr", "fstat", "open", "read", "close", "stat_result"),
    *("DirEntry", "urandom", "environ", "getcwd", "geteuid", "getegid", "uname", "fsdecode", "fsencode"),
    *("access", "W_OK"),
    *("O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "O_PATH"),
}
STARTING = ("exec", "fork", "spawn", "posix_spawn", "system", "popen")
# Modules of ours that a function imports when it needs them. Each saves a launch that does not need it something that
# can be measured; everything else that is optional goes through `features.table.load`.
LATE_MOST = 52
LONGEST_FUNCTION = 50
LONGEST_FILE = 400


def module_of(path: Path) -> str:
    """The name below `claudebox`; "" for the package itself."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").removesuffix(".")


MODULES = {module_of(path): path for path in FILES}


def is_one_of(module: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(module, pattern) for pattern in patterns)


@cache
def floor_of(module: str) -> int:
    rooms = list(ROOMS)
    named = [room for pattern, room in EXCEPTIONS.items() if fnmatch(module, pattern)]
    exact = [room for room, patterns in ROOMS.items() if module in patterns]
    matching = [room for room in reversed(rooms) if is_one_of(module, ROOMS[room])]
    return rooms.index((*named, *exact, *matching)[0])


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


def test_every_module_has_a_room() -> None:
    assert [module for module in MODULES if not any(is_one_of(module, patterns) for patterns in ROOMS.values())] == []


def test_module_knows_only_what_is_below() -> None:
    above = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        for name in ours(imports(path))
        if floor_of(name) > floor_of(module)
    ]
    assert above == []


def test_feature_imports_no_other_feature() -> None:
    others = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        for name in ours(imports(path))
        if feature_of(module) and feature_of(name) not in ("", feature_of(module))
    ]
    assert others == []


def test_pure_module_has_no_side_effect() -> None:
    pure = {name: path for name, path in MODULES.items() if is_one_of(name, PURE) and not is_one_of(name, ACTING)}
    foreign = [
        f"{module} imports {name}"
        for module, path in pure.items()
        for name in imports(path) - PURE_IMPORTS
        if name.split(".")[0] != "claudebox"
    ]
    assert foreign == []
    called = [
        f"{module} calls {node.func.id}"
        for module, path in pure.items()
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SIDE_EFFECTS
    ]
    assert called == []


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


def test_few_become_or_start_another_program() -> None:
    becoming = {
        module for module, path in MODULES.items() if any(name.startswith(STARTING) for name in used_of_os(path))
    }
    assert becoming == {
        *("launch.child", "launch.parent.attend", "launch.parent.keeper"),
        *("features.limits.act", "features.network.act", "process.companion", "process.programs"),
        "prove.probe",  # which forks, to try what cannot be undone
    }
    starting = {module for module, path in MODULES.items() if "subprocess" in imports(path)}
    assert starting == {
        "features.names.server.notes",
        "features.nix.act",
        "features.nix.fetch",
        "features.review.commits",
        "features.review.show",
        "trial",
        "setup",
        "demo",
        "prove.canaries",
        "prove",
    }


def late_imports(path: Path) -> Iterator[str]:
    for function in nodes(path):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                yield from (name for name in imported_by(node) if name.startswith("claudebox"))


def test_few_functions_import_late() -> None:
    late = [f"{module}: {name}" for module, path in MODULES.items() for name in set(late_imports(path))]
    assert len(late) <= LATE_MOST, "\n".join(late)


def test_only_the_tables_of_features_and_modes_import_by_name() -> None:
    by_name = {
        module
        for module, path in MODULES.items()
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__import__"
    }
    assert by_name == {"cli", "features.table"}


@pytest.mark.parametrize("row", [*DECIDING, *COMPLETING], ids=lambda row: f"{row.module}-{row.function}")
def test_row_of_the_table_names_a_function(row: Decision) -> None:
    assert callable(load(row.module, row.function))


def test_every_step_has_somebody_who_does_it() -> None:
    """A Step names a feature and a moment: `act.py` of that feature has a function for it."""
    steps = [
        (node.args[0], node.args[1])
        for module, path in MODULES.items()
        for node in nodes(path)
        if feature_of(module) and isinstance(node, ast.Call) and ast.unparse(node.func) == "Step"
    ]
    assert len(steps) > 10
    for moment, feature in steps:
        assert isinstance(moment, ast.Attribute)
        assert isinstance(feature, ast.Constant)
        assert isinstance(feature.value, str)
        body = parsed(MODULES[f"features.{feature.value}.act"]).body
        functions = [one.name for one in body if isinstance(one, ast.FunctionDef)]
        assert getattr(Step, moment.attr) in functions, feature.value


def test_draft_collects_every_field_of_a_contribution() -> None:
    assert set(vars(Draft())) == set(Contribution._fields)


def test_each_field_of_the_plan_is_decided_by_one_feature() -> None:
    """Features name the fields of the Plan that they decide: (("network", network),)."""
    decided = [
        (name.value, feature_of(module))
        for module, path in MODULES.items()
        for node in nodes(path)
        if feature_of(module) and isinstance(node, ast.keyword) and node.arg == "decided"
        for pair in ast.walk(node.value)
        if isinstance(pair, ast.Tuple) and len(pair.elts) == 2 and isinstance(name := pair.elts[0], ast.Constant)
    ]
    assert {name for name, _ in decided} <= set(Plan._fields)
    by_field = {name: {feature for other, feature in decided if other == name} for name, _ in decided}
    # A command or a shell is nobody's but the box's own; Claude and other agents know how they are started.
    several = {name: owners for name, owners in by_field.items() if len(owners) > 1}
    assert several == {"program": {"claude", "agents", "program"}}


def test_files_are_short() -> None:
    assert [name for name, path in MODULES.items() if len(path.read_text().splitlines()) > LONGEST_FILE] == []


def test_functions_are_short() -> None:
    long = [
        f"{module}.{node.name}"
        for module, path in MODULES.items()
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
    ]
    assert long == []


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
MOST_MODULES_OF_OURS = 96
# Loaded while bwrap makes the mounts, when there is time.
MEANWHILE = {
    *("claudebox.features.guard.act", "claudebox.features.guard.changes"),
    *("claudebox.features.guard.checkouts", "claudebox.features.guard.contents"),
    *("claudebox.features.guard.pointers", "claudebox.host.fingerprint", "claudebox.features.vanished.act"),
    "claudebox.launch.parent.signals",
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
from claudebox import start
start.doubts_namespaces = lambda *_: False
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
    own = {module for module in loaded if module.split(".")[0] == "claudebox"}
    assert "claudebox.launch" in own
    assert loaded - bare - own <= BUDGET
    assert own >= MEANWHILE
    assert len(own - MEANWHILE) <= MOST_MODULES_OF_OURS
    assert not {module for module in own if module.startswith(("claudebox.doctor", "claudebox.view.as_json"))}
    # Nothing here can be a layer.
    assert not {module for module in own if module.startswith(("claudebox.features.review", "claudebox.layers."))}
