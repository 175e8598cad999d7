"""What guard does besides bwrap: the report at the end of a box, of what it has left and of what is gone with it."""

from __future__ import annotations

from claudebox.model import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def made(plan: Plan, root: str) -> Callable[[bool], None]:
    from claudebox.overlay.vanished import watch_home

    return watch_home(plan, root)


def after(plan: Plan) -> Callable[[bool], None]:
    from claudebox.overlay.report import watch_project

    return watch_project(plan)
