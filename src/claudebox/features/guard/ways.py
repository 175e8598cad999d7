"""Finds the host's own ways into what the box can write: what lies there runs although nobody goes there.

People keep their configuration in a repository and link to it from their home. A directory of a project is on PATH. A
shell, a unit of systemd or a crontab names a script of it. Whoever changes such a file is obeyed at the next shell.

A home may have a million files, so only those places are looked at from which something is run, a few levels deep.
"""

from __future__ import annotations

import posixpath
import stat

from claudebox.features.guard.naming import FILES, Naming
from claudebox.features.guard.ordinary import USE
from claudebox.host import Host
from claudebox.host.tree import Tree
from claudebox.host.walk import SKIPPED, find_inodes, find_links
from claudebox.model import Guarded
from claudebox.paths import is_below, is_inside, normalize, parents, shorten_home
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WAYS = "ways"
LEADS = "leads here"
ON_PATH = "it is on your PATH"
SHADOWING = "your PATH has it before the program of that name"

MOST_LOOKED_AT = 2000  # entries of ~/.config, and of all directories together that are looked at for no special reason
MOST_OF_OTHERS = 500  # entries of each other directory
MOST_WAYS = 200  # more than these are held by the directories that they are in

# Directories of the home whose symlinks are looked at, and how deep. The most telling come first, as there is an end.
DEPTHS = (
    *((".local/bin", 1), ("bin", 2), (".config", 4), (".claude", 3), (".ssh", 2), (".vim", 4), (".emacs.d", 3)),
    *((".local/share/applications", 1), (".local/share/systemd", 3), (".local/share/dbus-1", 2)),
    *((".local/share/fish", 2), (".local/share/nvim", 4), (".local/share/nautilus", 2), (".oh-my-zsh/custom", 3)),
)
OBEYED = (".local/bin", "bin", ".config", ".vim", ".emacs.d")  # in which a project may lie, too
# Of the other directories that begin with a dot, only the first level is looked at; of these not even that.
NOT_RUN = frozenset(".cache .npm .rustup .gradle .mozilla .thunderbird .wine .steam .Trash .git".split())
# Directories of programs for all accounts into which people link their own, and what is run for all.
SYSTEMS = (
    *("/usr/local/bin", "/usr/local/sbin", "/etc/profile.d", "/etc/systemd/system", "/etc/systemd/user"),
    *("/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly"),
)
# These are the distribution's own, and large, or are among the others.
DISTRIBUTIONS = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/games", "/usr/local/bin", "/usr/local/sbin")
# What tools put into the project and make again.
FILLED = SKIPPED.keys() - {".git", ".hg", ".svn", ".jj", ".direnv"}
# Variables that name something to be run or obeyed.
VARIABLES = (
    *("BASH_ENV", "ENV", "ZDOTDIR", "FPATH", "INPUTRC", "LD_PRELOAD", "PYTHONSTARTUP", "NODE_OPTIONS", "PERL5OPT"),
    *("RUBYOPT", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "LESSOPEN", "LESSCLOSE", "PROMPT_COMMAND"),
    *("GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS"),
    *("SUDO_ASKPASS", "VIMINIT", "XDG_CONFIG_HOME", "STARSHIP_CONFIG", "GIT_CONFIG_GLOBAL", "GIT_EXEC_PATH"),
)


class Ways(Record):
    """What was found, and which directories of PATH are out of the agent's reach."""

    guarded: tuple[Guarded, ...] = ()
    made: tuple[Guarded, ...] = ()  # what tools make anew in the project: it cannot be held either
    filled: tuple[str, ...] = ()  # directories of PATH that tools fill with programs: they cannot be held
    above: tuple[tuple[str, str], ...] = ()  # roots that lie in what the host obeys, and by which way
    has_here: bool = False  # whether PATH has the directory in which the user happens to be
    commands: tuple[str, ...] = ()


def find_ways(host: Host, roots: tuple[str, ...]) -> Ways:
    """Everything by which the host runs something in these directories, each with the first way that leads there."""
    finder = Finder(host, roots)
    found = dict(
        reversed(
            [
                *(*finder.by_variables(), *finder.by_names(), *finder.by_links()),
                *(*finder.by_other_names(), *finder.by_path()),
            ]
        )
    )
    guarded, made = [], []
    for place, reason in sorted(found.items()):
        if not finder.is_filled(place):
            guarded.append(Guarded(place, WAYS, reason))
        else:  # who links to what was built asks for it by name, unlike a shell that loads it at each start
            made.append(Guarded(place, USE if reason.endswith(LEADS) else WAYS, reason))
    return Ways(
        guarded=tuple(guarded) if len(guarded) <= MOST_WAYS else _by_directories(guarded, roots),
        made=tuple(made),
        filled=tuple(dict.fromkeys(finder.filled)),
        above=tuple(finder.above.items()),
        has_here=any(entry in ("", ".") for entry in finder.path),
        commands=tuple(finder.commands),
    )


def find_shadowing(tree: Tree, filled: tuple[str, ...], commands: tuple[str, ...]) -> tuple[Guarded, ...]:
    """What lies in these directories and is run instead of a program of the host that has the same name."""
    programs = {name for directory in commands for name in tree.entries(directory)} if filled else frozenset()
    return tuple(
        Guarded(f"{directory}/{name}", WAYS, SHADOWING)
        for directory in filled
        for name in tree.entries(directory)
        if name in programs
    )


class Finder:
    """Finds places in some directories, each with the reason why the host runs what is there."""

    def __init__(self, host: Host, roots: tuple[str, ...]) -> None:
        self.tree = host.tree
        self.roots = roots
        self.begins = tuple(f"{root}/" for root in roots)
        self.environ = host.environ
        self.person = host.person
        self.path = host.environ.get("PATH", "").split(":") if host.environ.get("PATH") else []
        self.filled: list[str] = []
        self.commands: list[str] = []
        self.above: dict[str, str] = {}
        self.obeyed = tuple(f"{home}/{directory}/" for home in host.person.homes for directory in OBEYED)

    def by_path(self) -> Iterator[tuple[str, str]]:
        """Directories of PATH, wherever in them they lead, and what is linked in those that the user fills."""
        for entry in dict.fromkeys(self.path):
            if entry in ("", "."):
                continue
            for directory in [entry] if entry.startswith("/") else [f"{root}/{entry}" for root in self.roots]:
                yield from self._by_directory(normalize(directory))

    def _by_directory(self, directory: str) -> Iterator[tuple[str, str]]:
        places = list(self._places(directory))
        for place in places:
            if self.is_filled(place):
                self.filled.append(place)
            else:
                yield place, ON_PATH
        if not places:
            self.commands.append(directory)
            if directory not in DISTRIBUTIONS and not directory.startswith("/nix/store/"):
                yield from self._through(find_links(self.tree, directory, 1, [MOST_OF_OTHERS]))

    def is_filled(self, place: str) -> bool:
        """Whether tools put programs there: a virtual environment, packages, what was built."""
        return any(posixpath.basename(above) in FILLED for above in (place, *parents(place)) if self._is_ours(above))

    def by_links(self) -> Iterator[tuple[str, str]]:
        for directory in SYSTEMS:
            yield from self._through(find_links(self.tree, directory, 1, [MOST_OF_OTHERS]))
        for home in self.person.homes:
            for directory in OBEYED:
                self._note_above(f"{home}/{directory}")
            yield from self._through(find_links(self.tree, home, 1, [MOST_LOOKED_AT], begin=(".", "bin")))
            for directory, depth in DEPTHS:
                room = [MOST_LOOKED_AT if directory == ".config" else MOST_OF_OTHERS]
                yield from self._through(find_links(self.tree, f"{home}/{directory}", depth, room))
            room = [MOST_LOOKED_AT]
            known = {*NOT_RUN, *(directory for directory, _ in DEPTHS)}
            for name in self.tree.entries(home):
                if name.startswith(".") and name not in known:
                    yield from self._through(find_links(self.tree, f"{home}/{name}", 1, room))

    def _through(self, links: Iterable[str]) -> Iterator[tuple[str, str]]:
        for link in links:
            for place in self._places(link):
                yield place, f"{self._short(link)} {LEADS}"
            if link.startswith(self.obeyed):
                self._note_above(link)

    def _note_above(self, way: str) -> None:
        """Note a root that lies in what the host obeys by this way: nothing but all of it could be held."""
        real = self.tree.resolve(way)
        if real is not None and not any(is_inside(home, real) for home in self.person.homes):
            self.above.update((root, self._short(way)) for root in self.roots if is_below(root, real))

    def by_other_names(self) -> Iterator[tuple[str, str]]:
        """Files of the project that are a file of the home, too, by a hard link."""
        files = {}
        for file in (f"{home}/{name}" for home in self.person.homes for name in FILES):
            status = self.tree.lstat(file)
            if status is not None and status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
                files[status.st_ino] = file
        for root in self.roots if files else ():
            for place, inode in (find_inodes(self.tree, root, frozenset(files)) or {}).items():
                yield place, f"{self._short(files[inode])} is the same file"

    def by_names(self) -> Iterator[tuple[str, str]]:
        """What is named in the text of files that the host obeys."""
        naming = Naming(self.tree, self.person, self.environ, self.roots)
        for place, file in naming.find():
            for led in (place, *self._places(place)) if self.tree.exists(place) else (place,):
                yield led, f"{self._short(file)} names it"

    def by_variables(self) -> Iterator[tuple[str, str]]:
        for name in VARIABLES:
            for word in self.environ.get(name, "").replace(":", " ").replace("=", " ").split():
                if word.startswith("/"):
                    for place in self._places(normalize(word)):
                        yield place, f"your variable {name} names it"

    def _places(self, path: str) -> Iterator[str]:
        """Where a path leads to, if the agent can write there, and the symlinks on the way that it can write."""
        real, links = self.tree.follow(path)
        if real is None:
            link, target = links[-1] if links else ("", path)
            real = normalize(posixpath.join(posixpath.dirname(link), target))
        for place in (*(link for link, _ in links), real):
            if self._is_ours(place):
                yield place

    def _is_ours(self, place: str) -> bool:
        return place.startswith(self.begins) or place in self.roots

    def _short(self, path: str) -> str:
        return shorten_home(path, self.person.home)


def _by_directories(guarded: list[Guarded], roots: tuple[str, ...]) -> tuple[Guarded, ...]:
    """One place for all that are in the same directory of a root: a mount for each would be too many."""
    found: dict[str, Guarded] = {}
    for one in guarded:
        root = next(root for root in roots if is_inside(one.path, root))
        first = f"{root}/{one.path[len(root) + 1 :].partition('/')[0]}" if is_below(one.path, root) else root
        found.setdefault(first, one.replace(path=first))
    return tuple(found.values())
