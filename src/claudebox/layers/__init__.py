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
    covered: tuple[Covered, ...]  # the project, and the directory of its repository if that is elsewhere
    layer: str = ""  # the number of the layer, known when the box is launched
