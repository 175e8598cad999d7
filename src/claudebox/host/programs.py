"""Finds programs as a shell does, and chooses those that are used.

These are bwrap, pasta and nft, which run on the host in no box, and the agent: how it is installed, and which files it
needs to run.
"""

from __future__ import annotations

import posixpath
import stat

from claudebox.errors import CANNOT_EXECUTE, NOT_FOUND, Problem, quote
from claudebox.host import Host, pinned
from claudebox.host.secrets import refuse_readable
from claudebox.host.system import NIX_STORE, install_command
from claudebox.host.tree import Tree
from claudebox.model import ANY_VERSION, RO, SYMLINK, Mount, Origin, SecretPlace
from claudebox.paths import is_inside, normalize
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from claudebox.settings import Word
    from claudebox.state.reach import Reach

# The directories of administrators' tools, which the PATH of an ordinary user often lacks.
ADMIN_DIRECTORIES = ("/usr/sbin", "/sbin", "/usr/local/sbin")


def find_all(host: Host, name: str, *further: str) -> Iterator[str]:
    """Every program of that name on PATH, in order, and in further directories."""
    return filter(host.tree.is_executable, _candidates(host, name, *further))


def find(host: Host, name: str, *further: str) -> str:
    """The program that a shell would start; "" if there is none."""
    return next(find_all(host, name, *further), "")


def _candidates(host: Host, name: str, *further: str) -> Iterator[str]:
    """Where it may be. An empty or relative entry of PATH counts from the current directory, as in a shell."""
    return (_as_typed(host, posixpath.join(entry, name)) for entry in (*host.search_path.split(":"), *further))


def _as_typed(host: Host, path: str) -> str:
    return normalize(posixpath.join(host.cwd, path))


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


def inspect(host: Host, path: str) -> ClaudeInstall:
    """Follow the symlinks, the package and the `#!` line of the program at `path`, which exists."""
    tree = host.tree
    real = _behind_shim(tree, tree.resolve(path) or path)
    words = _hash_bang(tree, real)
    files = [_needed_tree(real)]
    interpreter = missing = way = ""
    if words:
        name = _interpreter_name(words)
        found = name if name.startswith("/") else find(host, name)
        interpreter_real = tree.resolve(found) if found and tree.is_executable(found) else None
        if interpreter_real:
            interpreter, way = interpreter_real, found
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
        return "Nix"
    if "/node_modules/" in real:
        return "npm"
    if "/claude/versions/" in real:
        return "native installer"
    if real.startswith(SYSTEM_TREES):
        return "system package"
    return "script" if is_script else "binary"


SYSTEM_PROGRAMS = ("/usr/bin/", "/bin/")
# An old installer has put claude in a secret place, where it is no secret.
LOCAL_INSTALL = "/.claude/local/node_modules/@anthropic-ai"
MARKS = {"bwrap": b"bwrap", "pasta": b"passt", "nft": b"nft"}  # what each has in it
PURPOSE = {
    "bwrap": "makes the box",
    "pasta": "connects a box with a network of its own",
    "nft": "loads the network's filter",
}


def choose_bwrap(host: Host, named: Word | None, reach: Reach) -> str:
    path = _choose(host, "bwrap", named, reach)
    status = host.tree.lstat(path)
    mode = status.st_mode if status is not None else 0
    if mode & (stat.S_ISUID | stat.S_ISGID) or host.tree.has_capabilities(path):
        message = f"{path} is setuid or has capabilities: a bug in it would give root (CVE-2026-41163)"
        raise Problem(message, f"sudo chmod u-s {quote(path)}\n      or {another('bwrap')}")
    return path


def choose_uplink(host: Host, named: dict[str, Word | None], reach: Reach) -> tuple[str, ...]:
    """The paths of the programs that connect the box, in the order of `named`."""
    searched = [name for name in named if named[name] is None and name not in pinned.PROGRAMS]
    missing = [name for name in searched if not find(host, name, *ADMIN_DIRECTORIES)]
    if missing:
        raise _not_installed(host.tree, *missing)
    return tuple(_choose(host, name, named[name], reach, *ADMIN_DIRECTORIES) for name in named)


def check_named(host: Host, *named: Word | None) -> None:
    """Raise a Problem if somebody names a program that is none, although this box may do without it."""
    for word in filter(None, named):
        path = _as_typed(host, word.text)
        if not host.tree.is_executable(path):
            raise Problem(
                f"{word.origin.shown}: {path} is not a program", f"look for it: command -v {posixpath.basename(path)}"
            )


def _check_kind(tree: Tree, named: Word, path: str, name: str) -> None:
    """Raise a Problem if somebody names another program: it does not hold its own name. A script may call anything."""
    content = tree.read(path) or b""
    if content.startswith(b"\x7fELF") and MARKS[name] not in content:
        raise Problem(f"{named.origin.shown}: {path} is not {name}", f"look for it: command -v {name}")


def _choose(host: Host, name: str, named: Word | None, reach: Reach, *further: str) -> str:
    """The program to use. One in a place where agents can write is refused, whoever names it."""
    check_named(host, named)
    found = pinned.PROGRAMS.get(name) or find(host, name, *further)
    path = found if named is None else _as_typed(host, named.text)
    if not path:
        raise _not_installed(host.tree, name)
    if reach.leads_through(path):
        raise Problem(f"{name} would come from where an agent can write: {path}", another(name))
    if named is not None:
        _check_kind(host.tree, named, path, name)
    return host.tree.resolve(path) or path


def choose_agent(host: Host, name: str, named: Word | None, reach: Reach, how_to_install: str) -> ClaudeInstall:
    """The agent to start: the one that somebody named, or else what PATH has. What an agent can write does not count.

    Only Claude has a setting to name it, called like itself.
    """
    path = _named_agent(host, named) if named is not None else _find_agent(host, name, how_to_install)
    install = inspect(host, path)
    parts = (path, install.real, install.way_to_interpreter)
    if writable := next(filter(reach.leads_through, filter(None, parts)), ""):
        raise Problem(f"{name} would come from where an agent can write: {writable}", how_to_install)
    if manager := manager_behind(host.tree, install.real):
        real = f'"$({manager} which {name})"'
        on_path = f'PATH="$(dirname {real}):$PATH" claudebox --program {name}'
        raise Problem(
            f"{path} is a shim of {manager}, not {name}",
            f"CLAUDEBOX_CLAUDE={real} claudebox" if name == "claude" else on_path,
        )
    if install.missing:
        raise Problem(
            f"{install.path} needs `{install.missing}`, which was not found",
            "install it, or put it on PATH",
            CANNOT_EXECUTE,
        )
    return install


def check_files(install: ClaudeInstall, homes: tuple[str, ...], places: tuple[SecretPlace, ...], remedy: str) -> None:
    """Raise a Problem if an agent says, for example in its `#!` line, that it needs what the box must not have."""
    for file in install.files:
        refusal = refuse_readable(file, homes, places)
        if refusal and not file.endswith(LOCAL_INSTALL):
            raise Problem(f"{install.path} would need {file}: {refusal}", remedy)


def install_mounts(install: ClaudeInstall, path: str, project: str, rule: str) -> list[Mount]:
    """Show the files of an agent at their own places, and the agent at `path`, beside its interpreter."""
    origin = Origin.of_rule(rule, install.kind)
    shown = [file for file in install.files if file != NIX_STORE and not is_inside(file, project)]
    links = {path: install.real}
    if install.interpreter in install.files:
        links[posixpath.join(posixpath.dirname(path), posixpath.basename(install.interpreter))] = install.interpreter
    return [
        *(Mount(RO, file, origin, source=file, consent=ANY_VERSION) for file in shown),
        *(Mount(SYMLINK, name, origin, source=real) for name, real in links.items() if name != real),
    ]


def _named_agent(host: Host, named: Word) -> str:
    path = _as_typed(host, named.text)
    if not host.tree.exists(path):
        raise Problem(f"{named.origin.shown}: {path} does not exist", status=NOT_FOUND)
    if not host.tree.is_executable(path):
        raise Problem(f"{named.origin.shown}: {path} cannot be executed", f"chmod +x {quote(path)}", CANNOT_EXECUTE)
    return path


def _find_agent(host: Host, name: str, how_to_install: str) -> str:
    if found := find(host, name):
        return found
    if unusable := next(filter(host.tree.is_file, _candidates(host, name)), ""):
        raise Problem(f"{unusable} cannot be executed", f"chmod +x {quote(unusable)}", CANNOT_EXECUTE)
    if host.tree.is_executable(f"{host.person.home}/.local/bin/{name}"):
        # Installers put it there, and a login shell has the directory on PATH only if it was there before.
        raise Problem(
            f"{name} is in ~/.local/bin, which is not on your PATH", 'export PATH="$HOME/.local/bin:$PATH"', NOT_FOUND
        )
    raise Problem(f"{name} is not installed", how_to_install, NOT_FOUND)


def npm_install(host: Host, package: str) -> str:
    """The command that installs it. The npm of the system writes where only root may, unless it is told otherwise."""
    is_systems = find(host, "npm").startswith(SYSTEM_PROGRAMS) and host.person.uid != 0
    return f"npm install -g{' --prefix ~/.local' if is_systems else ''} {package}"


def trusted_path(host: Host, reach: Reach) -> str:
    """PATH for a program that runs on the host: without the entries that an agent can write, or that lead there.

    An empty or relative entry is the current directory, whichever that is when the program is looked for.
    """
    entries = (entry for entry in host.search_path.split(":") if entry.startswith("/"))
    return ":".join(entry for entry in entries if not reach.leads_through(entry))


def trusted_program(host: Host, name: str, reach: Reach) -> str:
    """The first program of that name that no agent can have put there; "" if there is none."""
    return next((path for path in find_all(host, name) if not reach.leads_through(path)), "")


def _not_installed(tree: Tree, *names: str) -> Problem:
    are = "are" if len(names) > 1 else "is"
    purposes = ", and ".join(f"{name} {PURPOSE[name]}" for name in names)
    return Problem(f"{' and '.join(names)} {are} not installed: {purposes}", install_command(tree, *names))


def another(name: str) -> str:
    """The hint that says how to use another program."""
    return f'name another one: CLAUDEBOX_{name.upper()}=PATH\n      or {name} = "PATH" in config.toml'


def called_pasta(path: str) -> str:
    """The path under which it acts as pasta: pasta and passt are one program, which looks at its own name."""
    directory, _, name = path.rpartition("/")
    return path if name.startswith("pasta") else f"{directory}/pasta"
