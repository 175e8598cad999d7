"""Finds hooks whose program is not in the box: each commit there would fail with "not found".

Only forms that are known are read: the first line of a hook, the hook that pre-commit writes, and those of husky.
"""

from __future__ import annotations

import posixpath

from claudebox.errors import quote
from claudebox.facts import Contribution, Draft, Facts
from claudebox.host.git import parse_config
from claudebox.host.secrets import contained_secret, refuse_readable
from claudebox.model import FROM_HOST, HIDE, RO, SYMLINK, Finding, Mount, Origin
from claudebox.mounts import arrange, find_holder
from claudebox.paths import expand_home, is_inside, move, normalize
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Those that run when an agent commits, in the order of git.
HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit", "pre-push")
ENV = "/usr/bin/env"
PRE_COMMIT = "INSTALL_PYTHON="  # in the hook that pre-commit has written
LONGEST = 200
OF_NODE = ("npx", "npm", "pnpm", "yarn", "bun", "node")
SHOWN = Origin.of_rule("git", "pre-commit, which the hooks run")
# What is in a virtual environment. Whoever made one of a whole project has other files there, too.
OF_VENV = frozenset("bin etc include lib lib64 man pyvenv.cfg share .gitignore .lock CACHEDIR.TAG".split())
TOKENS = ("pip.conf", "pipx_metadata.json", "uv-receipt.toml")  # they may hold one, for a registry
HIDDEN = Origin.of_rule("secret", "may hold tokens")
TOLD = (
    "The hook `{hook}` needs `{program}`, which is not in the box, so `git commit` fails. Run its checks by hand where "
    "you can, commit with `--no-verify`, and tell the user that you did."
)


class Needed(Record):
    """A program that a hook runs: a path, or a name that is looked up."""

    hook: str
    program: str


def decide(facts: Facts, draft: Draft) -> Contribution:
    mounts = list(arrange(draft.mounts, draft.hides))
    box = _Box(facts, mounts, draft.search_path)
    missing = [one for one in find_needed(facts) if not box.has(one.program)]
    shown = {one: root for one in missing if (root := environment_of(facts, box, one.program))}
    missing = [one for one in missing if one not in shown]
    roots = tuple(dict.fromkeys(shown.values()))
    tokens = [f"{root}/{name}" for root in roots for name in facts.tree.entries(root) if name in TOKENS]
    return Contribution(
        mounts=tuple(Mount(RO, root, SHOWN, source=root) for root in roots),
        hides=tuple(Mount(HIDE, path, HIDDEN, is_dir=facts.tree.is_dir(path)) for path in tokens),
        findings=tuple(_finding(one) for one in missing),
        told=tuple(TOLD.format(hook=one.hook, program=one.program.replace("`", "")) for one in missing),
    )


def _finding(one: Needed) -> Finding:
    place = posixpath.dirname(posixpath.dirname(one.program))
    remedy = f"show it with --mount-ro {quote(place)}" if place else "show the directory that has it with --mount-ro"
    text = f"the hook {one.hook} needs {one.program}, which is not in the box: commits fail there; {remedy}"
    return Finding(Finding.NOTE, "git", text)


def find_needed(facts: Facts) -> list[Needed]:
    tree, directory = facts.tree, hooks_directory(facts)
    found: list[Needed] = []
    for hook in HOOKS:
        path = f"{directory}/{hook}"
        if not tree.is_executable(path):
            continue
        text = tree.text(path) or ""
        found += [Needed(hook, program) for program in _programs(text)]
        if posixpath.basename(posixpath.dirname(directory)) == ".husky":
            script = tree.text(f"{posixpath.dirname(directory)}/{hook}") or ""
            first = [line.split()[0] for line in script.splitlines() if line.strip() and not line.startswith("#")]
            found += [Needed(hook, word) for word in first if word in OF_NODE]
    # What the repository says is shown, and told to the agent: a name, not a text.
    return [one for one in dict.fromkeys(found) if one.program.isprintable() and len(one.program) <= LONGEST]


def hooks_directory(facts: Facts) -> str:
    """Where git looks for hooks: the repository may say it. The user's own setting does not come along."""
    above, name = posixpath.split(posixpath.dirname(facts.repository.git_dir))
    common = above if name == "worktrees" else facts.repository.git_dir
    text = facts.tree.text(f"{common}/config") or ""
    named = dict(parse_config(text)).get("core.hookspath", "") if "hookspath" in text.lower() else ""
    return normalize(posixpath.join(facts.project, expand_home(named, facts.home))) if named else f"{common}/hooks"


def _programs(text: str) -> Iterator[str]:
    """What a script needs to start, and what pre-commit's hook starts. `pre-commit` itself would do instead."""
    first, _, rest = text.partition("\n")
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    if words and words[0] == ENV:
        named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        yield from named[:1]
    elif words:
        yield words[0]
    for line in rest.splitlines():
        if line.startswith(PRE_COMMIT):
            yield line.removeprefix(PRE_COMMIT).strip().strip("'\"")


class _Box:
    """Knows which programs of the host are in the box."""

    def __init__(self, facts: Facts, mounts: list[Mount], search_path: tuple[str, ...]) -> None:
        self.tree = facts.tree
        self.mounts = mounts
        self.search_path = search_path

    def has(self, program: str) -> bool:
        if not program or "/" not in program:
            return any(self._shows(f"{directory}/{program}") for directory in self.search_path)
        if self._shows(program):
            return True
        # Pre-commit's hook takes the one that is on PATH instead.
        return posixpath.basename(program).startswith("python") and self.has("pre-commit")

    def _shows(self, path: str) -> bool:
        """Whether the file is at this path, and so is every symlink to it."""
        real = self.tree.resolve(path)
        if real is None or not self.tree.is_executable(real):
            return False
        return all(self.is_visible(place) for place in (path, *(link for link, _ in self.tree.links(path)), real))

    def is_visible(self, path: str) -> bool:
        holder = find_holder(path, self.mounts)
        if holder is None or holder.kind not in (*FROM_HOST, SYMLINK):
            return False
        return holder.kind == SYMLINK or move(path, holder.path, holder.source) == path


def environment_of(facts: Facts, box: _Box, python: str) -> str:
    """The virtual environment of pre-commit to which this Python belongs, if it may be shown; else "".

    A hook is a claim of the repository. So it has to be an environment that has pre-commit, and lie where neither
    secrets nor agents are.
    """
    tree, reach, root = facts.tree, facts.reach, posixpath.dirname(posixpath.dirname(python))
    libraries = [f"{root}/lib/{name}/site-packages/pre_commit" for name in tree.entries(f"{root}/lib")]
    is_environment = tree.is_file(f"{root}/pyvenv.cfg") and any(map(tree.is_plain_directory, libraries))
    # A symlink has no place for a cover, so a token behind one keeps the whole environment outside.
    tokens = [name for name in TOKENS if not tree.is_link(f"{root}/{name}")]
    is_environment = is_environment and OF_VENV.union(tokens).issuperset(tree.entries(root))
    if not python.startswith("/") or not is_environment or tree.resolve(root) != root or not tree.is_executable(python):
        return ""
    if reach.leads_through(root) or reach.enters(root):
        return ""
    if refuse_readable(root, facts.person.homes, facts.places) or contained_secret(root, facts.places) is not None:
        return ""
    real = tree.resolve(python) or ""
    return root if is_inside(real, root) or box.is_visible(real) else ""
