"""What happens with a layer when its box has ended."""

from __future__ import annotations

from claudebox.layers import store
from claudebox.model import Plan
from claudebox.terminal import say


def finish(plan: Plan, may_ask: bool) -> None:
    review = plan.review
    assert review is not None
    layer = store.load(review.place, review.layer)
    held = store.lock(layer)
    if held < 0:
        return
    changes = layer.read()
    say(f"{len(changes.changes)} changes\n")
    if not changes.changes:
        store.discard(layer)
