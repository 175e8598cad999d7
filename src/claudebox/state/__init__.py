"""Every path at which claudebox keeps what it knows from one start to the next. All of them are below ~/.claudebox.

docs/state.md says of each who writes it, whether a box sees it, and what happens when it is removed.
"""

from __future__ import annotations

from claudebox.errors import Problem, quote
from claudebox.host import Host
from claudebox.host.tree import Tree, sha256
from claudebox.paths import OWN
from claudebox.record import Record

LOGIN_FILE = ".credentials.json"  # as Claude calls it
INSTANCE_NAME_LENGTH, PACKAGE_NAME_LENGTH = 16, 32
INSTANCES = "instances"
PROJECT = "project"
WRITABLE = "writable-"
CONFIG = "config.toml"
PROFILES = "profiles"
USERS_OWN = (CONFIG, PROFILES, LOGIN_FILE)  # what the user writes; no box sees it
# Below the home, where claudebox 0.2.0 could keep its files: a note of which directories it used, and settings.
FORMER_NOTE = ".local/state/claudebox/places"
FORMER_CONFIG = f".config/claudebox/{CONFIG}"


class Below:
    """A path below the directory of its owner."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: State | Instance, _: type) -> str:
        return f"{owner.directory}/{self.name}"


class State(Record):
    """What claudebox keeps for one user."""

    home: str

    @property
    def directory(self) -> str:
        return f"{self.home}/{OWN}"

    config = Below(CONFIG)  # settings that the user writes
    profiles = Below(PROFILES)
    login = Below(LOGIN_FILE)  # of boxes only, if the user made one: else they share the user's own
    decisions = Below("decisions")  # what the user said about files of projects
    packages = Below("packages")  # what Nix said about packages
    nix_trial = Below("nix-trial")  # what came of trying the Nix daemon
    auth_lock = Below("auth.lock")  # a lock of those who keep logins in step
    broker_lock = Below("broker.lock")  # a lock of brokers among each other
    introduced = Below("introduced")  # which files commits have brought that were made in boxes
    instances = Below(INSTANCES)

    def package(self, reference: str) -> str:
        return f"{self.packages}/{sha256(reference.encode())[:PACKAGE_NAME_LENGTH]}"

    def package_root(self, reference: str) -> str:
        """The symlink that keeps Nix's garbage collector away from a package."""
        return f"{self.package(reference)}.root"

    def closure(self, roots: tuple[str, ...]) -> str:
        return f"{self.packages}/closure-{sha256(' '.join(roots).encode())[:PACKAGE_NAME_LENGTH]}"

    def instance(self, root: str) -> Instance:
        return self.instance_called(instance_name(root), root)

    def instance_called(self, name: str, root: str = "") -> Instance:
        return Instance(f"{self.instances}/{name}", root)


class Instance(Record):
    """The state of one project, of which its boxes see some: no project sees another's conversations."""

    directory: str
    root: str  # whose it is: the project, or the repository of its worktrees

    project = Below(PROJECT)  # the same path, in a file
    claude = Below("claude")  # Claude's home in the box
    agents = Below("agents")  # what other agents keep, a directory for each
    # The directory of the login. Each project has its own: what several boxes can write is a way between them.
    auth = Below("auth")
    auth_login = Below(f"auth/{LOGIN_FILE}")
    auth_note = Below("auth.from")  # how the user's was when it was copied; beside it, since boxes can write in it
    own_login = Below(f"claude/{LOGIN_FILE}")  # where a Claude that does not know of that directory keeps its login
    empty = Below("empty")  # mounted over parts of Claude's home and of /etc, as the next two
    memory = Below("CLAUDE.md")
    sandbox = Below("SANDBOX.md")
    settings_note = Below("settings.from")  # how the user's configuration was when it was imported
    servers_note = Below("servers.from")
    answered = Below("answered")
    agreed = Below("agreed")  # what the user agreed to
    decoys = Below("decoys")  # the key with which made-up values are drawn, and where secrets were found by content
    masks = Below("masks")  # files with these values, which boxes see in the place of masked ones while they run
    journal = Below("broker.jsonl")  # what boxes asked of the broker
    network_journal = Below("network.jsonl")  # what boxes reached by name
    nix = Below("nix")  # the project's own Nix store
    layers = Below("layers")  # what boxes changed and the user has not landed yet
    cache = Below("cache")  # what package managers downloaded
    cache_over_host = Below("cache-host")  # of earlier versions, as the next one
    cache_layers = Below("cache-host.layers")
    reports = Below("reports")  # what boxes have left, until somebody has seen it
    quarantine = Below("quarantine")  # what was moved out of the project after a box had ended

    @property
    def caches(self) -> tuple[str, ...]:
        return self.cache_layers, self.cache_over_host, self.cache

    def has(self, path: str) -> bool:
        return path.startswith(f"{self.directory}/")

    def writable(self, path: str) -> str:
        """A file that names a directory which boxes of the project could write."""
        return f"{self.directory}/{WRITABLE}{instance_name(path)}"


SHOWN = State("~")  # the same paths as people write them


def instance_name(root: str) -> str:
    return sha256(root.encode(errors="surrogateescape"))[:INSTANCE_NAME_LENGTH]


def names_a_writable_place(name: str) -> bool:
    """Whether a file of this name, in the state of a project, holds the path of something that its boxes can write."""
    return name == PROJECT or name.startswith(WRITABLE)


def check_state(tree: Tree, state: State, instance: Instance, uid: int) -> None:
    """Raise if the state is not what this program left there."""
    for directory in (state.directory, state.instances, instance.directory, instance.claude, instance.auth):
        status = tree.lstat(directory)
        if status is None:
            continue
        if not tree.is_plain_directory(directory):
            raise Problem(f"{directory} is not a directory", f"mv {quote(directory)} {quote(directory + '.old')}")
        if status.st_uid != uid:
            what = f"{directory} belongs to another user (uid {status.st_uid})"
            raise Problem(what, f"sudo chown -R $(id -u) {quote(state.directory)}")


def find_state(host: Host) -> State:
    """Where the state of this user is. Raises if claudebox 0.2.0 kept it elsewhere: to begin anew would forget it."""
    for home in host.person.homes:
        _refuse_former(host.tree, State(home))
    return State(host.person.home)


def _refuse_former(tree: Tree, state: State) -> None:
    note, config = f"{state.home}/{FORMER_NOTE}", f"{state.home}/{FORMER_CONFIG}"
    if tree.lstat(note) is not None:
        raise Problem(
            f"claudebox 0.2.0 kept its files where {note} says; now all of them are in {SHOWN.directory}",
            f"to see where they are: cat {quote(note)}\n"
            f'      how to move them is in CHANGELOG.md: "Moving to {SHOWN.directory}"',
        )
    # The user may have made one a symlink to the other. Nobody is told to move it: an agent may have written it.
    if tree.lstat(config) is not None and tree.resolve(config) != tree.resolve(state.config):
        raise Problem(
            f"{config} is not read: settings are in {SHOWN.config}",
            f"what you wrote there belongs in {SHOWN.config}; then:\n      rm {quote(config)}",
        )
