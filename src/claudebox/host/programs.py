"""Finds programs the way a shell does, how Claude Code is installed, and which files it needs to run."""

from __future__ import annotations

import posixpath

from claudebox.host.tree import Tree
from claudebox.paths import normalize
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The directories of administrators' tools, which the PATH of an ordinary user often lacks.
ADMIN_DIRECTORIES = ("/usr/sbin", "/sbin", "/usr/local/sbin")


def find_all(tree: Tree, name: str, path: str, cwd: str) -> Iterator[str]:
    """Every program of that name on PATH, in order. An empty or relative entry counts from `cwd`, as in a shell."""
    candidates = (normalize(posixpath.join(cwd, entry, name)) for entry in path.split(":"))
    return (candidate for candidate in candidates if tree.is_executable(candidate))


def find_unusable(tree: Tree, name: str, path: str, cwd: str) -> str | None:
    """A file of that name on PATH that cannot be executed."""
    candidates = (normalize(posixpath.join(cwd, entry, name)) for entry in path.split(":"))
    return next((candidate for candidate in candidates if tree.is_file(candidate)), None)


def find(tree: Tree, name: str, path: str, cwd: str) -> str | None:
    return next(find_all(tree, name, path, cwd), None)


def find_admin(tree: Tree, name: str, path: str, cwd: str) -> str | None:
    """Like `find`, but it also looks where the PATH of an ordinary user does not."""
    return find(tree, name, ":".join((path, *ADMIN_DIRECTORIES)), cwd)


NATIVE = "native installer"
NPM = "npm"
NIX = "Nix"
SYSTEM = "system package"
SCRIPT = "script"
BINARY = "binary"

PACKAGE = "@anthropic-ai/claude-code"
SHIM_MARK = b"# cmd-shim-target="
SYSTEM_TREES = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/")


class ClaudeInstall(Record):
    """One installation of Claude Code."""

    path: str  # as somebody named it, or as it was found on PATH
    real: str  # the file itself
    kind: str
    files: tuple[str, ...]  # the real paths outside the system's own trees that it needs
    interpreter: str  # the real path of the program that its `#!` line names
    missing: str  # the name of an interpreter that is not installed
    way_to_interpreter: str = ""  # the path of the interpreter before its symlinks are followed


def inspect(tree: Tree, path: str, search_path: str, cwd: str) -> ClaudeInstall:
    """Follow the symlinks, the package and the `#!` line of the program at `path`, which exists."""
    real = _behind_shim(tree, tree.resolve(path) or path)
    words = _hash_bang(tree, real)
    files = [_needed_tree(real)]
    interpreter = missing = way = ""
    if words:
        name = _interpreter_name(words)
        found = name if name.startswith("/") else find(tree, name, search_path, cwd)
        interpreter_real = tree.resolve(found) if found and tree.is_executable(found) else None
        if interpreter_real:
            interpreter, way = interpreter_real, found or ""
            files += [_needed_tree(interpreter_real), *_python_trees(tree, way, interpreter_real)]
        else:
            missing = name
    outside_system = tuple(dict.fromkeys(file for file in files if not file.startswith(SYSTEM_TREES)))
    return ClaudeInstall(path, real, _kind(real, bool(words)), outside_system, interpreter, missing, way)


def _behind_shim(tree: Tree, real: str) -> str:
    """The program itself, if a version manager or package manager has put a small program of its own before it."""
    directory, name = posixpath.split(real)
    if name == "volta-shim":
        behind = f"{posixpath.dirname(directory)}/tools/image/packages/{PACKAGE}/bin/claude"
    elif real.endswith("/.claude/local/claude"):
        behind = f"{directory}/node_modules/.bin/claude"
    else:
        behind = _shim_target(tree, real)
    target = tree.resolve(posixpath.join(directory, behind)) if behind else None
    return target if target is not None and tree.is_executable(target) else real


def _shim_target(tree: Tree, real: str) -> str:
    """The target that a shell script of pnpm names at its end; "" if it is no such script."""
    head = tree.read(real, limit=8192) or b""
    if not head.startswith(b"#!") or SHIM_MARK not in head:
        return ""
    return head.split(SHIM_MARK, 1)[1].split(b"\n", 1)[0].decode(errors="replace").strip()


def manager_behind(tree: Tree, real: str) -> str:
    """The name of the version manager that this program belongs to; only that one knows where claude is."""
    if posixpath.basename(real) == "mise":
        return "mise"
    return "asdf" if b"asdf exec" in (tree.read(real, limit=4096) or b"") else ""


def _hash_bang(tree: Tree, path: str) -> list[str]:
    head = tree.read(path, limit=256) or b""
    if not head.startswith(b"#!"):
        return []
    return head[2:].split(b"\n", 1)[0].decode(errors="replace").split()


def _interpreter_name(words: list[str]) -> str:
    """The interpreter itself: for `/usr/bin/env -S node --flag` that is node."""
    if posixpath.basename(words[0]) != "env":
        return words[0]
    names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return names[0] if names else words[0]


def _needed_tree(real: str) -> str:
    """The smallest directory or file that holds all of the program."""
    if real.startswith("/nix/store/"):
        return "/nix/store"
    before, marker, after = real.rpartition("/node_modules/")
    if not marker:
        return real
    # A scoped package keeps its binary for this platform in a sibling package of the same scope.
    scope = after.split("/", 1)[0]
    return f"{before}{marker}{scope}"


def _python_trees(tree: Tree, interpreter: str, real: str) -> list[str]:
    """The virtual environment that holds what a program in Python imports, and the Python that it was made of."""
    environment, python = (posixpath.dirname(posixpath.dirname(path)) for path in (interpreter, real))
    if not tree.exists(f"{environment}/pyvenv.cfg"):
        return []
    return [tree.resolve(environment) or environment, *([python] if tree.is_dir(f"{python}/lib") else [])]


def _kind(real: str, is_script: bool) -> str:
    if real.startswith("/nix/store/"):
        return NIX
    if "/node_modules/" in real:
        return NPM
    if "/claude/versions/" in real:
        return NATIVE
    if real.startswith(SYSTEM_TREES):
        return SYSTEM
    return SCRIPT if is_script else BINARY
