"""Finds the git repository of the project, and whether it agrees that it is; and reads git's configuration.

A `.git` file is a claim by the project, which a hostile agent can write. It is believed only if the directory that it
names points back at the project, because the agent cannot write there.

Nothing here starts git: that costs more than everything else in a launch, and in a hostile repository some git commands
run code.
"""

from __future__ import annotations

import posixpath
from itertools import islice

from claudebox.errors import quote
from claudebox.host.tree import Tree
from claudebox.paths import expand_home, is_inside, normalize, parents
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MOST_ALTERNATES = 100
DEEPEST_MODULE = 12  # parts of a submodule's name
MOST_MODULES = 5000  # and worktrees, of a repository
# Directories that git makes in each repository.
PARTS = frozenset("branches hooks info logs objects refs modules worktrees lfs rr-cache annex".split())
CONFIG_FILES = ("config", "config.worktree", "credentials")
LARGEST_CONFIG = 1 << 18
PASSWORDS = (b"header", b"token", b"pass", b"secret", b"key", b"credential", b"auth", b"proxy")


class Repository(Record):
    """What `git` needs for this project."""

    git_dir: str = ""  # this checkout's own directory, "" if there is none
    outside: str = ""  # the directory outside the project that has to be mounted
    is_worktree: bool = False
    why: str = ""
    trouble: str = ""  # why git will not work in the box
    remedy: str = ""

    def canonical_root(self, project: str) -> str:
        """The project, or for a linked worktree the repository that it belongs to: worktrees share their history."""
        if not self.outside or not self.is_worktree:
            return project
        return posixpath.dirname(self.outside) if posixpath.basename(self.outside) == ".git" else self.outside


def find_repository(tree: Tree, project: str) -> Repository:
    dot_git = f"{project}/.git"
    if tree.lstat(dot_git) is None:
        return _enclosing(tree, project)
    real = tree.resolve(dot_git) or dot_git
    if tree.is_dir(real):
        return _directory(tree, project, real)
    return _pointed(tree, project, real)


def _enclosing(tree: Tree, project: str) -> Repository:
    for directory in parents(project):
        if tree.lstat(f"{directory}/.git") is not None:
            return Repository(
                trouble=f"the git repository belongs to {directory}, which stays outside",
                remedy=f"for git, start claudebox in {directory}",
            )
    return Repository()


def _directory(tree: Tree, project: str, git_dir: str) -> Repository:
    if not is_inside(git_dir, project):
        return Repository(trouble=f".git leads to {git_dir}, outside the project", remedy=_by_hand(git_dir))
    borrowed = _borrowed_objects(tree, project, git_dir)
    if borrowed:
        return Repository(
            git_dir=git_dir,
            trouble=f"the repository borrows objects from {borrowed}",
            remedy=f"if you trust that: --mount-ro {quote(borrowed)}",
        )
    return Repository(git_dir=git_dir)


def _borrowed_objects(tree: Tree, project: str, git_dir: str) -> str:
    """The first directory outside the project that `git clone --shared` named in `objects/info/alternates`."""
    for line in (tree.text(f"{git_dir}/objects/info/alternates") or "").splitlines()[:MOST_ALTERNATES]:
        place = normalize(posixpath.join(f"{git_dir}/objects", line))
        # Only a place that exists is shown: the project wrote this text, and it would appear next to the question.
        if line and not line.startswith("#") and not is_inside(place, project) and tree.is_dir(place):
            return place
    return ""


def _pointed(tree: Tree, project: str, dot_git: str) -> Repository:
    """The repository that a `.git` file points at: a linked worktree, a submodule, or `--separate-git-dir`."""
    target = pointed_to(tree.text(dot_git) or "")
    git_dir = tree.resolve(posixpath.join(project, target)) if target else None
    if git_dir is None or not tree.is_dir(git_dir):
        return Repository(trouble=f"{project}/.git names no directory that exists")
    if is_inside(git_dir, project):
        return Repository(git_dir=git_dir)
    if _is_worktree_of(tree, git_dir, project):
        common = posixpath.dirname(posixpath.dirname(git_dir))
        return Repository(git_dir=git_dir, outside=common, is_worktree=True, why="repository of this worktree")
    if _is_submodule_of(tree, git_dir, project):
        return Repository(git_dir=git_dir, outside=git_dir, why="repository of this submodule")
    return Repository(trouble=f"{git_dir} does not say that {project} is its checkout", remedy=_by_hand(git_dir))


def pointed_to(text: str, begins: str = "gitdir: ") -> str:
    """The path that git reads there. A line break is no part of it, but a space is, and a zero byte ends it."""
    return text[len(begins) :].rstrip("\r\n").partition("\0")[0] if text.startswith(begins) else ""


def _is_worktree_of(tree: Tree, git_dir: str, project: str) -> bool:
    """Whether it is `COMMON/worktrees/NAME`, and its file `gitdir` names the project's `.git`."""
    if posixpath.basename(posixpath.dirname(git_dir)) != "worktrees":
        return False
    common = posixpath.dirname(posixpath.dirname(git_dir))
    says_common = _path_in(tree, f"{git_dir}/commondir", git_dir)
    says_checkout = _path_in(tree, f"{git_dir}/gitdir", git_dir)
    is_repository = (
        tree.is_dir(f"{common}/objects") and tree.is_dir(f"{common}/refs") and tree.is_file(f"{common}/HEAD")
    )
    return is_repository and says_common == common and says_checkout == f"{project}/.git"


def _path_in(tree: Tree, file: str, base: str) -> str | None:
    text = (tree.text(file) or "").strip()
    return tree.resolve(posixpath.join(base, text)) if text else None


def _is_submodule_of(tree: Tree, git_dir: str, project: str) -> bool:
    """Whether it is `…/.git/modules/…`, and its configuration names the project as its work tree."""
    if "/modules/" not in git_dir:
        return False
    settings = dict(parse_config(tree.text(f"{git_dir}/config") or ""))
    work_tree = settings.get("core.worktree", "")
    return bool(work_tree) and tree.resolve(posixpath.join(git_dir, work_tree)) == project


def is_repository(tree: Tree, directory: str) -> bool:
    """Whether git takes a directory for one of its own: HEAD, and objects here or in a common directory."""
    return tree.lstat(f"{directory}/HEAD") is not None and (
        tree.lstat(f"{directory}/objects") is not None or tree.lstat(f"{directory}/commondir") is not None
    )


def find_submodules(
    tree: Tree, modules: str, entries: Callable[[str], list[str]] | None = None, unseen: list[str] | None = None
) -> Iterator[str]:
    """Find the submodules that a directory `modules` of git holds. They may have submodules of their own.

    One may be called `a/b`, and lie in another one, so nothing that is there ends the search, but what git itself makes
    in a repository. `entries` lists a directory; `unseen` takes in those that are too deep or one too many.
    """
    level, seen = [modules], 0
    for _ in range(DEEPEST_MODULE):
        below: list[str] = []
        for directory in level:
            is_gits = directory != modules and is_repository(tree, directory)
            for name in (entries or tree.entries)(directory):
                path = f"{directory}/{name}"
                if not tree.is_plain_directory(path) or (is_gits and name in PARTS and not is_repository(tree, path)):
                    continue
                if is_repository(tree, path) or tree.lstat(f"{path}/config") is not None:
                    yield path
                below.append(path)
        seen += len(below)
        if seen > MOST_MODULES:
            break
        level = below
    if unseen is not None:
        unseen += level


def find_configs(tree: Tree, git_dirs: Iterable[str]) -> list[str]:
    """The files of repositories, their submodules and worktrees that may hold a password."""
    found = []
    for git_dir in dict.fromkeys(git_dirs):
        directories = [git_dir]
        directories += [f"{git_dir}/worktrees/{name}" for name in tree.entries(f"{git_dir}/worktrees")[:MOST_MODULES]]
        for directory in directories:
            if len(directories) < MOST_MODULES and tree.is_plain_directory(f"{directory}/modules"):
                directories += islice(find_submodules(tree, f"{directory}/modules"), MOST_MODULES)
            files = [f"{directory}/{name}" for name in CONFIG_FILES]
            found += [path for path in files if tree.lstat(path) is not None and _may_hold_password(tree, path)]
    return found


def _may_hold_password(tree: Tree, path: str) -> bool:
    """Look quickly: every repository is asked this at every start. What cannot be read may hold one."""
    content = tree.read_plain(path, LARGEST_CONFIG)
    if content is None or len(content) == LARGEST_CONFIG:
        return True
    return (b"://" in content and b"@" in content) or any(word in content.lower() for word in PASSWORDS)


def _by_hand(git_dir: str) -> str:
    return f"if you trust that: --mount-rw {quote(git_dir)}"


MOST_FILES = 100
SPACES = " \t\r\n"  # the characters that git takes for spaces

Pairs = list[tuple[str, str]]


def parse_config(text: str) -> Pairs:
    """All (`section.subsection.key`, value) pairs in order; section and key in lower case."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    pairs: Pairs = []
    prefix = ""
    position = 0
    while position < len(text):
        character = text[position]
        if character in SPACES:
            position += 1
        elif character in "#;":
            position = _line_end(text, position)
        elif character == "[":
            prefix, position = _section(text, position + 1)
        else:
            name, value, position = _pair(text, position)
            if prefix:
                pairs.append((prefix + name.lower(), value))
    return pairs


def load_config(tree: Tree, path: str, home: str, git_dir: str, opened: list[str] | None = None) -> Pairs:
    """The pairs of a file and of everything that it includes, in the order of git, up to a limit of files."""
    opened = [] if opened is None else opened
    opened.append(path)
    pairs: Pairs = []
    for name, value in parse_config(tree.text(path) or ""):
        pairs.append((name, value))
        # A file that includes itself several times would grow beyond all memory.
        if len(opened) < MOST_FILES and value and _includes(name, home, git_dir, path):
            included = posixpath.join(posixpath.dirname(path), expand_home(value, home))
            pairs += load_config(tree, included, home, git_dir, opened)
    return pairs


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _section(text: str, position: int) -> tuple[str, int]:
    """The prefix of the names below `[section "sub"]`, and where the header ends."""
    end = position
    while text[end : end + 1] not in ('"', "]", "\n", ""):
        end += 1
    section, subsection = text[position:end].strip().lower(), ""
    if text[end : end + 1] != '"':
        return f"{section}." if section else "", end + 1
    end += 1
    while text[end : end + 1] not in ('"', "\n", ""):
        if text[end] == "\\":
            end += 1
        subsection += text[end : end + 1]
        end += 1
    return f"{section}.{subsection}.", end + 2  # behind the bracket: git refuses anything else there


def _pair(text: str, position: int) -> tuple[str, str, int]:
    """One key with its value, and where it ends. A key without a value is true."""
    end = _line_end(text, position)
    equals = text.find("=", position, end)
    if equals < 0:
        return text[position:end].split("#")[0].split(";")[0].strip(SPACES), "true", end
    value, end = _value(text, equals + 1)
    return text[position:equals].strip(SPACES), value, end


def _value(text: str, position: int) -> tuple[str, int]:
    """A value without its quotes, escapes and comment. A backslash at the end of a line continues it."""
    value: list[str] = []  # pieces: to copy the whole for each of them would take long for a long one
    length = 0  # without the blanks at the end
    quoted = False
    while position < len(text) and text[position] != "\n":
        character = text[position]
        position += 1
        if character in SPACES and not quoted:
            value += [character] if value else []  # counts only if something follows
            continue
        if character in "#;" and not quoted:
            position = _line_end(text, position)
            break
        if character == "\\":
            following = text[position : position + 1]
            position += 1
            value += {"n": "\n", "t": "\t", "b": "\b", "\n": ""}.get(following, following)
        elif character == '"':
            quoted = not quoted
        else:
            value.append(character)
        length = len(value)
    return "".join(value[:length]), position


def _includes(name: str, home: str, git_dir: str, path: str) -> bool:
    if name == "include.path":
        return True
    if not (name.startswith("includeif.") and name.endswith(".path")):
        return False
    kind, _, pattern = name.removeprefix("includeif.").removesuffix(".path").partition(":")
    if kind not in ("gitdir", "gitdir/i") or not git_dir:
        return False
    if pattern.startswith("./"):
        pattern = posixpath.join(posixpath.dirname(path), pattern[2:])
    pattern = expand_home(pattern, home)
    if not pattern.startswith("/"):
        pattern = f"**/{pattern}"
    if pattern.endswith("/"):
        pattern += "**"
    if kind.endswith("/i"):
        pattern, git_dir = pattern.lower(), git_dir.lower()
    return _matches(pattern.split("/"), git_dir.split("/"))


def _matches(pattern: list[str], parts: list[str]) -> bool:
    """Match path components; `**` stands for any number of them."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        # At the end it stands for what is below, not for the directory itself.
        least = 0 if pattern[1:] else 1
        return any(_matches(pattern[1:], parts[skip:]) for skip in range(least, len(parts) + 1))
    if not parts or not _matches_name(pattern[0], parts[0]):
        return False
    return _matches(pattern[1:], parts[1:])


def _matches_name(pattern: str, name: str) -> bool:
    if not any(special in pattern for special in "*?["):
        return pattern == name
    from fnmatch import fnmatchcase

    return fnmatchcase(name, pattern.replace("[^", "[!"))


def host_configs(environ: dict[str, str], home: str) -> tuple[str, ...]:
    system = environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig")
    if environ.get("GIT_CONFIG_GLOBAL"):
        return system, environ["GIT_CONFIG_GLOBAL"]
    xdg = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    return system, f"{xdg}/git/config", f"{home}/.gitconfig"
