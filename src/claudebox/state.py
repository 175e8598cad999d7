"""Every path at which claudebox keeps what it knows from one start to the next. All of them are below ~/.claudebox.

    config.toml, profiles/    settings that the user writes
    .credentials.json         a login of Claude for boxes only, if the user made one
    decisions                 what the user said about files of projects
    packages/                 what Nix said about packages
    nix-trial                 what came of trying the Nix daemon
    layer-trial               that the kernel has refused a layer
    auth.lock                 a lock of those who keep logins in step
    auth/, auth.from          the login that all boxes shared, of claudebox 0.1.0
    broker/                   sockets of brokers that are running; broker.lock beside it
    instances/NAME/           the state of one project, of which a box of that project sees some:
        project, writable-*   whose it is, and every directory that its boxes could write
        claude/               Claude's home in the box
        agents/               what other agents keep
        auth/, auth.from      the login that its boxes share, and how the user's was when it was copied
        empty/, CLAUDE.md, SANDBOX.md   mounted over parts of Claude's home and of /etc
        settings.from, servers.from, answered   how the user's configuration was when it was imported
        agreed, masked        what the user agreed to, and which files were masked
        decoys                the key with which made-up values are drawn
        masks/                files with these values, which boxes see in the place of masked ones while they run
        broker.jsonl          what boxes asked of the broker
        network.jsonl         what boxes reached by name
        nix/                  the project's own Nix store
        layers/               what boxes changed and the user has not landed yet
        cache/, cache-host/   what package managers downloaded; cache-host.layers holds it over the host's own
        quarantine/           what was moved out of the project after a box had ended

docs/state.md says of each who writes it, whether a box sees it, and what happens when it is removed.
"""

from __future__ import annotations

from claudebox.host import Host
from claudebox.host.digest import sha256
from claudebox.host.tree import Tree
from claudebox.problem import Problem, quote
from claudebox.record import Record

LOGIN_FILE = ".credentials.json"  # as Claude calls it
INSTANCE_NAME_LENGTH = 16
PACKAGE_NAME_LENGTH = 32
INSTANCES = "instances"
PROJECT = "project"
WRITABLE = "writable-"
CACHE_LOCK = "held"  # in the directory of what boxes changed in the host's caches
CONFIG = "config.toml"
PROFILES = "profiles"
USERS_OWN = (CONFIG, PROFILES, LOGIN_FILE)  # what the user writes; no box sees it
# Below the home, where claudebox 0.2.0 could keep its files: a note of which directories it used, and settings.
FORMER_NOTE = ".local/state/claudebox/places"
FORMER_CONFIG = f".config/claudebox/{CONFIG}"


class State(Record):
    """What claudebox keeps for one user."""

    home: str

    @property
    def directory(self) -> str:
        return f"{self.home}/.claudebox"

    @property
    def config(self) -> str:
        return f"{self.directory}/{CONFIG}"

    @property
    def profiles(self) -> str:
        return f"{self.directory}/{PROFILES}"

    @property
    def login(self) -> str:
        """Of boxes only, if the user made one: else they share the user's own."""
        return f"{self.directory}/{LOGIN_FILE}"

    @property
    def decisions(self) -> str:
        return f"{self.directory}/decisions"

    @property
    def packages(self) -> str:
        return f"{self.directory}/packages"

    def package(self, reference: str) -> str:
        return f"{self.packages}/{sha256(reference.encode())[:PACKAGE_NAME_LENGTH]}"

    def package_root(self, reference: str) -> str:
        """The symlink that keeps Nix's garbage collector away from a package."""
        return f"{self.package(reference)}.root"

    def closure(self, roots: tuple[str, ...]) -> str:
        return f"{self.packages}/closure-{sha256(' '.join(roots).encode())[:PACKAGE_NAME_LENGTH]}"

    @property
    def nix_trial(self) -> str:
        return f"{self.directory}/nix-trial"

    @property
    def layer_trial(self) -> str:
        return f"{self.directory}/layer-trial"

    @property
    def former_login(self) -> str:
        """Where all boxes shared a login, in claudebox 0.1.0."""
        return f"{self.directory}/auth/{LOGIN_FILE}"

    @property
    def former_note(self) -> str:
        return f"{self.directory}/auth.from"

    @property
    def auth_lock(self) -> str:
        return f"{self.directory}/auth.lock"

    @property
    def broker(self) -> str:
        return f"{self.directory}/broker"

    @property
    def broker_lock(self) -> str:
        return f"{self.broker}.lock"

    @property
    def instances(self) -> str:
        return f"{self.directory}/{INSTANCES}"

    def instance(self, root: str) -> Instance:
        return self.instance_called(instance_name(root), root)

    def instance_called(self, name: str, root: str = "") -> Instance:
        return Instance(f"{self.instances}/{name}", root)


class Instance(Record):
    """The state of one project, so that no project sees another's conversations."""

    directory: str
    root: str  # whose it is: the project, or the repository of its worktrees

    def has(self, path: str) -> bool:
        return path.startswith(f"{self.directory}/")

    @property
    def project(self) -> str:
        return f"{self.directory}/{PROJECT}"

    def writable(self, path: str) -> str:
        return f"{self.directory}/{WRITABLE}{instance_name(path)}"

    @property
    def claude(self) -> str:
        return f"{self.directory}/claude"

    @property
    def agents(self) -> str:
        """What other agents than Claude keep, a directory for each."""
        return f"{self.directory}/agents"

    @property
    def auth(self) -> str:
        """The directory of the login. Each project has its own: what several boxes can write is a way between them."""
        return f"{self.directory}/auth"

    @property
    def auth_login(self) -> str:
        return f"{self.auth}/{LOGIN_FILE}"

    @property
    def auth_note(self) -> str:
        """Beside the directory, not in it: the boxes can write there."""
        return f"{self.auth}.from"

    @property
    def own_login(self) -> str:
        """Where a Claude that does not know of that directory keeps its login."""
        return f"{self.claude}/{LOGIN_FILE}"

    @property
    def empty(self) -> str:
        return f"{self.directory}/empty"

    @property
    def memory(self) -> str:
        return f"{self.directory}/CLAUDE.md"

    @property
    def sandbox(self) -> str:
        return f"{self.directory}/SANDBOX.md"

    @property
    def settings_note(self) -> str:
        return f"{self.directory}/settings.from"

    @property
    def servers_note(self) -> str:
        return f"{self.directory}/servers.from"

    @property
    def answered(self) -> str:
        return f"{self.directory}/answered"

    @property
    def agreed(self) -> str:
        return f"{self.directory}/agreed"

    @property
    def masked(self) -> str:
        return f"{self.directory}/masked"

    @property
    def decoys(self) -> str:
        return f"{self.directory}/decoys"

    @property
    def masks(self) -> str:
        return f"{self.directory}/masks"

    @property
    def journal(self) -> str:
        return f"{self.directory}/broker.jsonl"

    @property
    def network_journal(self) -> str:
        return f"{self.directory}/network.jsonl"

    @property
    def nix(self) -> str:
        return f"{self.directory}/nix"

    @property
    def layers(self) -> str:
        return f"{self.directory}/layers"

    @property
    def cache(self) -> str:
        return f"{self.directory}/cache"

    @property
    def cache_over_host(self) -> str:
        return f"{self.cache}-host"

    @property
    def cache_layers(self) -> str:
        """What boxes changed in the host's caches, as the kernel keeps it; and the lock of the one that does so."""
        return f"{self.cache_over_host}.layers"

    @property
    def quarantine(self) -> str:
        return f"{self.directory}/quarantine"


class Cache(Record):
    """What package managers download, kept for the project."""

    directory: str  # the box has it writable
    over_host: str = ""  # the same, if the host's own caches lie underneath
    layers: str = ""  # where the kernel keeps what the box changes in them
    lower: tuple[tuple[str, str], ...] = ()  # each cache of the host, and where it appears below `over_host`


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
