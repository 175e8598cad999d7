"""The table of files that the host runs or believes later, each with the reason why an agent may not change it.

A row is here if something on the host runs what the file says although nobody has asked for that file: a shell on `cd`,
an editor on opening, git on `status` or `commit`, an agent on start, a CI service after a push. What runs only when the
user builds or tests (Makefiles, package.json) is the agent's work, and is looked at when the box has ended.

Some are left out on purpose: `.gitattributes` and `.git/info` name filters but cannot define them; `.nvmrc`,
`.node-version` and `.python-version` hold a version and nothing else; CLAUDE.md and Claude's commands, agents and
skills are what people ask an agent to write (they are looked at afterwards).
"""

from __future__ import annotations

from claudebox.host.walk import NameFilter
from claudebox.record import Record

GIT = "git"
SHELL = "shell"
EDITOR = "editor"
AGENT = "agents"
COMMIT = "commit"
CI = "CI"
UNSEEN = "unseen"  # what could not be looked at


class GuardRow(Record):
    """Why files of a name are guarded, anywhere in the project or only in the root of a repository."""

    group: str
    reason: str
    inner: tuple[str, ...] = ()  # which parts of the directory; none means all of it
    in_roots: bool = False


# Group, reason and names. `name: a b` means these parts of a directory. Plain tuples: they are read at every start.
ANYWHERE = (
    (SHELL, "direnv runs it on cd", (".envrc", ".direnv")),
    (
        *(SHELL, "mise or asdf obeys it on cd"),
        (
            *(".mise.toml", "mise.toml", ".mise.local.toml", "mise.local.toml", ".mise", ".rtx.toml", ".tool-versions"),
            ".config: mise mise.toml",
        ),
    ),
    (EDITOR, "an editor runs its tasks and tools", (".vscode", ".idea", ".zed", ".fleet", ".helix")),
    (EDITOR, "an editor runs it on opening", (".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el")),
    (EDITOR, "an editor starts containers by it, with mounts", (".devcontainer", ".devcontainer.json")),
    (AGENT, "an agent on this host starts its servers", (".mcp.json",)),
    (
        *(AGENT, "Claude on this host runs its hooks, obeys its rules"),
        (".claude: settings.json settings.local.json hooks",),
    ),
    (
        *(AGENT, "another agent runs its servers and hooks"),
        (
            ".cursor: mcp.json hooks.json hooks",
            ".gemini: settings.json",
            ".codex: config.toml",
            ".kiro: hooks settings",
            ".roo: mcp.json",
            ".amazonq: mcp.json",
            *(".opencode", "opencode.json", ".aider.conf.yml"),
        ),
    ),
    (EDITOR, "R runs it when it starts", (".Rprofile",)),
    (GIT, "Mercurial runs its hooks", (".hg: hgrc",)),
    (GIT, "Jujutsu runs the programs that it names", (".jj: repo/config.toml",)),
)
IN_ROOTS = (
    (
        *(COMMIT, "git hooks run it on commit"),
        (
            *(".husky", ".pre-commit-config.yaml", ".pre-commit-config.yml", ".overcommit.yml", ".lintstagedrc"),
            *(".lintstagedrc.json", ".lefthook", "lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json"),
            *(".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", "lefthook-local.yml", ".lefthook-local.yml"),
        ),
    ),
    (
        *(CI, "CI runs it with its secrets once it is pushed"),
        (
            *(".github: workflows actions", ".forgejo: workflows", ".gitea: workflows"),
            *(".gitlab-ci.yml", ".gitlab: ci", ".circleci", ".travis.yml", "Jenkinsfile", "azure-pipelines.yml"),
            *("bitbucket-pipelines.yml", ".buildkite", ".drone.yml", ".woodpecker", ".woodpecker.yml"),
            *(".woodpecker.yaml", ".cirrus.yml"),
        ),
    ),
)
# These run when the user builds, tests or asks for it: the agent may write them, and they are named afterwards.
BUILD = "run when you build or test"
USE = "run when you use them"
ORDINARY = (
    (BUILD, "make runs it", ("Makefile", "makefile", "GNUmakefile")),
    (
        *(BUILD, "a task runner runs it"),
        ("justfile", "Justfile", ".justfile", "Taskfile.yml", "Taskfile.yaml", "Rakefile"),
    ),
    (BUILD, "package managers run its scripts", ("package.json",)),
    (
        *(BUILD, "package managers obey it"),
        (".npmrc", ".yarnrc.yml", ".yarnrc", ".pnpmfile.cjs", ".cargo: config config.toml"),
    ),
    (BUILD, "installing runs it", ("setup.py", "pyproject.toml", "build.rs")),
    (USE, "Claude on this host obeys it", (".claude: commands agents skills output-styles",)),
)
# Names that count by how they begin or end.
BEGINNING, BEGINS = ".envrc.", GuardRow(SHELL, "direnv runs it, if .envrc names it")
END, ENDS = ".code-workspace", GuardRow(EDITOR, "an editor runs its tasks and tools")


def _by_name(table: tuple[tuple[str, str, tuple[str, ...]], ...]) -> dict[str, tuple[str, str, str]]:
    """The group, the reason and the inner parts of each name."""
    return {
        name: (group, reason, inner)
        for group, reason, names in table
        for name, _, inner in (written.partition(": ") for written in names)
    }


_ANYWHERE, _IN_ROOTS, _ORDINARY = _by_name(ANYWHERE), _by_name(IN_ROOTS), _by_name(ORDINARY)
DOT_GIT = ".git"
HEAD = "HEAD"  # a directory with it may be a repository without a checkout

WANTED = NameFilter(frozenset((*_ANYWHERE, *_IN_ROOTS, *_ORDINARY, DOT_GIT, HEAD)), (BEGINNING,), (END,), links=True)


def row_of(name: str) -> GuardRow | None:
    found = _ANYWHERE.get(name) or _IN_ROOTS.get(name)
    if found is not None:
        return _row(*found, in_roots=name in _IN_ROOTS)
    if name.startswith(BEGINNING):
        return BEGINS
    return ENDS if name.endswith(END) else None


def ordinary_row_of(name: str) -> GuardRow | None:
    found = _ORDINARY.get(name)
    return _row(*found) if found is not None else None


def _row(group: str, reason: str, inner: str, *, in_roots: bool = False) -> GuardRow:
    return GuardRow(group, reason, tuple(inner.split()), in_roots)
