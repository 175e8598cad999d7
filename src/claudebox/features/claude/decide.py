"""Claude in the box: its program, its home, and what it is told."""

from __future__ import annotations

import posixpath

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.features.claude.home import MANAGED, home_mounts, home_variables, managed_mounts
from claudebox.host.claude import (
    ClaudeInstall,
)
from claudebox.host.system import NIX_STORE
from claudebox.model import (
    RO,
    SYMLINK,
    Directory,
    Mount,
    Origin,
    Program,
)
from claudebox.paths import is_inside

SKIP_PERMISSIONS = "--dangerously-skip-permissions"


def claude_program(install: ClaudeInstall, arguments: tuple[str, ...], home: str) -> Program:
    origin = Origin("claude", install.kind)
    return Program("claude", (claude_path(home), SKIP_PERMISSIONS, *arguments), origin)


def claude_path(home: str) -> str:
    """Where claude is in the box, however it is installed on the host."""
    return f"{home}/.local/bin/claude"


def claude_mounts(install: ClaudeInstall, home: str, project: str) -> list[Mount]:
    """The files of claude at their own places, and `claude` where its installer would put it."""
    origin = Origin("claude", install.kind)
    mounts = [
        Mount(RO, file, origin, source=file)
        for file in install.files
        if file != NIX_STORE and not is_inside(file, project)
    ]
    links = {claude_path(home): install.real}
    if install.interpreter in install.files:
        links[f"{home}/.local/bin/{posixpath.basename(install.interpreter)}"] = install.interpreter
    return mounts + [Mount(SYMLINK, path, origin, source=real) for path, real in links.items() if path != real]


def decide(facts: Facts, _: Draft) -> Contribution:
    install, claude = facts.install, facts.claude
    assert install is not None
    words = (*(word.path for word in facts.settings.claude_args), *facts.request.claude)
    program = claude_program(install, words, facts.home)
    return Contribution(
        mounts=(
            *claude_mounts(install, facts.home, facts.project),
            *home_mounts(claude, facts.trusted),
            *managed_mounts(facts.tree, claude),
        ),
        variables=tuple(home_variables(claude)),
        path=(Directory(posixpath.dirname(claude_path(facts.home)), Directory.CLAUDE),),
        decided=(
            *([("program", program)] if facts.runs_claude else []),
            ("policy", facts.tree.text(f"{MANAGED}/CLAUDE.md") or ""),
        ),
    )
