"""Finds the host's own ways into what the box can write: what lies there runs although nobody goes there.

People keep their configuration in a repository and link to it from their home, or have a directory of a project on
PATH. Whoever changes such a file is obeyed at the next shell. A home may have a million files, so only those places are
looked at from which something is run, a few levels deep. What the text of a file or a variable names (a script in
`.bashrc`, in a unit of systemd) is not looked for: that would take a parser for each language.
"""

from __future__ import annotations

import posixpath
import stat

from claudebox.host import Host
from claudebox.host.tree import Tree
from claudebox.host.walk import find_inodes, find_links
from claudebox.model import Guarded, Ways
from claudebox.overlay.table import FILLED
from claudebox.paths import is_below, is_inside, normalize, parents, shorten_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WAYS = "ways"
LEADS = "leads here"
ON_PATH = "it is on your PATH"
SHADOWING = "your PATH has it before the program of that name"

MOST_LOOKED_AT = 2000  # entries of ~/.config, and of all directories together that are looked at for no special reason
MOST_OF_OTHERS = 500  # entries of each other directory

# Directories of the home whose symlinks are looked at, and how deep. The most telling come first, as there is an end.
DEPTHS = (
    *((".local/bin", 1), ("bin", 2), (".config", 4), (".claude", 3), (".ssh", 2), (".vim", 4), (".emacs.d", 3)),
    *((".local/share/applications", 1), (".local/share/systemd", 3), (".local/share/dbus-1", 2)),
    *((".local/share/fish", 2), (".local/share/nvim", 4), (".local/share/nautilus", 2), (".oh-my-zsh/custom", 3)),
)
OBEYED = (".local/bin", "bin", ".config", ".vim", ".emacs.d")  # in which a project may lie, too
# Of the other directories that begin with a dot, only the first level is looked at; of these not even that.
NOT_RUN = frozenset(".cache .npm .rustup .gradle .mozilla .thunderbird .wine .steam .Trash .git".split())
DISTRIBUTIONS = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/games")  # not the user's own, and large


def find_ways(host: Host, roots: tuple[str, ...]) -> Ways:
    """Everything by which the host runs something in these directories, each with the first way that leads there."""
    finder = Finder(host, roots)
    ways = reversed([*finder.by_links(), *finder.by_other_names(), *finder.by_path()])
    found = sorted(dict(ways).items())
    return Ways(
        guarded=tuple(Guarded(place, WAYS, why) for place, why in found if not finder.is_filled(place)),
        made=tuple((place, why) for place, why in found if finder.is_filled(place)),
        filled=tuple(dict.fromkeys(finder.filled)),
        above=tuple(finder.above.items()),
        has_here=any(entry in ("", ".") for entry in finder.path),
        commands=tuple(finder.commands),
    )


def find_shadowing(tree: Tree, ways: Ways) -> tuple[Guarded, ...]:
    """What tools have put on PATH and is run instead of a program of the host that has the same name."""
    programs = {name for directory in ways.commands for name in tree.entries(directory)} if ways.filled else frozenset()
    found = ((directory, name) for directory in ways.filled for name in tree.entries(directory))
    return tuple(Guarded(f"{directory}/{name}", WAYS, SHADOWING) for directory, name in found if name in programs)


class Finder:
    """Finds places in some directories, each with the reason why the host runs what is there."""

    def __init__(self, host: Host, roots: tuple[str, ...]) -> None:
        self.tree = host.tree
        self.roots = roots
        self.begins = tuple(f"{root}/" for root in roots)
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
                yield place, f"{shorten_home(link, self.person.home)} {LEADS}"
            if link.startswith(self.obeyed):
                self._note_above(link)

    def _note_above(self, way: str) -> None:
        """Note a root that lies in what the host obeys by this way: nothing but all of it could be held."""
        real = self.tree.resolve(way)
        if real is not None and not any(is_inside(home, real) for home in self.person.homes):
            self.above.update(
                (root, shorten_home(way, self.person.home)) for root in self.roots if is_below(root, real)
            )

    def by_other_names(self) -> Iterator[tuple[str, str]]:
        """Files of the project that are a dot file of the home, too, by a hard link."""
        files = {}
        homes = ((home, name) for home in self.person.homes for name in self.tree.entries(home))
        for file in (f"{home}/{name}" for home, name in homes if name.startswith(".")):
            status = self.tree.lstat(file)
            if status is not None and status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
                files[status.st_ino] = file
        for root in self.roots if files else ():
            for place, inode in (find_inodes(self.tree, root, frozenset(files)) or {}).items():
                yield place, f"{shorten_home(files[inode], self.person.home)} is the same file"

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
