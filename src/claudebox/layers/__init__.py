"""A layer: what a box has changed in a directory of the host, kept beside it until the user lands it."""

from __future__ import annotations

from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.model import Origin


class Covered(Record):
    """A directory of the host over which a layer lies."""

    path: str
    identity: tuple[int, int]  # device and inode, as the plan saw them


class Review(Record):
    """What the box changes in the project is kept in a layer until the user lands it."""

    origin: Origin
    land: str  # what lands when the box has ended: ask, all or safe
    place: str  # the directory of the project's layers
    project: str
    covered: tuple[Covered, ...]  # the project, or directories in it; and its repository, if that is elsewhere
    git: str = ""  # that repository's directory
    layer: str = ""  # the number of the layer, known when the box is launched
    decoys: str = ""  # the directory with what the box sees instead of masked files of the project

    @property
    def is_whole(self) -> bool:
        """Whether the whole project is a layer."""
        return any(covered.path == self.project for covered in self.covered)

    @property
    def places(self) -> tuple[str, ...]:
        """The directories of the project that are covered, by their paths in it; "" is the project itself."""
        return tuple(one.path[len(self.project) + 1 :] for one in self.covered if one.path != self.git)
