"""Claude's home in the box: the project's own state, with the user's configuration laid over it, read-only."""

from __future__ import annotations

import posixpath

from claudebox.host.tree import Tree
from claudebox.model import (
    ABSENT,
    RO,
    RW,
    SYMLINK,
    EnvVar,
    Login,
    Mount,
    Origin,
    Person,
    Preparation,
)
from claudebox.paths import is_inside
from claudebox.problem import Problem
from claudebox.quoting import quote
from claudebox.reach import TrustedSource
from claudebox.record import Record
from claudebox.state import STATE

RULE = "claude"
HISTORY = Origin.of_rule(RULE, "conversations and state of this project")
IMPORTED = Origin.of_rule(RULE, "your configuration")
NONE_THERE = Origin.of_rule(RULE, "you have none")
AWARENESS = Origin.of_rule(RULE, "what the agent is told about the box")
AUTH = Origin.of_option("--auth", "Claude's login, shared by all boxes")
VARIABLES = Origin.of_rule(RULE, "so that Claude finds its home and leaves its installation alone")

# The user's own configuration. Directories are there in every box, empty if need be: what is mounted cannot be
# replaced from inside by a symlink, into which a later launch would mount.
IMPORTED_DIRECTORIES = ("agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills")
MANAGED = "/etc/claude-code"
DEFAULT_MEMORY = "# Memory\n\nYou have no CLAUDE.md of your own. claudebox shows this one in its place.\n"


class ClaudeHome(Record):
    """Where things are, on the host and in the box."""

    instance: str  # on the host
    place: str  # in the box
    users: str  # the user's own ~/.claude on the host
    auth_directory: str  # on the host
    auth_place: str  # in the box

    @property
    def state(self) -> str:
        return f"{self.instance}/claude"


def claude_home(instance: str, host_home: str, person: Person, environ: dict[str, str]) -> ClaudeHome:
    users = environ.get("CLAUDE_CONFIG_DIR", "")
    return ClaudeHome(
        instance=instance,
        place=f"{person.home}/.claude",
        users=posixpath.normpath(users) if users.startswith("/") else f"{host_home}/.claude",
        auth_directory=f"{host_home}/{STATE}/auth",
        auth_place=f"/run/user/{person.uid}/claude-auth",
    )


def find_login(trusted: TrustedSource, home: ClaudeHome, host_home: str) -> Login:
    """The file of a login for boxes only, else that of the host's own Claude, else none: then boxes keep their own."""
    files = (f"{host_home}/{STATE}/.credentials.json", f"{home.users}/.credentials.json")
    found = (trusted.find(file, is_dir=False) for file in files)
    own_file = f"{home.state}/.credentials.json"
    return Login(next(filter(None, found), ""), home.auth_directory, own_file, home.auth_place)


def check_state(tree: Tree, home: ClaudeHome, uid: int) -> None:
    """Raise if the state is not what this program left there."""
    state_root = home.auth_directory.rpartition("/")[0]
    for directory in (state_root, f"{state_root}/instances", home.instance, home.state):
        status = tree.lstat(directory)
        if status is None:
            continue
        if not tree.is_plain_directory(directory):
            raise Problem(f"{directory} is not a directory", f"mv {quote(directory)} {quote(directory + '.old')}")
        if status.st_uid != uid:
            raise Problem(
                f"{directory} belongs to another user (uid {status.st_uid})",
                f"sudo chown -R $(id -u) {quote(state_root)}",
            )


def home_mounts(home: ClaudeHome, trusted: TrustedSource) -> list[Mount]:
    mounts = [Mount(RW, home.place, HISTORY, source=home.state)]
    for name in IMPORTED_DIRECTORIES:
        real = trusted.find(f"{home.users}/{name}", is_dir=True)
        path = f"{home.place}/{name}"
        if real is None:
            mounts.append(Mount(ABSENT, path, NONE_THERE, source=f"{home.instance}/empty"))
        else:
            mounts.append(Mount(RO, path, IMPORTED, source=real))
            mounts += _linked_entries(real, trusted)
    memory = trusted.find(f"{home.users}/CLAUDE.md", is_dir=False)
    mounts.append(_imported_file(home, "CLAUDE.md", memory or f"{home.instance}/CLAUDE.md"))
    keys = trusted.find(f"{home.users}/keybindings.json", is_dir=False)
    return [*mounts, _imported_file(home, "keybindings.json", keys)] if keys else mounts


def _imported_file(home: ClaudeHome, name: str, source: str) -> Mount:
    return Mount(RO, f"{home.place}/{name}", IMPORTED, source=source, is_dir=False)


def _linked_entries(directory: str, trusted: TrustedSource) -> list[Mount]:
    """What the entries of a directory lead to, where people keep them in a repository of dotfiles."""
    tree = trusted.tree
    links = [f"{directory}/{name}" for name in tree.entries(directory) if tree.is_link(f"{directory}/{name}")]
    # What is in the project is in the box already.
    outward = [path for path in links if not is_inside(tree.resolve(path) or "", trusted.reach.project)]
    return [
        Mount(RO, real, IMPORTED, source=real, is_dir=tree.is_dir(real))
        for path in outward
        if (real := trusted.find(path, is_dir=tree.is_dir(path)))
    ]


def managed_mounts(tree: Tree, home: ClaudeHome) -> list[Mount]:
    """What the agent is told goes where an organisation's policy would, which no option of Claude leaves out."""
    entries = tree.entries(MANAGED)
    # Its CLAUDE.md is told as a part of ours.
    kept = [f"{MANAGED}/{name}" for name in entries if name not in ("CLAUDE.md", "SANDBOX.md")]
    mounts = [Mount(RO, path, IMPORTED, source=path, is_dir=tree.is_dir(path)) for path in kept]
    mounts.append(Mount(RO, f"{MANAGED}/SANDBOX.md", AWARENESS, source=f"{home.instance}/SANDBOX.md", is_dir=False))
    mounts.append(Mount(SYMLINK, f"{MANAGED}/CLAUDE.md", AWARENESS, source="SANDBOX.md"))
    return mounts


def auth_mounts(home: ClaudeHome) -> list[Mount]:
    return [Mount(RW, home.auth_place, AUTH, source=home.auth_directory)]


def home_variables(home: ClaudeHome, *, with_login: bool) -> list[EnvVar]:
    values = {"CLAUDE_CONFIG_DIR": home.place, "DISABLE_AUTOUPDATER": "1", "DISABLE_INSTALLATION_CHECKS": "1"}
    if with_login:
        # A directory of its own: Claude replaces the file by rename, which no mount of a file survives.
        values["CLAUDE_SECURESTORAGE_CONFIG_DIR"] = home.auth_place
    return [EnvVar(name, value, VARIABLES) for name, value in values.items()]


def home_preparations(home: ClaudeHome, root: str, mounts: tuple[Mount, ...], *, with_login: bool) -> list[Preparation]:
    """The directories, and something to mount on where the box can write."""
    directories = [home.instance, f"{home.instance}/empty", home.state, *([home.auth_directory] if with_login else [])]
    points = [mount for mount in mounts if mount.path.startswith(f"{home.place}/") and mount.kind in (RO, ABSENT)]
    encoded = root.encode(errors="surrogateescape")
    return [
        *(Preparation(Preparation.DIRECTORY, directory) for directory in directories),
        *(_mount_point(mount, home) for mount in points),
        *([_login_link(home)] if with_login else []),
        Preparation(Preparation.FILE, f"{home.instance}/CLAUDE.md", DEFAULT_MEMORY.encode()),
        Preparation(Preparation.SANDBOX, f"{home.instance}/SANDBOX.md"),
        Preparation(Preparation.FILE, f"{home.instance}/project", encoded + b"\n"),
        Preparation(Preparation.USED, f"{home.instance}/project"),
    ]


def _login_link(home: ClaudeHome) -> Preparation:
    """For a Claude that does not know the variable, and for people who look where the file usually is."""
    target = f"{home.auth_place}/.credentials.json"
    return Preparation(Preparation.LINK, f"{home.state}/.credentials.json", target.encode())


def _mount_point(mount: Mount, home: ClaudeHome) -> Preparation:
    kind = Preparation.DIRECTORY if mount.is_dir else Preparation.EMPTY_FILE
    return Preparation(kind, f"{home.state}/{mount.path.removeprefix(home.place + '/')}")
