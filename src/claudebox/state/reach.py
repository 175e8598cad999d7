"""Where agents can write. This is the one answer for every feature that runs, reads or believes something on the host.

An agent can write its project, whatever else was mounted writable for it, and parts of claudebox's state. It may do so
long before this start, in a box of another project. So every place counts that a box could ever write, and a path is
judged by everything that it leads through: whoever can change a symlink on the way chooses what the path means.
"""

from __future__ import annotations

from claudebox.errors import Problem, quote
from claudebox.host import Host
from claudebox.host.git import Repository, find_repository
from claudebox.host.secrets import is_systems, refuse_readable
from claudebox.host.system import CERTIFICATE_VARIABLES, find_certificates
from claudebox.host.tree import Tree
from claudebox.model import Finding, SecretPlace
from claudebox.paths import is_inside
from claudebox.state import USERS_OWN, Instance, State, find_state, instance_name, names_a_writable_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Reach:
    """Knows where agents can write, for one user and one project.

    The records of other projects are read once, and only when somebody asks about a path for which they matter.
    """

    def __init__(self, tree: Tree, project: str, kept: tuple[State, ...]) -> None:
        self.tree = tree
        self.kept = kept
        # The way to the state may lead through a symlink; then its real path begins differently.
        named = [state.directory for state in kept]
        self.states = tuple(dict.fromkeys((*named, *(real for path in named if (real := tree.resolve(path))))))
        self.users_own = tuple(f"{state}/{name}" for state in self.states for name in USERS_OWN)
        self.project = project
        self._known: tuple[str, ...] | None = None

    def holds(self, path: str) -> bool:
        """Whether an agent can write at this very name, wherever the name leads."""
        if is_systems(path):
            return False
        if any(is_inside(path, state) for state in self.states):
            return not any(is_inside(path, own) for own in self.users_own) or self._is_home_of_agents()
        return any(is_inside(path, place) for place in self.places)

    def _is_home_of_agents(self) -> bool:
        """Whether HOME is not that of the account, but where a box could write: a file of a project may have set it."""
        return len(self.kept) > 1 and any(is_inside(self.kept[0].home, place) for place in self.places)

    def leads_through(self, path: str) -> bool:
        """Whether an agent can write the path, what it leads to, or a symlink on the way."""
        real = self.tree.resolve(path)
        return self.holds(path) or (real is not None and self.holds(real)) or self.can_turn(path)

    def can_turn(self, path: str) -> bool:
        """Whether an agent can write a symlink on the way, and so choose what the path means."""
        return any(self.holds(link) for link, _ in self.tree.links(path))

    def enters(self, directory: str) -> bool:
        """Whether an agent can write the directory, or something in it."""
        return self.holds(directory) or any(is_inside(place, directory) for place in (*self.states, *self.places))

    @property
    def places(self) -> tuple[str, ...]:
        """This project, and everything that a box could ever write except the state."""
        if self._known is None:
            # A directory that contains the state is not a project: no box ever starts there, and a message says so.
            own = () if any(is_inside(state, self.project) for state in self.states) else (self.project,)
            known = (place for places in self.recorded().values() for place in places)
            self._known = tuple(dict.fromkeys((*own, *known)))
        return self._known

    def recorded(self) -> dict[str, list[str]]:
        """Every directory that a box could ever write, by the state of its project: each launch has noted its own."""
        return {
            directory: [place for file in files if (place := _noted_place(self.tree, file))]
            for state in self.kept
            for directory, files in _records(self.tree, state.instances)
        }


def reach_of(host: Host) -> Reach:
    return Reach(host.tree, host.cwd, tuple(map(State, host.person.homes)))


def _records(tree: Tree, instances: str) -> Iterator[tuple[str, list[str]]]:
    for instance in tree.entries(instances):
        if instance.startswith("."):
            continue  # what a removal that was ended has left: agents chose what is in it
        directory = f"{instances}/{instance}"
        yield directory, [f"{directory}/{name}" for name in tree.entries(directory) if names_a_writable_place(name)]


def own_instance(host: Host) -> Instance:
    """The state of the project in which somebody is."""
    return find_state(host).instance(find_own_repository(reach_of(host)).canonical_root(host.cwd))


def find_own_repository(reach: Reach) -> Repository:
    """The repository of the project, if its claim to be a worktree or a submodule of another one can be believed.

    The claim has two ends: a `.git` file here, and a file in the other repository that names it. Agents that work in
    both projects can write both. So no box may have been able to write this end, unless the same boxes could write the
    other repository anyway; and the conversations of the other project are shared only if these were its own boxes.
    """
    tree, project = reach.tree, reach.project
    repository = find_repository(tree, project)
    if not repository.outside:
        return repository
    owner = instance_name(repository.canonical_root(project))
    for directory, places in reach.recorded().items():
        if directory.endswith(f"/{owner}") or not any(is_inside(project, place) for place in places):
            continue
        if not any(is_inside(repository.outside, place) for place in places):
            return Repository(
                trouble=f"{project}/.git names {repository.outside}, and an agent may have written that",
                remedy=f"if you trust that: --mount-rw {quote(repository.outside)}",
            )
        repository = repository.replace(is_worktree=False)
    return repository


def _noted_place(tree: Tree, file: str) -> str:
    """The path in such a note; "" if it is gone by now. One that is not whole may hide where an agent can write."""
    content = tree.read_plain(file) or b""
    if content.startswith(b"/") and content.endswith(b"\n"):
        return content[:-1].decode(errors="surrogateescape")
    if tree.lacks(file):
        return ""
    raise Problem(
        f"{file} tells where boxes could write, and is damaged",
        f"remove it; the next box of that project writes it again:\n      rm {quote(file)}",
    )


def host_certificates(reach: Reach, environ: dict[str, str]) -> str:
    """The certificates for programs on the host. One that an agent can write does not count: it could trust anybody."""
    named = {name: environ[name] for name in CERTIFICATE_VARIABLES if name in environ}
    believed = {name: path for name, path in named.items() if not reach.leads_through(path)}
    return find_certificates(reach.tree, believed)


class TrustedSource:
    """Finds which files of the user's Claude configuration may be shown, and remembers what it left out.

    People keep their configuration in a repository of dotfiles and link to it. An agent that works on that repository
    can turn such a file into a symlink to a key. So only symlinks that no agent can have made are followed, and only to
    what they lead to directly.
    """

    def __init__(self, reach: Reach, users: str, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> None:
        self.tree = reach.tree
        self.reach = reach
        self.users = users
        self.homes = homes
        self.places = places
        self.left_out: list[str] = []

    def find(self, path: str, *, is_dir: bool) -> str | None:
        """The real path, if something of this kind exists there and may be shown."""
        real = self.tree.resolve(path)
        if real is None or (self.tree.is_dir(real) if is_dir else self.tree.is_file(real)) is False:
            return None
        if real == path:
            return real
        reason = self._objection(path, real)
        if reason:
            self.left_out.append(f"{path}: {reason}")
            return None
        return real

    def findings(self) -> list[Finding]:
        return [Finding(Finding.NOTE, "left out", text) for text in self.left_out]

    def _objection(self, path: str, real: str) -> str:
        own = self.tree.resolve(self.users) or self.users
        name = path.removeprefix(self.users)
        if is_inside(real, own) and real != own + name:
            return "leads to another part of Claude's own directory"
        refusal = "" if is_inside(real, own) else refuse_readable(real, self.homes, self.places)
        if refusal:
            return f"leads to a place that stays outside, since {refusal}"
        for link, _ in self.tree.links(path):
            if not self._is_the_users(link):
                return f"{link} is a symlink that an agent can have made"
        if not is_inside(real, own) and self.reach.holds(real):
            return f"{real} is where agents work"
        return ""

    def _is_the_users(self, link: str) -> bool:
        """Whether no agent can have made it: it is root's, or it is in Claude's own directory or above."""
        if self.reach.holds(link):
            return False
        status = self.tree.lstat(link)
        is_roots = status is not None and status.st_uid == 0
        return is_roots or is_inside(link, self.users) or is_inside(self.users, link)
