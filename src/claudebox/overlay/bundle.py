"""Brings the commits that were made in a box to the host's repository, and moves branches if the user says so.

Git obeys a repository's configuration, so git on this host never looks at what the box wrote. In another box, without a
network, git packs the new commits into a bundle. From that, git on this host fetches objects, and checks each one, into
refs that nobody has checked out: refs/claudebox/NUMBER/BRANCH. Nothing else of the box's `.git` arrives.

Older versions of git ignore `transfer.fsckObjects` for a bundle (measured with 2.39: a tree with a file `.git` in it
arrived). So its pack is first indexed in a directory of its own, where git checks every object strictly.
"""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess

from claudebox import files
from claudebox.host.tree import Tree
from claudebox.overlay.changes import Never
from claudebox.overlay.store import Layer
from claudebox.process.single_file import own_command
from claudebox.record import Record

BUNDLE, HEAD, KNOWN = "bundle", "head", "known"  # files in the layer's directory `out`
OBJECTS = "objects"  # the directory in the layer's where they are checked
REFS = "refs/claudebox"
SECONDS = 300
LANDED = "claudebox: landed"  # in the reflog
LONGEST_NAME = 1024
LONGEST_HEADER = 1 << 22  # bytes: a line for each branch, and for each commit that the host has
NOTHING_CONFIGURED = (
    *"-c core.fsmonitor=false -c core.hooksPath=/dev/null -c gc.auto=0 -c maintenance.auto=false".split(),
    *"-c transfer.fsckObjects=true -c fetch.fsckObjects=true -c fetch.recurseSubmodules=false".split(),
    *"-c core.pager=cat -c fetch.writeCommitGraph=false -c fetch.output=full".split(),
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


class Repository:
    """The host's repository, through a git that runs nothing that the repository names."""

    def __init__(self, git: str, git_dir: str, project: str) -> None:
        self.git = git
        self.git_dir = git_dir
        self.project = project

    def run(self, *words: str, objects: str = "", stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
        """Run git. `objects` is the directory where it writes objects, if not its own."""
        kept = {name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in os.environ}
        environ = {**kept, "PATH": os.path.dirname(self.git), "LC_ALL": "C", "GIT_DIR": self.git_dir}
        environ |= {"GIT_WORK_TREE": self.project, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
        environ |= {"GIT_OBJECT_DIRECTORY": objects} if objects else {}
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
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise GitFailed(f"git {words[0]}: {lines[-1]}")
        return done.stdout


def has_news(layer: Layer) -> bool:
    """Whether git in the box has moved a branch or made one. `git status` alone writes an index, which is no news."""
    for place in (f"{layer.upper}/.git", f"{layer.directory}/git-upper"):
        for name in ("packed-refs", "refs/heads", "HEAD", "worktrees", "reftable"):
            if os.path.lexists(f"{place}/{name}"):
                return True
    return False


def find_work_without_branch(layer: Layer) -> list[Never]:
    """What git in the box keeps for nobody's branch: it does not arrive, and would be lost with the layer."""
    found = []
    for upper, git_dir in (
        (f"{layer.upper}/.git", f"{layer.project}/.git"),
        (f"{layer.directory}/git-upper", layer.git),
    ):
        for name, reason in (("refs/stash", STASH), ("HEAD", DETACHED)):
            theirs = Tree().read_plain(f"{upper}/{name}", LONGEST_NAME)
            if (
                theirs
                and not theirs.startswith(b"ref:")
                and theirs != Tree().read_plain(f"{git_dir}/{name}", LONGEST_NAME)
            ):
                found.append(Never(f".git/{name}", reason))
    return found


def fetch_commits(layer: Layer, repository: Repository) -> Commits:
    """Have the new commits packed in a box, and fetch them. Raises GitFailed if that fails: then nothing arrived."""
    try:
        return _fetch(layer, repository)
    except OSError as error:
        raise GitFailed(f"{layer.directory}: {error.strerror}") from None
    finally:
        _remove(layer)


def _fetch(layer: Layer, repository: Repository) -> Commits:
    _make_bundle(layer, repository)
    if not os.path.lexists(f"{layer.out}/{BUNDLE}"):
        return Commits()  # there is nothing new
    bundle = _take_bundle(layer)
    _require_good_objects(layer, repository, bundle)
    refs = f"{REFS}/{layer.number}"
    repository.require(
        *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--prune"),
        *("--", bundle, f"+refs/heads/*:{refs}/*"),
    )
    return _compare(repository, refs, _read_head(layer))


def _make_bundle(layer: Layer, repository: Repository) -> None:
    _make_anew(layer, os.path.basename(layer.out))
    tips = repository.ask("for-each-ref", "--format=%(objecttype) %(objectname)", "refs/heads", "refs/remotes")
    words = dict.fromkeys(line.split(" ")[1] for line in tips.splitlines() if line.startswith("commit "))
    with open(f"{layer.out}/{KNOWN}", "x") as file:
        file.write("".join(f"^{word}\n" for word in words))
    box = subprocess.Popen(
        [*own_command(), "--review", "bundle", layer.number],
        cwd=layer.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, said = box.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        box.kill()
        box.communicate()
        raise GitFailed("git in the box took too long to pack the commits") from None
    if box.returncode != 0:
        lines = said.decode(errors="replace").strip().splitlines() or [f"exit status {box.returncode}"]
        raise GitFailed(f"the commits could not be packed: {lines[0]}")


def _make_anew(layer: Layer, name: str) -> None:
    """Make an empty directory beside the layer. What an earlier try has left goes."""
    files.remove_path(f"{layer.directory}/{name}")
    os.mkdir(f"{layer.directory}/{name}", files.PRIVATE)


def _remove(layer: Layer) -> None:
    """Remove what was on its way. On a disk that is full, it would be in the way of the files that land next."""
    for path in (layer.out, f"{layer.directory}/{OBJECTS}"):
        with contextlib.suppress(OSError):
            files.remove_path(path)


def _take_bundle(layer: Layer) -> str:
    """A copy of the bundle, in a directory where the box that packed has left nothing.

    Git reads it twice, to check it and to fetch. Of the file itself, another box may hold a descriptor: what the agent
    configured for git runs in the box that packs, and can hand one on. It can make the file grow while it is copied,
    and put a hole of terabytes in it, which must not become real.
    """
    _make_anew(layer, OBJECTS)
    copy = f"{layer.directory}/{OBJECTS}/{BUNDLE}"
    try:
        with open(os.open(f"{layer.out}/{BUNDLE}", files.READ), "rb", buffering=0) as made, open(copy, "xb") as own:
            status = os.fstat(made.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise GitFailed("the bundle of commits is not a file")
            files.copy_content(made.fileno(), own.fileno(), status.st_size)
    except OSError as error:
        raise GitFailed(f"the bundle of commits: {error.strerror}") from None
    return copy


def _require_good_objects(layer: Layer, repository: Repository, bundle: str) -> None:
    """Have git check every object of a bundle, in a directory that is no repository's."""
    objects = f"{layer.directory}/{OBJECTS}"
    own = repository.require("rev-parse", "--path-format=absolute", "--git-path", "objects").removesuffix("\n")
    os.mkdir(f"{objects}/info")
    with open(f"{objects}/info/alternates", "x", errors="surrogateescape") as file:
        file.write(f"{own}\n")
    with open(os.open(bundle, files.READ), "rb", buffering=0) as opened:
        os.lseek(opened.fileno(), _length_of_header(opened.fileno()), os.SEEK_SET)
        done = repository.run("index-pack", "--stdin", "--fix-thin", "--strict", objects=objects, stdin=opened.fileno())
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it is damaged"]
        raise GitFailed(f"git does not accept an object: {lines[0]}")


def _length_of_header(bundle: int) -> int:
    """Where the pack begins: after the first empty line."""
    content = os.pread(bundle, LONGEST_HEADER, 0)
    end = content.find(b"\n\n")
    if not content.startswith(b"# v") or end < 0:
        raise GitFailed("the bundle of commits is none")
    return end + 2


def _read_head(layer: Layer) -> str:
    content = Tree().read_plain(f"{layer.out}/{HEAD}", LONGEST_NAME) or b""
    return os.fsdecode(content).strip().removeprefix("refs/heads/")


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
