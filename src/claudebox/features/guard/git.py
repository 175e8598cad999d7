"""Finds the files of git that can make a git command on the host run something.

They are read without starting git, which in a hostile repository may run code. These were measured to run code at a
plain `git status`: a `config` or what it includes, `commondir`, the `.git` file of a worktree or submodule.
"""

from __future__ import annotations

import posixpath

from claudebox.features.guard.table import DOT_GIT, GIT, HEAD, UNSEEN
from claudebox.host.git import config as gitconfig
from claudebox.host.git.detours import find_detours
from claudebox.host.git.repository import find_submodules, pointed_to
from claudebox.host.tree import Tree
from claudebox.host.walk import BEYOND, DIRECTORY, FILE, LINK, OTHER, UNREAD, Entry
from claudebox.model import Guarded
from claudebox.paths import normalize
from claudebox.problem import Problem, quote
from claudebox.record import Record
from claudebox.trust.secret_places import Opening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CONFIG = "git obeys it"
HOOKS = "git runs hooks"
POINTER = "git goes where it says"
GITWEB = "git instaweb runs it"
INCLUDED = "git's configuration includes it"
PROGRAM = "git's configuration runs it"
TOO_MANY = "one repository too many: nothing in it was looked at"
TOO_MUCH = "git's configuration is too long here: what it names was not looked at"

MOST_INCLUDED = 100
MOST_PARSED = 1 << 19
MOST_REPOSITORIES = 2000

# Keys whose value is a command or the path of a program.
_COMMANDS = frozenset(
    "core.fsmonitor core.sshcommand core.editor core.pager core.askpass core.gitproxy core.alternaterefscommand "
    "sequence.editor diff.external gpg.program credential.helper interactive.difffilter uploadpack.packobjectshook "
    "sendemail.sendmailcmd sendemail.tocmd sendemail.cccmd sendemail.headercmd imap.tunnel web.browser "
    "instaweb.httpd svn.authorsprog".split()
)
_TOOLS = ("merge.tool", "merge.guitool", "diff.tool", "diff.guitool")  # a script of git's own that is run, or a path
_KINDS_OF_COMMANDS = {  # with a name between the first and the last part, such as filter.lfs.clean
    "filter": ("clean", "smudge", "process"),
    "diff": ("command", "textconv"),
    "merge": ("driver",),
    "mergetool": ("cmd", "path"),
    "difftool": ("cmd", "path"),
    "credential": ("helper",),
    "gpg": ("program", "defaultkeycommand"),
    "trailer": ("command", "cmd"),
    "remote": ("uploadpack", "receivepack", "vcs"),
    "submodule": ("update",),
    "tar": ("command",),
    "browser": ("cmd", "path"),
    "man": ("cmd", "path"),
    "guitool": ("cmd",),
    "hook": ("command",),
    "sendemail": ("sendmailcmd", "tocmd", "cccmd", "headercmd"),
    "lfs": ("path", "clean", "smudge"),
}
# Only with these git obeys an address that is a command, such as `ext::sh -c …`, which many keys may hold.
_PROTOCOLS = ("protocol.ext.allow", "protocol.allow")
_ANY_OF_SECTION = ("alias", "pager")
# A configuration without any of these words names nothing of interest. Most have none, and need no parsing.
_TELLING = (
    *("include", "hookspath", "alias", "command", "filter", "driver", "textconv", "helper", "program", "editor"),
    *("pager", "fsmonitor", "proxy", "askpass", "hook", "external", "browser", "tool", "pack", "cmd", "update"),
)
_OFF = ("false", "0", "no", "off", "")
_SWITCHES = ("true", "false", "1", "0", "yes", "no", "on", "off", "")


class Account(Record):
    """The user's own configuration, which git obeys besides the repository's files."""

    home: str
    configs: tuple[str, ...] = ()


class Checkout(Record):
    """A directory of git, and where its files are checked out: "" if nowhere."""

    git_dir: str
    work_tree: str


def git_guarded(tree: Tree, entries: Iterable[Entry], account: Account) -> list[Guarded]:
    """The files that git obeys in every repository that was found, wherever a `.git` file says that one is."""
    found: list[Guarded] = []
    checkouts: list[Checkout] = []
    for entry in entries:
        if entry.name == DOT_GIT:
            checkout = checkout_of(tree, entry)
            found += [] if entry.kind == DIRECTORY else [Guarded(entry.path, GIT, POINTER)]
            checkouts += [checkout] if checkout is not None else []
        elif entry.name == HEAD and entry.kind in (FILE, LINK) and _is_bare(tree, posixpath.dirname(entry.path)):
            checkouts.append(Checkout(posixpath.dirname(entry.path), ""))
    seen: set[Checkout] = set()
    configs = Configs(tree, account)
    while checkouts and len(seen) < MOST_REPOSITORIES:
        checkout = checkouts.pop(0)
        if checkout not in seen:
            seen.add(checkout)
            found += _files(tree, checkout, configs)
            checkouts += _further(tree, checkout, configs)
    # The rest is held as a whole, and named afterwards.
    found += [Guarded(checkout.git_dir, UNSEEN, TOO_MANY) for checkout in checkouts if checkout not in seen]
    return list(dict.fromkeys(found))


def checkout_of(tree: Tree, entry: Entry) -> Checkout | None:
    work_tree = posixpath.dirname(entry.path)
    if entry.kind == DIRECTORY:
        return Checkout(entry.path, work_tree)
    if entry.kind == LINK:
        real = tree.resolve(entry.path)
    else:
        target = pointed_to(tree.text(entry.path) or "")
        real = tree.resolve(posixpath.join(work_tree, target)) if target else None
    return Checkout(real, work_tree) if real is not None and tree.is_plain_directory(real) else None


def _is_bare(tree: Tree, directory: str) -> bool:
    """Whether git takes it for a repository. Its parts may be symlinks, or be in a common directory."""
    return tree.lstat(f"{directory}/commondir") is not None or all(
        tree.exists(f"{directory}/{part}") for part in ("objects", "refs")
    )


def _files(tree: Tree, checkout: Checkout, configs: Configs) -> Iterator[Guarded]:
    git_dir = checkout.git_dir
    for name, reason in (("config", CONFIG), ("config.worktree", CONFIG), ("hooks", HOOKS), ("commondir", POINTER)):
        yield Guarded(f"{git_dir}/{name}", GIT, reason)
    yield Guarded(f"{git_dir}/gitweb", GIT, GITWEB)
    yield from _hook_targets(tree, f"{git_dir}/hooks")
    yield from configs.named_in(checkout)


def _hook_targets(tree: Tree, hooks: str) -> Iterator[Guarded]:
    """The scripts to which hooks lead that are symlinks."""
    for name in tree.entries(hooks):
        path = f"{hooks}/{name}"
        if tree.is_link(path):
            target = normalize(posixpath.join(hooks, tree.link_target(path)))
            yield Guarded(target, GIT, HOOKS)


def _further(tree: Tree, checkout: Checkout, configs: Configs) -> list[Checkout]:
    """The common directory, worktrees and submodules of a checkout, which have directories of their own."""
    git_dir, found = checkout.git_dir, []
    common = pointed_to(tree.text(f"{git_dir}/commondir") or "", "") if tree.lstat(f"{git_dir}/commondir") else ""
    if common and (real := tree.resolve(posixpath.join(git_dir, common))) is not None:
        found.append(Checkout(real, checkout.work_tree))
    for name in tree.entries(f"{git_dir}/worktrees"):
        linked = f"{git_dir}/worktrees/{name}"
        # If it is checked out in the project, its `.git` file there says so.
        found.append(Checkout(linked, "")) if tree.is_plain_directory(linked) else None
    modules = tree.resolve(f"{git_dir}/modules")
    found += [Checkout(one, configs.work_tree(one)) for one in (find_submodules(tree, modules) if modules else ())]
    return found


class Configs:
    """The configuration files of git, each read once for all repositories."""

    def __init__(self, tree: Tree, account: Account) -> None:
        self.tree = tree
        self.account = account
        self._pairs: dict[str, gitconfig.Pairs | None] = {}
        self._room = MOST_PARSED

    def named_in(self, checkout: Checkout) -> Iterator[Guarded]:
        """Files that the configuration includes, and programs of the project that it names."""
        git_dir, home = checkout.git_dir, self.account.home
        base = checkout.work_tree or git_dir
        waiting = [*self.account.configs, f"{git_dir}/config", f"{git_dir}/config.worktree"]
        seen = set(waiting)
        while waiting and len(seen) < MOST_INCLUDED:
            config = waiting.pop(0)
            pairs = self._telling_pairs(config)
            if pairs is None:
                yield Guarded(git_dir, UNSEEN, TOO_MUCH)
            for name, value in pairs or ():
                if is_include(name):
                    path = _absolute(value, posixpath.dirname(config), home)
                    waiting += [] if path in seen else [path]
                    seen.add(path)
                    yield Guarded(path, GIT, INCLUDED)
                elif name == "core.hookspath":
                    yield Guarded(_absolute(value, base, home), GIT, HOOKS)
                    yield from _hook_targets(self.tree, _absolute(value, base, home))
                elif runs_program(name, value):
                    yield from self._programs(value, base)

    def _programs(self, command: str, base: str) -> Iterator[Guarded]:
        for word in command.split():
            path = _absolute(word.strip("\"'!;()"), base, self.account.home)
            if self.tree.is_file(path):
                yield Guarded(path, GIT, PROGRAM)

    def work_tree(self, git_dir: str) -> str:
        """Where a submodule is checked out."""
        named = dict(self._parse(self._text(f"{git_dir}/config")) or ()).get("core.worktree", "")
        return normalize(posixpath.join(git_dir, named)) if named else ""

    def _telling_pairs(self, config: str) -> gitconfig.Pairs | None:
        if config not in self._pairs:
            text = self._text(config)
            lower = text.lower()
            self._pairs[config] = self._parse(text) if any(word in lower for word in _TELLING) else []
        return self._pairs[config]

    def _text(self, config: str) -> str:
        return (self.tree.text(config) or "") if self.tree.lstat(config) is not None else ""

    def _parse(self, text: str) -> gitconfig.Pairs | None:
        """Parse as long as there is room: an agent can leave a thousand repositories for the next start."""
        if len(text) > self._room:
            return None
        self._room -= len(text)
        return gitconfig.parse(text)


def _absolute(value: str, base: str, home: str) -> str:
    path = home + value[1:] if value.startswith("~/") else value
    return normalize(posixpath.join(base, path))


def is_include(name: str) -> bool:
    return name == "include.path" or (name.startswith("includeif.") and name.endswith(".path"))


def runs_program(name: str, value: str) -> bool:
    """Whether git runs what this key names."""
    section, _, rest = name.partition(".")
    middle, _, last = rest.rpartition(".")
    if name == "core.fsmonitor":
        return value.lower() not in _SWITCHES
    if name in _COMMANDS or section in _ANY_OF_SECTION:
        return bool(value)
    if name.endswith(("url", ".insteadof")) and "ext::" in name + value:
        return True
    if name in _TOOLS:
        return "/" in value
    if name in _PROTOCOLS:
        return value.lower() != "never"
    if name == "sendemail.smtpserver" or (section == "sendemail" and last == "smtpserver"):
        return value.startswith(("/", "~", "!"))
    # Tools have keys of their own, such as annex.secure-erase-command.
    return last.endswith("command") or (bool(middle) and last in _KINDS_OF_COMMANDS.get(section, ()))


def writes_elsewhere(name: str, value: str) -> bool:
    """Whether git writes a file where the configuration says, with a text that somebody else has chosen.

    What a server wants to be kept goes into `http.cookieFile`, and a shell that reads it there obeys it.
    """
    section, _, last = name.rpartition(".")
    is_of_http = section == "http" or section.startswith("http.")
    return (is_of_http and last == "savecookies" and value.lower() not in _OFF) or name == "format.outputdirectory"


DETOUR = "git would write where it leads"
MOST_NAMED = 3
# What is wrong with each, and the command that mends it.
KINDS = {
    LINK: ("a symlink, which git never makes: on this host it would write where that leads", "rm"),
    OTHER: ("neither a file nor a directory, and git on this host would write to it", "rm"),
    UNREAD: ("a directory of git that cannot be listed", "chmod -R u+rwX"),
    BEYOND: ("one directory of git too many: the rest was not looked at", "rm -r"),
}


def detours_in(tree: Tree, guarded: Iterable[Guarded], roots: Iterable[str]) -> list[Entry]:
    """The detours in every directory of git that the guard knows: each has a configuration."""
    return find_detours(tree, dict.fromkeys(_git_directories(guarded)), roots)


def _git_directories(guarded: Iterable[Guarded]) -> list[str]:
    return [
        posixpath.dirname(one.path)
        for one in guarded
        if one.reason == CONFIG and posixpath.basename(one.path) == "config"
    ]


def accept_detours(detours: list[Entry], opened: list[Opening]) -> tuple[Guarded, ...]:
    """The detours that somebody said are theirs. Raises a Problem if there are others.

    An agent may have made them, in a box whose end nobody saw; and whoever starts the next box uses git around it.
    """
    strange = [entry for entry in detours if not any(opening.opens(entry.path) for opening in opened)]
    if strange:
        raise _problem(strange)
    return tuple(Guarded(entry.path, GIT, DETOUR) for entry in detours)


def _problem(detours: list[Entry]) -> Problem:
    first = detours[0]
    more = f", and {len(detours) - 1} more" if len(detours) > 1 else ""
    what, mend = KINDS[first.kind]
    same = [entry.path for entry in detours if entry.kind == first.kind][:MOST_NAMED]
    advice = [f"{mend} {quote(path)}" for path in same]
    advice += ["or, if you made it yourself, start with", f"--writable {quote(first.path)}"]
    return Problem(f"{first.path}{more}: {what}", "\n      ".join(advice))
