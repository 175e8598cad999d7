"""The table of files that the host runs or believes later, each with the reason why an agent may not change it.

A row is here if something on the host runs what the file says although nobody has asked for that file: a shell on `cd`,
an editor on opening, a debugger or a prompt of a language on its start, git on `status` or `commit`, an agent on start,
a CI service after a push. What runs only when the user builds, tests or deploys is the agent's work: `ordinary.py` has
it, and it is looked at when the box has ended.

Some are left out on purpose: `.gitattributes` and `.git/info` name filters but cannot define them; `.nvmrc`,
`.node-version` and `.python-version` hold a version and nothing else.
"""

from __future__ import annotations

from claudebox.features.guard import ordinary
from claudebox.features.guard.ordinary import Rows
from claudebox.host.tree import Tree
from claudebox.host.walk import SKIPPED, NameFilter
from claudebox.model import Guarded
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

GIT = "git"
SHELL = "shell"
EDITOR = "editor"
DEBUGGER = "debugger"
AGENT = "agents"
COMMIT = "commit"
CI = "CI"
UNSEEN = "unseen"  # what could not be looked at


class GuardRow(Record):
    """Why files of a name are guarded, anywhere in the project or only in the root of a repository."""

    group: str
    reason: str
    inner: str = ""  # which part of the directory; none means all of it
    in_roots: bool = False


# Group, reason and names. `name/part` means this part of a directory, `{a,b}` means both.
ANYWHERE: Rows = (
    (SHELL, "direnv runs it on cd", ".envrc .direnv"),
    (
        *(SHELL, "mise or asdf obeys it on cd"),
        (
            "{.,}mise{,.local,.development,.production,.test}.toml .miserc.toml .mise .rtx{,.local}.toml "
            ".tool-versions .config/{mise,mise.toml,mise.local.toml}"
        ),
    ),
    (SHELL, "a shell runs it on cd", ".autoenv .autoenv{,_leave}.zsh .env.leave .shadowenv.d .rvmrc .prototools"),
    (SHELL, "rbenv or pyenv sets its variables", ".{rbenv,pyenv,nodenv}-vars"),
    (SHELL, "cargo and rustc obey it, in editors and prompts", ".cargo/{config,config.toml} rust-toolchain{,.toml}"),
    (SHELL, "Python runs it at every start, if it finds it", "{site,user}customize.py"),
    (
        *(EDITOR, "an editor runs its tasks and tools"),
        (
            ".vscode .idea .zed .fleet .helix .nova .vs .lapce .theia .vim .nvim .kateproject{,.build,.local} "
            ".externalToolBuilders .codesandbox .idx .joyride .nlsp-settings .projections.json .vimspector.json "
            ".neoconf.json"
        ),
    ),
    (
        *(EDITOR, "an editor runs it on opening"),
        (
            "{.,_}exrc {.,_}vimrc {.,_}gvimrc .nvimrc .nvim.lua .lvimrc .local.vimrc .dir-locals{,-2}.el "
            ".emacs-dirvars .ycm_extra_conf.py .ropeproject/config.py .lsp/config.edn .merlin hie.yaml"
        ),
    ),
    (
        *(EDITOR, "an editor starts containers or workspaces by it"),
        ".devcontainer .devcontainer.json .gitpod.{yml,Dockerfile} {.,}devfile.yaml .replit replit.nix .stackblitzrc",
    ),
    (
        *(DEBUGGER, "a debugger runs it when it starts"),
        ".gdb{init,earlyinit} .lldbinit .pdbrc .rdbgrc{,.rb} .byebugrc .jdbrc jdb.ini .perldb .phpdbginit .valgrindrc",
    ),
    (
        *(DEBUGGER, "a prompt of a language runs it when it starts"),
        (
            ".Rprofile .Renviron .RData renv/activate.R .octaverc .gnuplot .pryrc {.,_,$}irbrc irb.rc .iex.exs "
            ".erlang .ghci"
        ),
    ),
    (SHELL, "a server for PHP obeys it", ".user.ini"),
    (AGENT, "an agent on this host starts its servers", ".mcp.json"),
    (AGENT, "Claude on this host runs its hooks, obeys its rules", ".claude/{settings.json,settings.local.json,hooks}"),
    (
        *(AGENT, "another agent runs its servers and hooks"),
        (
            ".cursor/{mcp.json,hooks.json,hooks,environment.json,cli.json} .windsurf/{hooks.json,hooks} "
            ".gemini/{settings.json,.env,extensions,hooks} .codex/{config.toml,hooks.json,hooks,rules} "
            ".kiro/{hooks,settings} .roo/mcp.json .amazonq/{mcp.json,cli-agents} .opencode opencode.json{,c} "
            ".aider.conf.yml .clinerules/hooks .continue/{config.json,config.yaml,config.ts,mcpServers} "
            ".continuerc.json .junie/mcp .qwen/settings.json {.,}crush.json .kilocode/mcp.json .trae/mcp.json "
            ".augment/settings.json .factory/{mcp.json,settings.json,hooks,droids} .amp/settings.json "
            ".openhands/{setup.sh,pre-commit.sh} .github/hooks .grok/settings.json .iflow/settings.json "
            ".codebuddy/settings.json .vibe/config.toml forge.yaml"
        ),
    ),
    (GIT, "Mercurial or Sapling runs its hooks", ".hg/{hgrc,hgrc-not-shared,sharedpath} .sl/{config,sharedpath}"),
    (GIT, "Jujutsu runs the programs that it names", ".jj/{repo/config.toml,workspace-config.toml}"),
    (GIT, "Darcs or Pijul runs its hooks", "_darcs/prefs .pijul/config"),
    (GIT, "the repo tool runs it at each command", ".repo/repo"),
)
IN_ROOTS: Rows = (
    (
        *(COMMIT, "git hooks run it on commit"),
        (
            ".husky .huskyrc{,.json,.js,.cjs,.yaml,.yml} husky.config.{js,cjs} .pre-commit-config.{yaml,yml} "
            "prek.toml .overcommit.yml .git-hooks .githooks "
            ".lintstagedrc{,.json,.yaml,.yml,.js,.cjs,.mjs,.ts,.mts,.cts} lint-staged.config.{js,cjs,mjs,ts,mts,cts} "
            "{.,}nano-staged.{json,js,cjs,mjs} .lefthook {.,}lefthook{,-local}.{yml,yaml,toml,json} "
            ".config/{lefthook.yml,lefthook.yaml,lefthook.toml,husky,hk.pkl} "
            ".commitlintrc{,.json,.yaml,.yml,.js,.cjs,.mjs,.ts,.mts,.cts} commitlint.config.{js,cjs,mjs,ts,mts,cts} "
            "{.,}simple-git-hooks.{js,cjs,mjs,json} .gitlint .rusty-hook.toml .cargo-husky hk.{pkl,toml,yaml,json} "
            "grumphp.{yml,yaml}{,.dist} captainhook{,.config}.json .trunk"
        ),
    ),
    (
        *(CI, "CI runs it with its secrets once it is pushed"),
        (
            ".github/{workflows,actions} .forgejo/{workflows,actions} .gitea/{workflows,actions} .gitlab-ci "
            ".gitlab-ci.{yml,yaml} .gitlab/{ci,agents} .circleci circle.yml .travis.{yml,yaml} .travis Jenkinsfile "
            ".jenkins azure-pipelines{,.yml,.yaml} .azure-pipelines .azuredevops .azure/pipelines .vsts-ci.yml "
            "bitbucket-pipelines.{yml,yaml} .buildkite buildkite.{yml,yaml} .drone.{yml,yaml,star,jsonnet} "
            ".woodpecker .woodpecker.{yml,yaml} .cirrus.{yml,yaml,star} {.,}appveyor.{yml,yaml} .semaphore .teamcity "
            ".tekton .concourse .builds .build.yml .ci .ci.{yml,yaml} {.,}packit.{yml,yaml} {.,}zuul.{yaml,d} "
            ".evergreen{,.yml} .prow{,.yaml} .taskcluster.yml .harness .spacelift {.,}atlantis.{yaml,yml} "
            ".onedev-buildspec.yml .space.kts .ci-operator.yaml {.,}wercker.yml {.,}codefresh{,.yml,.yaml} "
            "codeship-{services,steps}.yml {.,}shippable.yml buildspec.{yml,yaml} appspec.{yml,yaml} "
            "cloudbuild.{yaml,yml,json} bitrise.yml codemagic.yaml .tugboat {.,}readthedocs.{yml,yaml} "
            ".scrutinizer.yml .copr .obs screwdriver.yaml .vela{,.yml,.yaml} .bazelci .kokoro .pipelines .cds .agola"
        ),
    ),
    (
        *(CI, "a bot with rights in the repository obeys it"),
        (
            ".github/{dependabot.yml,dependabot.yaml,renovate.json,renovate.json5,settings.yml,mergify.yml} "
            ".gitlab/renovate.json {.,}renovate.json{,5} .renovaterc{,.json,.json5} .mergify.yml .mergify "
            ".kodiak.toml {.,}bors.toml .pullapprove.yml .asf.yaml .dependabot .policy.yml .bulldozer.yml"
        ),
    ),
    (CI, "it says who has to agree to a change", "CODEOWNERS .github/CODEOWNERS .gitlab/CODEOWNERS docs/CODEOWNERS"),
)
# Names that count by how they begin or end.
BEGINNINGS = (
    (".envrc.", GuardRow(SHELL, "direnv runs it, if .envrc names it")),
    ("Jenkinsfile.", GuardRow(CI, "CI runs it with its secrets once it is pushed")),
)
ENDS = (
    (".code-workspace", GuardRow(EDITOR, "an editor runs its tasks and tools")),
    (".sublime-project", GuardRow(EDITOR, "an editor runs its tasks and tools")),
    (".jenkinsfile", GuardRow(CI, "CI runs it with its secrets once it is pushed")),
)


def spelled_out(written: str) -> Iterator[str]:
    """The names that a row means, in order: `a{b,c}` stands for `ab` and `ac`, as in a shell."""
    for word in written.split():
        yield from _spelled(word) if "{" in word else (word,)


def _spelled(word: str) -> Iterator[str]:
    before, brace, rest = word.partition("{")
    if not brace:
        yield word
        return
    choices, _, after = rest.partition("}")
    for choice in choices.split(","):
        for end in _spelled(after):
            yield f"{before}{choice}{end}"


def _by_name(rows: Rows) -> dict[str, list[tuple[str, str, str]]]:
    """The group, the reason and a part for each name. Plain tuples: they are made at every start."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for group, reason, written in rows:
        for spelled in spelled_out(written):
            name, _, inner = spelled.partition("/")
            found.setdefault(name, []).append((group, reason, inner))
    return found


_ANYWHERE, _IN_ROOTS, _ORDINARY = _by_name(ANYWHERE), _by_name(IN_ROOTS), _by_name(ordinary.ROWS)
DOT_GIT = ".git"
SHARED = ".config"  # a directory for many tools
HEAD = "HEAD"  # a directory with it may be a repository without a checkout

WANTED = NameFilter(
    frozenset((*_ANYWHERE, *_IN_ROOTS, *_ORDINARY, DOT_GIT, HEAD)),
    tuple(beginning for beginning, _ in (*BEGINNINGS, *ordinary.BEGINNINGS)),
    tuple(end for end, _ in (*ENDS, *ordinary.ENDS)),
    links=True,
)


_BEGIN, _END = tuple(text for text, _ in BEGINNINGS), tuple(text for text, _ in ENDS)


def rows_of(name: str) -> list[GuardRow]:
    """Why what has this name is held, or parts of it."""
    if name not in _ANYWHERE and name not in _IN_ROOTS and not name.startswith(_BEGIN) and not name.endswith(_END):
        return []  # nearly every name: a layer may have 100,000 of them
    return [
        *(GuardRow(*row) for row in _ANYWHERE.get(name, ())),
        *(GuardRow(*row, in_roots=True) for row in _IN_ROOTS.get(name, ())),
        *(row for text, row in BEGINNINGS if name.startswith(text)),
        *(row for text, row in ENDS if name.endswith(text)),
    ]


def ordinary_rows_of(name: str) -> list[GuardRow]:
    """Why what has this name is looked at when the box has ended, or parts of it."""
    reason = ordinary.reason_of(name) if name not in _ORDINARY else ""
    return [
        *(GuardRow(*row) for row in _ORDINARY.get(name, ())),
        *([GuardRow(ordinary.BUILD, reason)] if reason else ()),
    ]


def find_tools(tree: Tree, roots: Iterable[str]) -> tuple[Guarded, ...]:
    """What begins with a dot in the root of the project and is in no table: some tool may obey it."""
    found: list[str] = []
    for root in roots:
        found += [f"{root}/{name}" for name in tree.entries(root) if _is_of_unknown_tool(name)]
        found += [f"{root}/{SHARED}/{name}" for name in tree.entries(f"{root}/{SHARED}")]
    return tuple(Guarded(path, ordinary.TOOLS, ordinary.TOOL) for path in found)


def _is_of_unknown_tool(name: str) -> bool:
    return ordinary.is_tools(name) and name not in SKIPPED and not (rows_of(name) or ordinary_rows_of(name))
