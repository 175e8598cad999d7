"""Which program runs in the box."""

from __future__ import annotations

import posixpath

from claudebox.features.system.decide import (
    NIX_STORE,
    System,
)
from claudebox.host.claude import (
    ClaudeInstall,
    inspect,
    manager_behind,
)
from claudebox.host.programs import (
    find,
    find_unusable,
)
from claudebox.host.tree import Tree
from claudebox.model import (
    RO,
    SYMLINK,
    Mount,
    Origin,
    Program,
    SecretPlace,
)
from claudebox.paths import is_inside
from claudebox.places import refuse_readable
from claudebox.problem import (
    CANNOT_EXECUTE,
    NOT_FOUND,
    Problem,
)
from claudebox.quoting import quote
from claudebox.reach import Reach
from claudebox.settings.values import Named
from claudebox.tools import is_typed

LOCAL_INSTALL = "/.claude/local/node_modules/@anthropic-ai"  # of an old installer: in a secret place, but no secret
SKIP_PERMISSIONS = "--dangerously-skip-permissions"
INSTALL_CLAUDE = """\
npm install -g @anthropic-ai/claude-code
      or name it: --claude PATH
      or do without it: --run CMD, after all other options"""


def choose_claude(tree: Tree, named: Named | None, search_path: str, cwd: str, reach: Reach) -> ClaudeInstall:
    if named is not None:
        path = posixpath.normpath(posixpath.join(cwd, named.path))
        if not tree.exists(path):
            raise Problem(f"{named.origin.shown}: {path} does not exist", status=NOT_FOUND)
        if not tree.is_executable(path):
            raise Problem(f"{named.origin.shown}: {path} cannot be executed", f"chmod +x {quote(path)}", CANNOT_EXECUTE)
    else:
        found = find(tree, "claude", search_path, cwd)
        if found is None and (unusable := find_unusable(tree, "claude", search_path, cwd)):
            raise Problem(f"{unusable} cannot be executed", f"chmod +x {quote(unusable)}", CANNOT_EXECUTE)
        if found is None:
            raise Problem("claude is not installed", INSTALL_CLAUDE, NOT_FOUND)
        path = found
    install = inspect(tree, path, search_path, cwd)
    parts = (path, install.real, install.way_to_interpreter)
    if not is_typed(named) and (writable := next(filter(reach.leads_through, filter(None, parts)), "")):
        raise Problem(
            f"claude would come from where an agent can write: {writable}",
            f"if you mean it, although the agent can change that file:\n      --claude {quote(path)}",
        )
    if manager := manager_behind(tree, install.real):
        raise Problem(f"{path} is a shim of {manager}, not claude", f'--claude "$({manager} which claude)"')
    if install.missing:
        raise Problem(
            f"{install.path} needs `{install.missing}`, which was not found",
            "install it, or put it on PATH",
            CANNOT_EXECUTE,
        )
    return install


def check_claude_files(install: ClaudeInstall, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> None:
    """Raise if what claude says that it needs, in its `#!` line for one, is not to be shown."""
    for file in install.files:
        refusal = refuse_readable(file, homes, places)
        if refusal is not None and not file.endswith(LOCAL_INSTALL):
            raise Problem(f"{install.path} would need {file}: {refusal.reason}", "name another one: --claude PATH")


def claude_program(install: ClaudeInstall, words: tuple[Named, ...], home: str) -> Program:
    origin = Origin.of_rule("claude", install.kind)
    return Program("claude", (claude_path(home), SKIP_PERMISSIONS, *(word.path for word in words)), origin)


def claude_path(home: str) -> str:
    """Where claude is in the box, however it is installed on the host."""
    return f"{home}/.local/bin/claude"


def claude_mounts(install: ClaudeInstall, home: str, project: str) -> list[Mount]:
    """The files of claude at their own places, and `claude` where its installer would put it."""
    origin = Origin.of_rule("claude", install.kind)
    mounts = [
        Mount(RO, file, origin, source=file)
        for file in install.files
        if file != NIX_STORE and not is_inside(file, project)
    ]
    links = {claude_path(home): install.real}
    if install.interpreter in install.files:
        links[f"{home}/.local/bin/{posixpath.basename(install.interpreter)}"] = install.interpreter
    return mounts + [Mount(SYMLINK, path, origin, source=real) for path, real in links.items() if path != real]


def shell_program(system: System) -> Program:
    return Program("shell", (system.shell,), Origin.of_option("--shell"))


def run_program(command: tuple[str, ...]) -> Program:
    return Program("command", command, Origin.of_option("--run"))


def signal_shim(tree: Tree, python: str) -> tuple[str, ...]:
    """What gives Ctrl-C back to the program.

    bwrap would die of the first Ctrl-C, and take with it a program that wants to finish. So bwrap is started with
    SIGINT and SIGQUIT ignored, which the program inherits unless something in between undoes it.
    """
    env = tree.resolve("/usr/bin/env")
    if env is not None and _resets_signals(tree, env):
        return ("/usr/bin/env", "--default-signal=INT,QUIT")
    code = "import os,signal,sys;[signal.signal(s,signal.SIG_DFL) for s in(2,3)];os.execvp(sys.argv[1],sys.argv[1:])"
    if is_inside(python, "/usr") or is_inside(python, NIX_STORE):
        return (python, "-I", "-S", "-c", code)
    raise Problem("neither GNU env nor a system Python was found for the box", "install GNU coreutils or python3")


def _resets_signals(tree: Tree, env: str) -> bool:
    """Whether this `env` has --default-signal: GNU since 8.31, uutils since 0.6, busybox never."""
    if posixpath.basename(env) == "busybox":
        return False
    return not ("/cargo/" in env and 'VERSION_ID="25.10"' in (tree.text("/etc/os-release") or ""))
