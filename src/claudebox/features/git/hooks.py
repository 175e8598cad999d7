"""Finds hooks whose program is not in the box: each commit there would fail with "not found".

Only forms that are known are read: the first line of a hook, the hook that pre-commit writes, and those of husky.
"""

from __future__ import annotations

import posixpath

from claudebox.errors import quote
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features.git import common_directory
from claudebox.host.git import parse_config
from claudebox.model import FROM_HOST, SYMLINK, Finding, Mount
from claudebox.paths import expand_home, move, normalize
from claudebox.sandbox.mounts import arrange, find_holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from claudebox.host.tree import Tree

# Those that run when an agent commits, in the order of git.
HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit", "pre-push")
ENV = "/usr/bin/env"
PRE_COMMIT = "INSTALL_PYTHON="  # in the hook that pre-commit has written
LONGEST = 200
OF_NODE = ("npx", "npm", "pnpm", "yarn", "bun", "node")
TOLD = (
    "The hook `{hook}` needs `{program}`, which is not in the box, so `git commit` fails. Run its checks by hand where "
    "you can, commit with `--no-verify`, and tell the user that you did."
)


def decide(facts: Facts, draft: Draft) -> Contribution:
    tree, mounts = facts.tree, arrange(draft.mounts, draft.hides)

    def has(program: str) -> bool:
        """Whether the box has it: a path, or a name that is looked up."""
        if "/" not in program:
            return any(_is_shown(tree, mounts, f"{directory}/{program}") for directory in draft.search_path)
        # Pre-commit's hook takes the one that is on PATH instead.
        is_python = posixpath.basename(program).startswith("python")
        return _is_shown(tree, mounts, program) or (is_python and has("pre-commit"))

    missing = [(hook, program) for hook, program in find_needed(facts) if not has(program)]
    return Contribution(
        findings=tuple(_finding(hook, program) for hook, program in missing),
        told=tuple(TOLD.format(hook=hook, program=program.replace("`", "")) for hook, program in missing),
    )


def _finding(hook: str, program: str) -> Finding:
    place = posixpath.dirname(posixpath.dirname(program))
    remedy = f"show it with --mount-ro {quote(place)}" if place else "show the directory that has it with --mount-ro"
    text = f"the hook {hook} needs {program}, which is not in the box: commits fail there; {remedy}"
    return Finding(Finding.NOTE, "git", text)


def find_needed(facts: Facts) -> list[tuple[str, str]]:
    """Each hook, with a program that it runs."""
    tree, directory = facts.tree, hooks_directory(facts)
    above, name = posixpath.split(posixpath.dirname(directory))
    found: list[tuple[str, str]] = []
    for hook in HOOKS:
        if not tree.is_executable(f"{directory}/{hook}"):
            continue
        found += [(hook, program) for program in _programs(tree.text(f"{directory}/{hook}") or "")]
        if name == ".husky":
            script = tree.text(f"{above}/{name}/{hook}") or ""
            first = [line.split()[0] for line in script.splitlines() if line.strip() and not line.startswith("#")]
            found += [(hook, word) for word in first if word in OF_NODE]
    # What the repository says is shown, and told to the agent: a name, not a text.
    return [one for one in dict.fromkeys(found) if one[1] and one[1].isprintable() and len(one[1]) <= LONGEST]


def hooks_directory(facts: Facts) -> str:
    """Where git looks for hooks: the repository may say it. The user's own setting does not come along."""
    common = common_directory(facts.repository.git_dir)
    text = facts.tree.text(f"{common}/config") or ""
    named = dict(parse_config(text)).get("core.hookspath", "") if "hookspath" in text.lower() else ""
    return normalize(posixpath.join(facts.project, expand_home(named, facts.home))) if named else f"{common}/hooks"


def _programs(text: str) -> Iterator[str]:
    """What a script needs to start, and what pre-commit's hook starts. `pre-commit` itself would do instead."""
    first, _, rest = text.partition("\n")
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    if words[:1] == [ENV]:
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    yield from words[:1]
    for line in rest.splitlines():
        if line.startswith(PRE_COMMIT):
            yield line.removeprefix(PRE_COMMIT).strip().strip("'\"")


def _is_shown(tree: Tree, mounts: Sequence[Mount], path: str) -> bool:
    """Whether the box has the file at this path, and every symlink on the way to it."""
    real = tree.resolve(path)
    if real is None or not tree.is_executable(real):
        return False
    for place in (path, *(link for link, _ in tree.links(path)), real):
        holder = find_holder(place, mounts)
        if holder is None or holder.kind not in (*FROM_HOST, SYMLINK):
            return False
        if holder.kind != SYMLINK and move(place, holder.path, holder.source) != place:
            return False
    return True
