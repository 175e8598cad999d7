"""Brings the commits that were made in a box to the host's repository, and moves branches if the user says so.

Git obeys a repository's configuration, so git on this host never looks at what the box wrote. In another box, without a
network, git packs the new commits into a bundle. From that, git on this host takes the objects, and checks each one.
Branches become refs that nobody has checked out, refs/claudebox/NUMBER/BRANCH; no more of the box's `.git` arrives.

Older versions of git ignore `transfer.fsckObjects` when they fetch from a bundle (measured with 2.39: a tree with a
file `.git` in it arrived). So the pack goes to `git index-pack --strict`. Of the bundle another box may hold a
descriptor, since what the agent configured for git runs in the box that packs. But it is read once, and git checks what
it reads: an object of a pack can be used only if all of them are good.
"""

from __future__ import annotations

import contextlib
import os
import subprocess

from claudebox import files
from claudebox.host.tree import Tree
from claudebox.overlay.changes import Never
from claudebox.overlay.store import Layer
from claudebox.process.single_file import own_command
from claudebox.record import Record

BUNDLE, HEAD, KNOWN = "bundle", "head", "known"  # files in the layer's directory `out`
HEADS = "refs/heads/"
REFS = "refs/claudebox"
SECONDS = 300
LANDED = "claudebox: landed"  # in the reflog
LONGEST_NAME = 1024
HEX = frozenset("0123456789abcdef")
LONGEST_HEADER = 1 << 22  # bytes: a line for each branch, and for each commit that the host has
NOTHING_CONFIGURED = (
    *"-c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.pager=cat".split(),
    *"-c gc.auto=0 -c maintenance.auto=false".split(),
)
STASH = "work that git has put aside: pop it in a box with --review"
DETACHED = "commits of no branch: give them one in a box with --review"
FURTHER, NEW, APART, ELSEWHERE = "further", "new", "apart", "elsewhere"


class GitFailed(Exception):
    """The commits stay where they are: in the layer."""


class Branch(Record):
    """A branch of the box that the host does not have, or has otherwise."""

    name: str
    old: str  # the host's commit; "" if it has no such branch
    new: str
    commits: int
    kind: str

    @property
    def can_move(self) -> bool:
        return self.kind in (FURTHER, NEW)


class Commits(Record):
    """What git in the box did."""

    refs: str = REFS  # where the host has it
    branches: tuple[Branch, ...] = ()
    head: str = ""  # the branch that the box had checked out; "" if it is none, or the host's own


class Repository(Record):
    """The host's repository, through a git that runs nothing that the repository names."""

    git: str
    git_dir: str
    project: str

    def run(self, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in os.environ}
        environ = {**kept, "PATH": os.path.dirname(self.git), "LC_ALL": "C", "GIT_DIR": self.git_dir}
        environ |= {"GIT_WORK_TREE": self.project, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
        try:
            return subprocess.run(
                [self.git, *NOTHING_CONFIGURED, *words],
                cwd="/",
                env=environ,
                stdin=stdin,
                capture_output=True,
                text=True,
                errors="surrogateescape",
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitFailed(f"git on this host: {error}") from None

    def ask(self, *words: str) -> str:
        """What git says; "" if it fails."""
        done = self.run(*words)
        return done.stdout.strip() if done.returncode == 0 else ""

    def require(self, *words: str) -> str:
        done = self.run(*words)
        if done.returncode != 0:
            raise GitFailed(f"git {words[0]}: {_said(done)[-1]}")
        return done.stdout


def has_news(layer: Layer) -> bool:
    """Whether git in the box has moved a branch or made one. `git status` alone writes an index, which is no news."""
    names = ("packed-refs", "refs/heads", "HEAD", "worktrees", "reftable")
    return any(os.path.lexists(f"{upper}/{name}") for upper, _ in _git_dirs(layer) for name in names)


def _git_dirs(layer: Layer) -> tuple[tuple[str, str], ...]:
    """Where the layer has what git writes, each with the host's own directory."""
    return (f"{layer.upper}/.git", f"{layer.project}/.git"), (f"{layer.directory}/git-upper", layer.git)


def find_work_without_branch(layer: Layer) -> list[Never]:
    """What git in the box keeps for nobody's branch: it does not arrive, and would be lost with the layer."""
    found = []
    for upper, git_dir in _git_dirs(layer):
        for name, reason in (("refs/stash", STASH), ("HEAD", DETACHED)):
            theirs, ours = (Tree().read_plain(f"{place}/{name}", LONGEST_NAME) for place in (upper, git_dir))
            if theirs and not theirs.startswith(b"ref:") and theirs != ours:
                found.append(Never(f".git/{name}", reason))
    return found


def fetch_commits(layer: Layer, repository: Repository) -> Commits:
    """Have the new commits packed in a box, and fetch them. Raises GitFailed if that fails: then nothing arrived."""
    try:
        return _fetch(layer, repository)
    except OSError as error:
        raise GitFailed(f"{layer.directory}: {error.strerror}") from None
    finally:
        # On a disk that is full, it would be in the way of the files that land next.
        with contextlib.suppress(OSError):
            files.remove_path(layer.out)


def _fetch(layer: Layer, repository: Repository) -> Commits:
    _make_bundle(layer, repository)
    if not os.path.lexists(f"{layer.out}/{BUNDLE}"):
        return Commits()  # there is nothing new
    branches = _take_objects(layer, repository)
    refs = f"{REFS}/{layer.number}"
    for name in _branches(repository, refs).keys() - branches.keys():
        repository.require("update-ref", "-d", f"{refs}/{name}")
    for name, commit in branches.items():
        repository.require("update-ref", f"{refs}/{name}", commit)
    return _compare(repository, refs, _read_head(layer))


def _make_bundle(layer: Layer, repository: Repository) -> None:
    files.remove_path(layer.out)  # what an earlier try has left
    os.mkdir(layer.out, files.PRIVATE)
    tips = repository.ask("for-each-ref", "--format=%(objecttype) %(objectname)", "refs/heads", "refs/remotes")
    words = dict.fromkeys(line.split(" ")[1] for line in tips.splitlines() if line.startswith("commit "))
    with open(f"{layer.out}/{KNOWN}", "x") as file:
        file.write("".join(f"^{word}\n" for word in words))
    try:
        box = subprocess.run(
            [*own_command(), "--review", "bundle", layer.number],
            cwd=layer.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GitFailed("git in the box took too long to pack the commits") from None
    if box.returncode != 0:
        raise GitFailed(f"the commits could not be packed: {_said(box)[0]}")


def _said(done: subprocess.CompletedProcess[str]) -> list[str]:
    return done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]


def _take_objects(layer: Layer, repository: Repository) -> dict[str, str]:
    """Have git check every object of the bundle, and keep them. Returns the branches, each with its commit."""
    with files.Open(files.open_file(None, f"{layer.out}/{BUNDLE}")) as bundle:
        # The pack begins after the first empty line.
        header, end, _ = os.pread(bundle, LONGEST_HEADER, 0).partition(b"\n\n")
        if not header.startswith(b"# v") or not end:
            raise GitFailed("the bundle of commits is none")
        os.lseek(bundle, len(header) + len(end), os.SEEK_SET)
        done = repository.run("index-pack", "--stdin", "--fix-thin", "--strict", stdin=bundle)
    if done.returncode != 0:
        raise GitFailed(f"git does not accept an object: {_said(done)[0]}")
    pairs = [line.partition(" ")[::2] for line in os.fsdecode(header).split("\n")]
    branches = {
        name.removeprefix(HEADS): commit for commit, name in pairs if name.startswith(HEADS) and HEX.issuperset(commit)
    }
    # An object that was here already may lead to one that is not.
    repository.require("rev-list", "--objects", "--quiet", *branches.values(), "--not", "--all", "--")
    return branches


def _read_head(layer: Layer) -> str:
    content = Tree().read_plain(f"{layer.out}/{HEAD}", LONGEST_NAME) or b""
    return os.fsdecode(content).strip().removeprefix(HEADS)


def _compare(repository: Repository, refs: str, head: str) -> Commits:
    """The fetched branches against the host's. What the host has already is forgotten."""
    theirs = _branches(repository, refs)
    ours = _branches(repository, "refs/heads")
    places = dict(
        line.split(" ", 1)
        for line in repository.ask("for-each-ref", "--format=%(refname) %(worktreepath)", "refs/heads").splitlines()
        if " " in line
    )
    found = []
    for name, new in theirs.items():
        old = ours.get(name, "")
        if old == new:
            repository.ask("update-ref", "-d", f"{refs}/{name}")
            continue
        known = [f"^{old}"] if old else ["--not", "--branches"]
        commits = int(repository.ask("rev-list", "--count", new, *known) or 0)
        is_further = bool(old) and repository.run("merge-base", "--is-ancestor", old, new).returncode == 0
        kind = FURTHER if is_further else APART if old else NEW
        elsewhere = places.get(f"refs/heads/{name}", "")
        if kind == FURTHER and elsewhere and elsewhere != repository.project:
            kind = ELSEWHERE
        found.append(Branch(name, old, new, commits, kind))
    current = repository.ask("symbolic-ref", "-q", "HEAD").removeprefix("refs/heads/")
    return Commits(refs, tuple(found), head if head in {**ours, **theirs} and head != current else "")


def _branches(repository: Repository, refs: str) -> dict[str, str]:
    lines = repository.ask("for-each-ref", "--format=%(objectname) %(refname)", refs).splitlines()
    return {name.removeprefix(f"{refs}/"): commit for commit, _, name in (line.partition(" ") for line in lines)}


def move_branches(repository: Repository, commits: Commits) -> bool:
    """Move what can be moved, and check out what the box had, without touching a file of the project.

    Returns False if the index was left alone, because the user has something in it.
    """
    head = repository.ask("rev-parse", "-q", "--verify", "HEAD")
    if head:
        is_clean = repository.run("diff-index", "--cached", "--quiet", head, "--").returncode == 0
    else:
        is_clean = not repository.ask("ls-files", "--cached")
    for branch in commits.branches:
        if branch.can_move:
            old = branch.old or "0" * len(branch.new)
            repository.require("update-ref", "-m", LANDED, f"refs/heads/{branch.name}", branch.new, old)
            repository.ask("update-ref", "-d", f"{commits.refs}/{branch.name}", branch.new)
    if commits.head and repository.ask("rev-parse", "-q", "--verify", f"refs/heads/{commits.head}"):
        repository.require("symbolic-ref", "-m", LANDED, "HEAD", f"refs/heads/{commits.head}")
    if repository.ask("rev-parse", "-q", "--verify", "HEAD") == head:
        return True
    if is_clean:
        repository.require("read-tree", "HEAD")
    return is_clean
