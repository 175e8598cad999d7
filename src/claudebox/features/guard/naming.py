"""Finds what the user's own files name in the project: `source ~/dotfiles/aliases`, `ExecStart=%h/shop/serve`.

The files are read for paths alone; nothing else of them is kept or shown. A directory that is merely mentioned, as in
`alias shop='cd ~/shop'`, does not count. One does whose files are all meant, or that is put on some search path.
"""

from __future__ import annotations

import posixpath

from claudebox.host.tree import Tree
from claudebox.model import Person
from claudebox.paths import is_inside, normalize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES = 1 << 18
MOST_FILES = 300
MOST_NAMED = 100  # files of the project that are read because one of these names them
SMALL_SCRIPT = 1 << 13

# Files of the home that are obeyed without being named, and directories of such files, with how their names end.
FILES = (
    ".profile .bash_profile .bash_login .zshenv .zprofile .bashrc .bash_aliases .bash_logout .zshrc .zlogin .zlogout "
    ".kshrc .xinitrc .xprofile .xsession .xsessionrc .inputrc .tmux.conf .screenrc .vimrc .gvimrc .ideavimrc .emacs "
    ".emacs.d/init.el .gdbinit .lldbinit .direnvrc .envrc .ssh/config .pam_environment .Rprofile .irbrc .pryrc .ghci "
    ".config/fish/config.fish .config/nvim/init.vim .config/nvim/init.lua .config/vim/vimrc .config/emacs/init.el "
    ".config/tmux/tmux.conf .config/zsh/.zshrc .config/zsh/.zshenv .config/direnv/direnvrc .config/direnv/direnv.toml "
    ".config/starship.toml .config/mise/config.toml .config/i3/config .config/sway/config .config/hypr/hyprland.conf "
    ".config/kitty/kitty.conf .config/alacritty/alacritty.toml .config/ghostty/config .config/wezterm/wezterm.lua "
    ".config/helix/config.toml .config/helix/languages.toml .config/nushell/config.nu .config/nushell/env.nu "
    ".config/Code/User/settings.json .config/Code/User/tasks.json .config/git/config .gitconfig .cargo/config.toml "
    ".claude/settings.json .claude/settings.local.json"
).split()
DIRECTORIES = (
    *((".config/systemd/user", ""), (".local/share/systemd/user", ""), (".config/autostart", ".desktop")),
    *((".local/share/applications", ".desktop"), (".local/share/dbus-1/services", ""), (".config/environment.d", "")),
    *((".config/fish/conf.d", ".fish"), (".config/fish/functions", ".fish"), (".bashrc.d", ""), (".zshrc.d", "")),
    *((".zsh", ""), (".profile.d", ""), (".ssh/config.d", ""), ("bin", ""), (".local/bin", "")),
)
# The same for all accounts, where what the user owns may be run as root.
SYSTEMS_FILES = "/etc/crontab /etc/profile /etc/bash.bashrc /etc/zsh/zshrc /etc/environment /etc/rc.local".split()
SYSTEMS_DIRECTORIES = ("/etc/systemd/system", "/etc/systemd/user", "/etc/cron.d", "/etc/profile.d")
CRONTABS = ("/var/spool/cron/crontabs", "/var/spool/cron")  # usually nobody but root can read them

_ENDS_OF_PATHS = " \t\n\"'`;&|<>():,=\\#"
_PATTERN = "$*?[{"
_COMMENTS = ("#", "--", "//", ";")
_WHERE = ("WorkingDirectory=", "Path=")  # units and entries of a desktop


class Naming:
    """Finds the names of places in some directories, as people write them."""

    def __init__(self, tree: Tree, person: Person, environ: dict[str, str], roots: tuple[str, ...]) -> None:
        self.tree = tree
        self.person = person
        called = {person.home: ("~", "%h", f"~{person.name}", "$HOME", "${HOME}", '"$HOME"', '"${HOME}"')}
        for name, value in environ.items():
            if value.startswith("/") and name not in ("PWD", "OLDPWD"):
                called[value.rstrip("/")] = (*called.get(value.rstrip("/"), ()), f"${name}", f"${{{name}}}")
        self.spelled = [
            (f"{short}{root[len(place) :]}", root)
            for root in roots
            for place, shorts in called.items()
            if is_inside(root, place) and place
            for short in (place, *shorts)
        ]
        self.spelled += [(root, root) for root in roots]
        self.spelled = list(dict.fromkeys(self.spelled))
        # Words without which a text names nothing of interest. Names of variables are added as they are found.
        self.telling = {posixpath.basename(root) for root in roots}
        self.telling |= {text[1:].strip("{}") for text, _ in self.spelled if text.startswith("$") and "/" not in text}

    def find(self) -> Iterator[tuple[str, str]]:
        """Each place with the file that names it."""
        seen: set[str] = set()
        waiting = list(self._files())
        for file in waiting:
            content = self.tree.read(file, MOST_BYTES)
            text = content.decode(errors="surrogateescape") if content else ""
            if any(name in text for name in self.telling):
                for place in self._named(text):
                    yield place, file
                    # What is obeyed may name more. It is held itself, so that an agent cannot add to it.
                    waiting += [place] if place not in seen and len(seen) < MOST_NAMED else []
                    seen.add(place)

    def _files(self) -> Iterator[str]:
        for home in self.person.homes:
            names = set(self.tree.entries(home))
            for name in FILES:
                if name.partition("/")[0] in names:
                    yield f"{home}/{name}"
            for directory, end in DIRECTORIES:
                if directory.partition("/")[0] in names:
                    yield from self._files_in(f"{home}/{directory}", end)
        yield from (f"{directory}/{self.person.name}" for directory in CRONTABS)
        yield from SYSTEMS_FILES
        for directory in SYSTEMS_DIRECTORIES:
            yield from self._files_in(directory, "")

    def _files_in(self, directory: str, end: str) -> Iterator[str]:
        is_of_programs = posixpath.basename(directory) == "bin"
        for name in self.tree.entries(directory)[:MOST_FILES]:
            path = f"{directory}/{name}"
            status = self.tree.lstat(path) if name.endswith(end) else None
            if status is None or (is_of_programs and status.st_size > SMALL_SCRIPT):
                continue
            if directory.startswith("/etc/") and self.tree.is_link(path):
                continue  # to a unit of the distribution
            if self.tree.is_plain_directory(path):  # such as shop.service.d
                yield from (f"{path}/{below}" for below in self.tree.entries(path)[:MOST_FILES])
            else:
                yield path

    def _named(self, text: str) -> Iterator[str]:
        self._learn_variables(text)
        lines = [line for line in text.splitlines() if not line.lstrip().startswith(_COMMENTS)]
        for line in lines:
            for spelling, root in self.spelled if any(name in line for name in self.telling) else ():
                start = line.find(spelling)
                while start >= 0:
                    end = start + len(spelling)
                    if not (start and spelling.startswith("/") and line[start - 1].isalnum()):
                        yield from self._place(line, end, root)
                        if line.startswith(_WHERE):
                            base = normalize(root + line[end:].strip("\"' "))
                            for other in lines:
                                yield from self._beside(other.partition("=")[2], base) if "Exec" in other else ()
                    start = line.find(spelling, end)

    def _learn_variables(self, text: str) -> None:
        """`$DOTFILES` after `DOTFILES=~/dotfiles`, in this text and those after it."""
        for spelling, root in tuple(self.spelled):
            for before in text.split(spelling)[:-1]:
                words = before.rstrip("\"'").rpartition("\n")[2].rstrip().removesuffix("=").split()
                if words and words[-1].isidentifier() and words[-1] not in self.telling:
                    self.telling.add(words[-1])
                    self.spelled += [(f"${words[-1]}", root), (f"${{{words[-1]}}}", root)]

    def _place(self, line: str, end: int, root: str) -> Iterator[str]:
        """The place that is named here, if it counts. Its name goes on after the root, or the line is about that."""
        rest = line[end:].lstrip("\"'") if line[end : end + 1] in "\"'" else line[end:]
        length = next((at for at, one in enumerate(rest) if one in _ENDS_OF_PATHS), len(rest))
        name = rest[:length]
        if name and not name.startswith("/"):
            return  # another name that begins the same
        pattern = next((at for at, one in enumerate(name) if one in _PATTERN), -1)
        whole = name[: name.rfind("/", 0, pattern) + 1] if pattern >= 0 else name
        place = normalize(f"{root}{whole}")
        if place == root:
            yield from self._beside(line, root)
        elif is_inside(place, root) and self._counts(place, line, is_pattern=pattern >= 0):
            yield place

    def _counts(self, place: str, line: str, *, is_pattern: bool) -> bool:
        lower = line.lower()
        is_searched = "path" in lower and "cdpath" not in lower and "gopath" not in lower
        return not self.tree.is_dir(place) or is_pattern or is_searched

    def _beside(self, line: str, root: str) -> Iterator[str]:
        """Files of the root that the line names: `cd ~/shop && ./backup.sh`."""
        for word in line.split():
            name = word.strip("\"'`;&|()").removeprefix("./")
            if name and not name.startswith(("/", "~", "$", "-")) and self.tree.is_file(f"{root}/{name}"):
                yield normalize(f"{root}/{name}")
