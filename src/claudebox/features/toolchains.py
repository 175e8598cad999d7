"""Toolchains of the home that the host's PATH would run, at the same version.

PATH of the box is never the host's. Only directories that a row of the table knows enter, each as the tree that it
needs, read-only; nothing from a place where an agent can write, and nothing that holds secrets.
"""

from __future__ import annotations

import posixpath

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.secrets import contained_secret, refuse_readable
from claudebox.host.system import PLAIN_PATH
from claudebox.host.toolchains import ELF, MIXED, TOKENS, TOOLCHAINS, Toolchain, match
from claudebox.host.tree import Tree
from claudebox.model import ANY_VERSION, FILE, HIDE, RO, SYMLINK, Directory, EnvVar, Finding, Mount, Origin, Plan
from claudebox.paths import expand_home, is_below, is_inside, normalize, parents, shorten_home
from claudebox.record import Record
from claudebox.settings.table import FROM_HOME, OFF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.output.section import Section

RULE = "toolchain"
TOLD = """
From the user's home, read-only and on your PATH, at the user's versions: {}. You cannot add to them (`npm install -g`,
`rustup toolchain install`): install into the project instead.
"""


class Shims(Record):
    """Small programs on PATH that look up, at each call, which version the current directory is to have."""

    name: str
    root: str
    installs: str  # below the root: where a version is; the words are the tool and its version
    variable: str = ""
    directory: str = "shims"
    version_variable: str = ""
    files: tuple[str, ...] = ()  # in the project or above it
    default: str = ""  # below the root


SHIMS = (
    *(
        Shims(
            *(name, f"~/.{name}", "versions/{version}", f"{name.upper()}_ROOT", "shims", f"{name.upper()}_VERSION"),
            *((f".{language}-version",), "version"),
        )
        for name, language in (("pyenv", "python"), ("rbenv", "ruby"), ("nodenv", "node"), ("goenv", "go"))
    ),
    Shims("asdf", "~/.asdf", "installs/{tool}/{version}", "ASDF_DATA_DIR", files=(".tool-versions",)),
    Shims(
        *("mise", "~/.local/share/mise", "installs/{tool}/{version}", "MISE_DATA_DIR"),
        files=("mise.toml", ".mise.toml", ".tool-versions"),
        default="~/.config/mise/config.toml",
    ),
    Shims(
        *("volta", "~/.volta", "tools/image/{tool}/{version}", "VOLTA_HOME", "bin"),
        files=("package.json",),
        default="tools/user/platform.json",
    ),
)

# Where a virtual environment of the project may have its Python from. An agent can write what it says.
PYTHONS = frozenset(("pyenv", "uv", "conda", "mise", "asdf"))

# What of a directory for programs of every kind is shown beside what leads into a tree, if it is no script.
PROGRAMS = frozenset(
    "uv uvx mise fnm volta pnpm bun bunx deno ruff ty pixi just task biome rg fd jq yq hugo zig cmake ninja buf".split()
)

# What of the host's PATH they are

LOCAL = "/usr/local"
MOST_TREES = 40  # each is a mount
MOST_ENTRIES = 300  # of a directory of programs
MAY_HOLD_TOKENS = Origin.of_rule("secret", "may hold tokens")
RUSTUP_KEYS = ("version", "default_toolchain", "default_host_triple", "profile")


class Toolchains(Feature):
    settings = (FROM_HOME,)

    def applies(self, facts: Facts) -> bool:
        """Whether PATH has a directory of the home or below /usr/local, or one that may lead there, as fnm makes it."""
        starts = (f"{facts.home}/", "/run/user/", "/usr/local/", *(f"{home}/" for home in facts.host.person.homes))
        entries = set(facts.host.environ.get("PATH", "").split(":")).difference(PLAIN_PATH)
        return facts.settings[FROM_HOME].text != OFF and any(entry.startswith(starts) for entry in entries)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        return Finder(facts).contribution()

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import READ_ONLY, TOOLS, Row, Section, named

        trees = [mount.path for mount in plan.mounts if mount.kind == RO and mount.origin.is_rule(RULE)]
        if not trees:
            return ()
        names = tuple(shorten_home(path, plan.person.home) for path in trees)
        return (
            Section(
                rows=(Row("tools", names, "(read-only: your PATH has them)", after=READ_ONLY),),
                mounts=tuple(trees),
                told=((TOOLS, TOLD.format(", ".join(named(names)))),),
            ),
        )


class Finder:
    """Goes over the host's PATH once, and collects what of it the box gets."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.tree = facts.tree
        self.home = facts.home
        self.environ = facts.host.environ
        self.trees: dict[str, Mount] = {}
        self.links: dict[str, Mount] = {}
        self.hides: list[Mount] = []
        self.files: list[Mount] = []
        self.path: dict[str, int] = {}
        self.variables: dict[str, EnvVar] = {}
        self.left_out: dict[str, str] = {}

    def contribution(self) -> Contribution:
        rank = Directory.TOOLCHAIN
        for entry in self.environ.get("PATH", "").split(":"):
            if normalize(entry) in PLAIN_PATH:
                rank = Directory.LAST  # what comes later is found later, in the box, too
            elif is_below(normalize(entry), LOCAL) and not self.facts.system.is_nix and self.tree.is_dir(entry):
                self.path.setdefault(normalize(entry), rank)  # the box has it anyway: /usr/local/go/bin
            elif entry.startswith("/"):
                self._take_entry(normalize(entry), rank)
        for name in (".venv", "venv"):
            self._take_interpreter(f"{self.facts.project}/{name}", PYTHONS)
        return Contribution(
            mounts=(*self.trees.values(), *self.links.values(), *self.files),
            hides=tuple(self.hides),
            path=tuple(Directory(path, rank) for path, rank in self.path.items()),
            variables=tuple(self.variables.values()),
            findings=tuple(Finding(Finding.NOTE, path, reason) for path, reason in self.left_out.items()),
        )

    def _take_entry(self, entry: str, rank: int) -> None:
        """One directory of the host's PATH."""
        real = self.tree.resolve(entry)
        if real is None or not is_below(real, self.home):
            return
        for shims in SHIMS:
            root = self._root(shims.root, shims.variable)
            if real == f"{root}/{shims.directory}":
                for version in self._chosen(shims, root):
                    programs = f"{version}/bin"
                    self._take(programs if self.tree.is_dir(programs) else version, rank)
                return
        if real in {expand_home(mixed, self.home) for mixed in MIXED}:
            self._take_some(real, rank)
        else:
            self._take(real, rank, entry)

    def _chosen(self, row: Shims, root: str) -> list[str]:
        """The directories of the versions that count in the current directory, as the user has them."""
        wanted = self._wanted(row, root)[:MOST_VERSIONS]
        found = [_installed(self.tree, root, row.installs, tool, version) for tool, version in wanted]
        return list(dict.fromkeys(self.tree.resolve(directory) or directory for directory in found if directory))

    def _wanted(self, row: Shims, root: str) -> list[tuple[str, str]]:
        """Pairs of a tool and its version. A file that names a tool hides what others further away say of it."""
        if named := self.environ.get(row.version_variable, "") if row.version_variable else "":
            return [("", version) for version in named.split(":")]
        cwd = self.facts.project
        places = [f"{directory}/{file}" for directory in (cwd, *parents(cwd)) for file in row.files]
        if row.default:
            places.append(posixpath.join(root, expand_home(row.default, self.home)))
        wanted: dict[str, list[str]] = {}
        for place in places:
            said: dict[str, list[str]] = {}
            for tool, version in _read(self.tree, place):
                said.setdefault(tool, []).append(version)
            wanted = said | wanted
        return [(tool, version) for tool, versions in wanted.items() for version in versions]

    def _take(self, directory: str, rank: int, named: str = "") -> None:
        """Show the tree that a directory of programs needs, and put it on PATH."""
        if self._show(directory, named):
            self.path.setdefault(directory, rank)

    def _take_some(self, directory: str, rank: int) -> None:
        """Those programs of a mixed directory that a row knows. PATH gets the directory, which the box makes."""
        for name in self.tree.entries(directory)[:MOST_ENTRIES]:
            path = f"{directory}/{name}"
            real = self.tree.resolve(path)
            if real is None or not self.tree.is_executable(real) or name == "claude":
                continue
            if real == path and name in PROGRAMS and self.tree.read(path, limit=len(ELF)) == ELF:
                self._mount(path, "program")
            elif real != path and (row_name := self._show(real, path)):
                self.links[path] = Mount(SYMLINK, path, Origin.of_rule(RULE, row_name), source=real)
            else:
                continue
            self.path.setdefault(directory, rank)

    def _root(self, root: str, variable: str) -> str:
        """Where a version manager keeps its things: where its variable says, if that is in the home."""
        named = normalize(self.environ.get(variable, "") or "/") if variable else "/"
        written = named if is_below(named, self.home) else expand_home(root, self.home)
        return self.tree.resolve(written) or written

    def _show(self, path: str, named: str = "", names: frozenset[str] = frozenset()) -> str:
        """Show the tree that a row knows for this path. Returns its name; "" if none does, or it may not be shown."""
        for row in TOOLCHAINS:
            tree = match(path, self._root(row.root, row.variable), row.tree)
            if tree and (not row.mark or self.tree.exists(f"{tree}/{row.mark}")) and (not names or row.name in names):
                is_new = tree not in self.trees
                if not self._mount(tree, row.name, named):
                    return ""
                if is_new:
                    self._complete(row, tree)
                return row.name
        return ""

    def _mount(self, tree: str, name: str, named: str = "") -> bool:
        if tree in self.trees:
            return True
        refusal = self._refusal(tree, named) if len(self.trees) < MOST_TREES else "there are too many"
        if refusal:
            self.left_out[tree] = f"is on PATH, and not in the box: {refusal}"
            return False
        origin = Origin.of_rule(RULE, name)
        self.trees[tree] = Mount(RO, tree, origin, source=tree, is_dir=self.tree.is_dir(tree), consent=ANY_VERSION)
        environments = [tree, *(f"{tree}/envs/{name}" for name in self.tree.entries(f"{tree}/envs"))]
        for token in (self.tree.resolve(f"{place}/{token}") for place in environments for token in TOKENS):
            # A symlink that leaves the tree leads nowhere in the box: nothing to hide.
            if token is not None and is_below(token, tree):
                self.hides.append(Mount(HIDE, token, MAY_HOLD_TOKENS, is_dir=self.tree.is_dir(token)))
        return True

    def _refusal(self, tree: str, named: str) -> str:
        reach, places = self.facts.reach, self.facts.places
        if reach.enters(tree) or reach.leads_through(tree) or (named and reach.can_turn(named)):
            return "an agent can write there"
        mixed = [expand_home(written, self.home) for written in MIXED]
        if any(is_inside(self.tree.resolve(path) or path, tree) for path in mixed):
            return "people keep scripts with tokens there"
        if refused := refuse_readable(tree, self.facts.host.person.homes, places):
            return refused
        secret = contained_secret(tree, places)
        return f"{secret.path} is in it ({secret.reason})" if secret is not None and secret.exists else ""

    def _complete(self, row: Toolchain, tree: str) -> None:
        """What else a toolchain needs."""
        if row.sets:
            self.variables.setdefault(row.sets, EnvVar(row.sets, tree, Origin.of_rule(RULE, row.name)))
        if row.name == "cargo" and self.tree.is_executable(f"{tree}/rustup"):
            self._add_rustup()
        self._take_interpreter(tree)

    def _add_rustup(self) -> None:
        """cargo and rustc are rustup, which chooses one of its toolchains. Its settings name projects of the user."""
        root = self._root("~/.rustup", "RUSTUP_HOME")
        if not self.tree.is_dir(f"{root}/toolchains") or not self._mount(f"{root}/toolchains", "rustup"):
            return
        lines = (self.tree.text(f"{root}/settings.toml") or "").split("\n[")[0].splitlines()
        kept = [line for line in lines if line.isprintable() and line.split("=")[0].strip() in RUSTUP_KEYS]
        content = "".join(f"{line}\n" for line in kept).encode()
        made = Origin.of_rule(RULE, "rustup's default, without your other settings")
        self.files.append(Mount(FILE, f"{root}/settings.toml", made, content=content, mode=0o644))
        if root != f"{self.home}/.rustup":
            self.variables["RUSTUP_HOME"] = EnvVar("RUSTUP_HOME", root, Origin.of_rule(RULE, "rustup"))

    def _take_interpreter(self, environment: str, names: frozenset[str] = frozenset()) -> None:
        """A virtual environment is of no use without the Python that it was made with: that one is shown, too.

        With names, only toolchains that are called so are: an agent can write what its own environment says.
        """
        for line in (self.tree.text(f"{environment}/pyvenv.cfg") or "").splitlines():
            key, _, value = line.partition("=")
            real = self.tree.resolve(value.strip()) if key.strip() == "home" and value.strip().startswith("/") else None
            if real is not None and is_below(real, self.home):
                self._show(real, names=names)


MOST_VERSIONS = 20
LARGEST = 1 << 18  # bytes of a file that is read


def _read(tree: Tree, path: str) -> list[tuple[str, str]]:
    content = tree.read(path, limit=LARGEST)
    if not content:
        return []
    text = content.decode(errors="replace")
    if path.endswith(".json"):
        return _in_json(text)
    if path.endswith(".toml"):
        return _in_toml(text)
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    if path.endswith(".tool-versions"):
        return [(words[0], version) for words in lines if len(words) > 1 for version in words[1:]]
    return [("", version) for words in lines for version in words]


def _in_json(text: str) -> list[tuple[str, str]]:
    """Volta's own: the default in platform.json, and what a project pins in package.json."""
    import json

    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):  # brackets in brackets: an agent can write the file
        return []
    said = whole.get("volta", whole if "name" not in whole else None) if isinstance(whole, dict) else None
    if not isinstance(said, dict):
        return []
    node = said.get("node")
    said = {**said, **({"node": node.get("runtime"), "npm": node.get("npm")} if isinstance(node, dict) else {})}
    tools = ("node", "npm", "yarn", "pnpm")
    return [(tool, version) for tool in tools if isinstance(version := said.get(tool), str)]


def _in_toml(text: str) -> list[tuple[str, str]]:
    """The table of tools of mise, if it is written plainly: `node = "22"` or `python = ["3.12", "3.11"]`."""
    found, is_inside = [], False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            is_inside = line == "[tools]"
        elif is_inside and "=" in line and not line.startswith("#"):
            tool, _, value = line.partition("=")
            words = value.partition("#")[0].strip(" []").split(",")
            found += [(tool.strip().strip("'\""), word.strip().strip("'\"")) for word in words]
    return [(tool, version) for tool, version in found if version]


def _installed(tree: Tree, root: str, pattern: str, tool: str, version: str) -> str:
    """Where this version is; "" if it is not installed. `3.12` stands for the latest that begins like that."""
    if not _is_plain(version) or (tool and not _is_plain(tool)):
        return ""
    path = f"{root}/{pattern.format(tool=tool, version=version)}"
    if tree.is_dir(path):
        return path
    above = path.rpartition("/")[0]
    similar = [name for name in tree.entries(above) if name.startswith(f"{version}.")]
    return f"{above}/{max(similar, key=_number)}" if similar else ""


def _is_plain(name: str) -> bool:
    return bool(name) and "/" not in name and not name.startswith(".") and name.isprintable()


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isascii() and part.isdigit() else -1 for part in version.split("."))
