"""What the host runs or believes later: names of files, each with the reason why an agent may not change them.

A row is here if something on the host runs what the file says without being asked by that name: a shell on `cd`, an
editor on opening, git on `status` or `commit`, an agent on start, a CI service after a push. What runs only when the
user builds or tests (Makefiles, package.json) is the agent's work, and is looked at when the box has ended.

Left out on purpose: `.gitattributes` and `.git/info` name filters but cannot define them; `.nvmrc`, `.node-version` and
`.python-version` hold a version and nothing else; CLAUDE.md, and Claude's commands, agents and skills are what people
ask an agent to write (they are looked at afterwards).
"""

from __future__ import annotations

from claudebox.host.project import Wanted
from claudebox.record import Record

GIT = "git"
SHELL = "shell"
EDITOR = "editor"
AGENT = "agents"
COMMIT = "commit"
CI = "CI"
UNSEEN = "unseen"  # what could not be looked at


class Row(Record):
    """One name, anywhere in the project unless it counts in the root of a repository alone."""

    name: str
    group: str
    reason: str
    inner: tuple[str, ...] = ()  # which parts of the directory; none means all of it
    in_roots: bool = False


def _rows(group: str, reason: str, *names: str, in_roots: bool = False) -> tuple[Row, ...]:
    return tuple(
        Row(name, group, reason, tuple(filter(None, inner.split(" "))), in_roots)
        for name, _, inner in (name.partition(": ") for name in names)
    )


ROWS = (
    *_rows(SHELL, "direnv runs it on cd", ".envrc", ".direnv"),
    *_rows(
        *(SHELL, "mise or asdf obeys it on cd"),
        *(".mise.toml", "mise.toml", ".mise.local.toml", "mise.local.toml", ".mise", ".rtx.toml", ".tool-versions"),
        ".config: mise mise.toml",
    ),
    *_rows(EDITOR, "an editor runs its tasks and tools", ".vscode", ".idea", ".zed", ".fleet", ".helix"),
    *_rows(EDITOR, "an editor runs it on opening", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el"),
    *_rows(EDITOR, "an editor starts containers by it, with mounts", ".devcontainer", ".devcontainer.json"),
    *_rows(AGENT, "an agent on this host starts its servers", ".mcp.json"),
    *_rows(
        *(AGENT, "Claude on this host runs its hooks, obeys its rules"),
        ".claude: settings.json settings.local.json hooks",
    ),
    *_rows(
        *(AGENT, "another agent runs its servers and hooks"),
        *(
            ".cursor: mcp.json hooks.json hooks",
            ".gemini: settings.json",
            ".codex: config.toml",
            ".kiro: hooks settings",
        ),
    ),
    *_rows(
        *(COMMIT, "git hooks run it on commit"),
        *(".husky", ".pre-commit-config.yaml", ".pre-commit-config.yml", ".overcommit.yml", ".lintstagedrc"),
        *(".lintstagedrc.json", ".lefthook", "lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json"),
        *(".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", "lefthook-local.yml", ".lefthook-local.yml"),
        in_roots=True,
    ),
    *_rows(
        *(CI, "CI runs it with its secrets once it is pushed"),
        *(".github: workflows actions", ".forgejo: workflows", ".gitea: workflows", ".gitlab-ci.yml", ".gitlab: ci"),
        *(".circleci", ".travis.yml", "Jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".buildkite"),
        *(".drone.yml", ".woodpecker", ".woodpecker.yml", ".woodpecker.yaml", ".cirrus.yml"),
        in_roots=True,
    ),
    *_rows(GIT, "Mercurial runs its hooks", ".hg: hgrc"),
    *_rows(GIT, "Jujutsu runs the programs that it names", ".jj: repo/config.toml"),
)
# What runs when the user builds, tests or asks for it: the agent's to write, and named when the box has ended.
BUILD = "run when you build or test"
USE = "run when you use them"
ORDINARY = (
    *_rows(BUILD, "make runs it", "Makefile", "makefile", "GNUmakefile"),
    *_rows(
        BUILD, "a task runner runs it", "justfile", "Justfile", ".justfile", "Taskfile.yml", "Taskfile.yaml", "Rakefile"
    ),
    *_rows(BUILD, "package managers run its scripts", "package.json"),
    *_rows(
        BUILD, "package managers obey it", ".npmrc", ".yarnrc.yml", ".yarnrc", ".pnpmfile.cjs", ".cargo: config.toml"
    ),
    *_rows(BUILD, "installing runs it", "setup.py", "pyproject.toml", "build.rs"),
    *_rows(USE, "Claude on this host obeys it", ".claude: commands agents skills output-styles"),
)
# By how a name begins or ends.
PREFIXES = {".envrc.": Row(".envrc.*", SHELL, "direnv runs it, if .envrc names it")}
SUFFIXES = {".code-workspace": Row("*.code-workspace", EDITOR, "an editor runs its tasks and tools")}

BY_NAME: dict[str, Row] = {row.name: row for row in ROWS}
ORDINARY_BY_NAME: dict[str, Row] = {row.name: row for row in ORDINARY}
DOT_GIT = ".git"
HEAD = "HEAD"  # a directory with it may be a repository without a checkout

WANTED = Wanted(frozenset((*BY_NAME, *ORDINARY_BY_NAME, DOT_GIT, HEAD)), tuple(PREFIXES), tuple(SUFFIXES), links=True)


def row_of(name: str) -> Row | None:
    """The row of a name, if there is one."""
    found = BY_NAME.get(name)
    if found is None and name.startswith(tuple(PREFIXES)):
        found = next(row for prefix, row in PREFIXES.items() if name.startswith(prefix))
    if found is None and name.endswith(tuple(SUFFIXES)):
        found = next(row for suffix, row in SUFFIXES.items() if name.endswith(suffix))
    return found
