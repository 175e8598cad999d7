"""The one table of what this host runs unasked, and the one judgement of a path by its name.

A row is *held*: the box cannot change it except by landing. Something on the host runs what such a file says while the
box still runs, and asks nobody first: git, a shell on `cd`, an editor on opening, a hook on commit, an agent on its
start, CI after a push. Tools that nobody knows here are found by the *dot rule*: what begins with a dot is some tool's
business, and is named when the box has ended, unless it is known to be harmless. It holds nothing, since people ask
agents to write such files. What the user starts by name (`Makefile`, `package.json`) is the agent's work.
"""

from __future__ import annotations

from claudebox.host.walk import SKIPPED, NameFilter
from claudebox.paths import is_inside
from claudebox.record import Record
from claudebox.settings import PROJECT_FILE

GIT, SHELL, EDITOR, AGENT, COMMIT, CI = "git", "shell", "editor", "agents", "commit", "CI"
UNSEEN, TOOLS = "unseen", "tools"  # what could not be looked at; what is named and not held
BY_NAME = (SHELL, EDITOR, AGENT, COMMIT, CI, TOOLS)  # files of these are judged by their names
IN_ROOTS = (COMMIT, CI)  # mounts hold these only in the root of a repository: elsewhere they are somebody's example
DOT_GIT, HEAD = ".git", "HEAD"
OBEYED, OWN, TOOL = "git obeys it", "claudebox obeys it in the next box", "some tool may obey it"

# Group, reason and names, in any case. `name/part` is that part of a directory; `*` is whatever begins or ends so.
ROWS: tuple[tuple[str, ...], ...] = (
    (SHELL, "direnv runs it on cd", ".envrc* .direnv"),
    (SHELL, "mise or devbox obeys it on cd", ".mise* mise.* .config/mise .config/mise.toml .tool-versions devbox.json"),
    (SHELL, "cargo and rustc obey it, in editors and prompts", ".cargo rust-toolchain rust-toolchain.toml"),
    (
        *(EDITOR, "an editor runs it, or what it names"),
        ".vscode .idea .zed .fleet .helix *.code-workspace *.sublime-project .devcontainer* .gitpod* devfile.yaml",
        ".vim .nvim* .exrc _exrc .vimrc _vimrc .lvimrc .dir-locals* .ycm_extra_conf.py .kateproject* hie.yaml",
    ),
    (
        *(EDITOR, "a debugger or an interpreter runs it when it starts"),
        ".gdbinit .lldbinit .pdbrc .Rprofile .Renviron .RData activate.R .pryrc .irbrc .iex.exs .ghci",
        "sitecustomize.py usercustomize.py",
    ),
    (AGENT, "an agent on this host starts its servers", ".mcp.json opencode.json* .crush.json crush.json forge.yaml"),
    (
        *(GIT, "another version control system obeys it"),
        ".hg/hgrc .hg/hgrc-not-shared .hg/sharedpath .sl/config .sl/hgrc .sl/sharedpath .pijul/config _darcs/prefs",
        ".jj/repo/config.toml .jj/repo/config-id .jj/workspace-config.toml .bzr/branch/branch.conf .repo/repo",
    ),
    (
        *(COMMIT, "git hooks run it on commit"),
        ".husky* husky.config.* .pre-commit-config.* prek.toml .overcommit* .git-hooks .githooks .lintstagedrc*",
        "lint-staged.config.* nano-staged.* .lefthook* lefthook.* lefthook-local.* .config/lefthook.yml .config/husky",
        "hk.pkl .commitlintrc* commitlint.config.* .simple-git-hooks* simple-git-hooks.* .gitlint captainhook.* .trunk",
    ),
    (
        *(CI, "CI runs it with its secrets once it is pushed"),
        ".gitlab-ci* .circleci circle.yml .travis* Jenkinsfile* *.jenkinsfile .jenkins azure-pipelines*",
        ".azure-pipelines .azuredevops bitbucket-pipelines.* .buildkite buildkite.* .drone.* .woodpecker* .cirrus.*",
        "appveyor.* .appveyor.* .semaphore .teamcity .tekton .concourse .builds .build.yml .ci .ci.* .packit* packit.*",
        ".zuul* zuul.* .prow* .taskcluster.yml atlantis.y* buildspec.y* appspec.y* cloudbuild.* bitrise.yml",
    ),
    (CI, "the forge or a bot obeys it", "CODEOWNERS renovate.json* .renovaterc* .mergify* .kodiak.toml bors.toml"),
)
NAMED = frozenset("flake.nix flake.lock shell.nix default.nix devenv.nix devenv.yaml".split())  # and not held

# Directories of one tool each. Only prose in them is nobody's business: texts and images that lie directly there or in
# a directory of PROSE_IN. Skills, commands and descriptions of agents are no prose: their heads may name hooks.
FORGES = frozenset(".github .forgejo .gitea .gitlab .azure".split())
AGENTS = frozenset(
    ".claude .cursor .windsurf .gemini .codex .kiro .roo .amazonq .clinerules .continue .junie .qwen .kilocode .trae "
    ".augment .factory .amp .openhands .grok .iflow .codebuddy .vibe .opencode .crush .agents .agent .goose".split()
)
# Held as a whole, where layers can hold them. Not `docs` or `.config`, where people and many tools work, and not the
# directories of other version control systems: their commits would stay in the layer.
WHOLE = FORGES | AGENTS
# As a wall, what begins so in one of them is held: an agent may well be asked for a template of issues, or a skill.
WALLED = (
    *("settings", "config", "hook", "mcp", "cli", "environment", "extension", ".env", "workflows", "actions", "ci"),
    *("codeowners", "dependabot", "renovate", "mergify", "duo", "copilot.", "lsp", "policies"),
)
PROSE = (".md", ".mdc", ".txt", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp")
PROSE_IN = ("rules", "docs", "steering", "instructions", "issue_template", "pull_request_template")
CLAUDES, WORKTREES = ".claude", "worktrees"  # `claude --worktree` makes worktrees there: each is judged like a project

# Dot names that are nobody's business, with all that is below: what tools make again, and data that cannot name a
# program. So no settings of a linter that may name a plugin; but `.gitattributes`, which only chooses among filters.
HARMLESS = frozenset(
    ".gitattributes .gitmodules .mailmap .git-blame-ignore-revs .editorconfig .nvmrc .browserslistrc .clang-format "
    ".rustfmt.toml .yamllint .markdownlint.json .hadolint.yaml .nojekyll .all-contributorsrc .codecov.yml .hg .svn .sl "
    ".jj .pijul .bzr .ds_store .directory .coverage .nyc_output .hypothesis .ipynb_checkpoints .eggs .angular .astro "
    ".docusaurus .expo .output .serverless .vite .swc .metals .kotlin .build .vagrant .rhistory .python_history "
    ".tsbuildinfo .terraform.lock.hcl .flutter-plugins .flutter-plugins-dependencies".split()
)
HARMLESS_ENDS = ("ignore", "-version", "cache", "keep", ".example", ".sample", ".template", ".swp", ".lock", ".log")
HARMLESS_BEGINNINGS = (".#", ".nfs", ".coverage.")
FILLED = SKIPPED - {DOT_GIT, ".hg", ".svn", ".jj", ".direnv"}  # by tools: nothing but a repository counts there


class Reason(Record):
    text: str
    is_grave: bool = False  # something runs it unasked


class GuardRow(Record):
    group: str
    reason: str
    inner: str = ""  # which part of the directory; none means all of it
    is_tools: bool = False  # the directory of an agent or a forge: all of it but prose

    def holds(self, rest: list[str]) -> bool:
        """Whether the row means what lies here below its name, or something in that."""
        if self.is_tools and rest:
            return not (rest[-1].lower().endswith(PROSE) and (len(rest) == 1 or rest[0].lower() in PROSE_IN))
        path, inner = "/".join(rest), self.inner
        return not inner or not path or is_inside(path, inner) or is_inside(inner, path)


_ROWS = {name: [GuardRow(CI, "CI or a bot of the forge obeys it", is_tools=True)] for name in FORGES}
_ROWS |= {name: [GuardRow(AGENT, "an agent on this host may run it unasked", is_tools=True)] for name in AGENTS}
for _group, _reason, *_lines in ROWS:
    for _name, _, _inner in (word.partition("/") for line in _lines for word in line.lower().split()):
        _ROWS.setdefault(_name, []).append(GuardRow(_group, _reason, _inner, False))
_BEGINNINGS = tuple(name[:-1] for name in _ROWS if name.endswith("*"))
_ENDS = tuple(name[1:] for name in _ROWS if name.startswith("*"))
_NAMES = NAMED | {HEAD, *(name for name in _ROWS if "*" not in name)}
WANTED = NameFilter(_NAMES, tuple(one for one in _BEGINNINGS if one[0] != "."), _ENDS)


def held_names(name: str) -> list[str]:
    """The names of the table that this is one of. Nearly every one is of none, and a layer may have 100,000."""
    lower = name.lower()
    if not (lower in _ROWS or lower.startswith(_BEGINNINGS) or lower.endswith(_ENDS)):
        return []
    starred = [f"{one}*" for one in _BEGINNINGS if lower.startswith(one)]
    starred += [f"*{one}" for one in _ENDS if lower.endswith(one)]
    return [key for key in (lower, *starred) if key in _ROWS]


def held_rows(name: str) -> list[GuardRow]:
    """Why what has this name is held, or parts of it."""
    return [row for key in held_names(name) for row in _ROWS[key]]


def why(path: str) -> Reason | None:
    """Why this host may run or obey what is at a path of the project; None if nothing is known against it."""
    parts = path.split("/")
    dot = ""  # the first dot name but an agent's or a forge's
    for number, name in enumerate(parts):
        rows = held_rows(name)
        if not rows and name[:1] != "." and name not in FILLED:
            continue
        rest = parts[number + 1 :]
        if name.lower() == DOT_GIT or (name in FILLED and DOT_GIT in rest):
            return Reason(OBEYED, is_grave=True)
        if name in FILLED:
            if parts[:number][-2:] == [CLAUDES, WORKTREES]:
                continue
            break
        if name == CLAUDES and rest[:1] == [WORKTREES]:
            continue
        if name == PROJECT_FILE or any(row.holds(rest) for row in rows):
            return Reason(next((row.reason for row in rows if row.holds(rest)), OWN), is_grave=True)
        dot = dot or (name if name[:1] == "." and not (rows and rows[0].is_tools) else "")
    if parts[-1] in NAMED and name not in FILLED:
        return Reason("direnv evaluates it on cd, if .envrc says so")
    return Reason(TOOL) if dot and not is_harmless(dot) else None


def is_harmless(name: str) -> bool:
    """Whether a dot name is nobody's business."""
    lower = name.lower() if name[:1] == "." else ""
    return lower in HARMLESS or lower.endswith(HARMLESS_ENDS) or lower.startswith(HARMLESS_BEGINNINGS)
