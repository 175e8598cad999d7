"""What review does besides bwrap: it takes a layer, mounts it, and asks at the end of the box what is to land."""

from __future__ import annotations

from claudebox.model import Plan
from claudebox.process.companion import Companion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def beside(plan: Plan) -> tuple[Plan, Companion]:
    from claudebox.overlay.mounting import hold_layer

    return hold_layer(plan)


def mount(plan: Plan) -> None:
    from claudebox.overlay.mounting import mount_layers

    mount_layers(plan)


def after(plan: Plan) -> Callable[[bool], None]:
    from claudebox.overlay.mounting import watch_layer

    return watch_layer(plan)
