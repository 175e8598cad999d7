"""A layer: what a box has changed in a directory of the host, kept beside it until the user lands it."""

from __future__ import annotations

from claudebox.paths import is_inside
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Origin, Plan


MOST_LAYERED = 50  # directories of a project: each is a mount; more of them are read-only


class Covered(Record):
    """A directory of the host over which a layer lies, or a place in it that is in no layer."""

    path: str
    identity: tuple[int, int]  # device and inode, as the plan saw them; UNSEEN if the launch makes it


class Review(Record):
    """What the box changes in the project is kept in a layer until the user lands it."""

    origin: Origin
    land: str  # what lands when the box has ended: ask, all or safe
    place: str  # the directory of the project's layers
    project: str
    trial: tuple[str, bytes]  # a file, and what it says from now on if the kernel refuses the layer
    covered: tuple[Covered, ...]  # the project, or directories in it; and its repository, if that is elsewhere
    git: str = ""  # that repository's directory
    direct: tuple[Covered, ...] = ()  # places in those directories that the box changes on the host itself
    # Known when the box is launched: the number of the layer, when that was, and for each directory that the layer
    # covers where the kernel writes.
    layer: str = ""
    since: int = 0
    parts: tuple[tuple[str, str, str], ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the whole project is a layer."""
        return any(covered.path == self.project for covered in self.covered)

    def over(self, path: str) -> int:
        """The number of the directory whose layer a path of the host is in; -1 if it is in none."""
        around = [(len(one.path), number) for number, one in enumerate(self.covered) if is_inside(path, one.path)]
        length, number = max(around, default=(0, -1))
        is_direct = any(is_inside(path, one.path) and len(one.path) > length for one in self.direct)
        return -1 if is_direct else number

    @property
    def places(self) -> tuple[str, ...]:
        """The directories of the project that are covered, by their paths in it; "" is the project itself."""
        return tuple(one.path[len(self.project) + 1 :] for one in self.covered if one.path != self.git)


def layered(plan: Plan) -> frozenset[str]:
    """The directories of the host whose changes land later."""
    return frozenset(() if plan.review is None else (covered.path for covered in plan.review.covered))
