"""Takes a layer for the box, lies it over the project, and asks when the box has ended what is to land."""

from __future__ import annotations

import os
import stat

from claudebox.layers import decoys, files, store
from claudebox.layers.recovery import recover
from claudebox.layers.visible import DIRECTORY, PLAIN_FILE, kind_seen
from claudebox.model import COVER, FILE, MASK, Mount, Plan
from claudebox.mounts import is_layered
from claudebox.paths import is_below
from claudebox.problem import Problem
from claudebox.process.isolation import c_function, layer_label
from claudebox.process.lifetime import Companion
from claudebox.state import SHOWN
from claudebox.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from claudebox.layers import Covered, Review
    from claudebox.layers.store import Layer

TRIAL = "user.trial"  # an attribute: without those, a layer cannot mark a directory as replaced
SPECIAL = "\\,:"  # in the options of an overlay; descriptors have none of them


def beside(plan: Plan) -> tuple[Plan, Companion]:
    """Take the layer that was kept, or a new one, and hold it as long as the box lives: no two boxes share one."""
    assert plan.review is not None
    layer, held = _take_layer(plan.review)
    _require_attributes(layer)
    plan = _with_decoys(plan, layer)
    assert plan.review is not None
    review = plan.review.replace(layer=layer.number)
    return plan.replace(review=review, mounts=usable_mounts(plan.mounts, layer)), Companion(
        life=held,
        require_ready=lambda _: None,
        why_ended=lambda: None,
        clear=lambda: os.close(held),
    )


def _with_decoys(plan: Plan, layer: Layer) -> Plan:
    """Put the masked files that the box may edit into the layer, below what it writes, instead of mounting them."""
    assert plan.review is not None
    masks = [one for one in plan.mounts if one.is_editable and is_layered(one.path, plan.mounts)]
    if not plan.review.is_whole or not (masks or os.path.lexists(decoys.place_of(layer))):
        return plan
    for mask in masks:
        _require_same(mask)
    length = len(plan.project) + 1
    found = [decoys.Decoy(one.covers[length:], one.content, one.mode | stat.S_IRUSR | stat.S_IWUSR) for one in masks]
    try:
        decoys.lay_out(layer, found)
    except OSError as error:
        raise Problem(f"{layer.directory}: {error.strerror}", "see whether the disk is full: df -h ~") from None
    review = plan.review.replace(decoys=decoys.place_of(layer))
    return plan.replace(review=review, mounts=tuple(one for one in plan.mounts if one not in masks))


def _require_same(mask: Mount) -> None:
    """The secret has to be where it was found: an agent in another box may have moved a directory above it."""
    directory, name = os.path.split(mask.covers)
    try:
        here = store.open_project(directory)
    except OSError:
        raise _changed(mask.covers) from None
    try:
        status = files.lstat(here, name)
    finally:
        os.close(here)
    if status is None or (status.st_dev, status.st_ino) != mask.identity:
        raise _changed(mask.covers)


def _take_layer(review: Review) -> tuple[Layer, int]:
    for layer in reversed(store.list_layers(review.place, review.project)):
        is_alike = layer.git == review.git and layer.is_whole == review.is_whole
        held = store.lock(layer) if is_alike else -1
        if held >= 0:
            layer = store.extend(recover(layer), review.places)
            say(f"claudebox: goes on with what was kept as review {layer.number} (--review list)\n")
            return layer, held
    layer = store.make_layer(review.place, review.project, review.git, review.places)
    held = store.lock(layer)
    if held < 0:
        raise _changed(layer.directory)
    return layer, held


def _require_attributes(layer: Layer) -> None:
    try:
        for _, upper, _ in layer.parts():
            os.setxattr(upper, TRIAL, b"1")
            os.removexattr(upper, TRIAL)
    except OSError as error:
        raise Problem(
            f"the file system of {layer.directory} keeps no attributes, which a layer needs: {error.strerror}",
            "without it, changes reach this host at once: --review off",
        ) from None


def usable_mounts(mounts: tuple[Mount, ...], layer: Layer) -> tuple[Mount, ...]:
    return tuple(mount for mount in mounts if _is_usable(mount, layer))


def _is_usable(mount: Mount, layer: Layer) -> bool:
    """Whether there is something to mount on. What the layer has deleted or replaced shows nothing of the host.

    bwrap would make a file or directory there, or follow a symlink that a box has left.
    """
    for root, upper, _ in layer.parts():
        if is_below(mount.path, root):
            is_dir = mount.is_dir and mount.kind not in (COVER, MASK, FILE)
            return kind_seen(root, upper, mount.path[len(root) + 1 :]) == (DIRECTORY if is_dir else PLAIN_FILE)
    return True


def mount(plan: Plan) -> None:
    """Lay the layer over the project. This is the process that becomes bwrap, in a mount namespace of its own."""
    review = plan.review
    assert review is not None
    parts = {root: (upper, work) for root, upper, work in store.load(review.place, review.layer).parts()}
    for number, covered in enumerate(review.covered):
        _cover(number, covered, *parts[covered.path], review.decoys if covered.path == review.project else "")


def _cover(number: int, covered: Covered, upper: str, work: str, made_up: str = "") -> None:
    """Mount an overlay. Its directories are named by descriptors: no path can be replaced, or be misread."""
    try:
        lower = store.open_project(covered.path)
        status = os.fstat(lower)
    except OSError:
        raise _changed(covered.path) from None
    if (status.st_dev, status.st_ino) != covered.identity:
        raise _changed(covered.path)
    above, beside = os.open(upper, files.DIRECTORY), os.open(work, files.DIRECTORY)
    names = {"lowerdir": lower, "upperdir": above, "workdir": beside}
    options = ",".join([*(f"{key}=/proc/self/fd/{value}" for key, value in names.items()), "userxattr"])
    if made_up:
        between = os.open(made_up, files.DIRECTORY)
        options = options.replace("lowerdir=", f"lowerdir=/proc/self/fd/{between}:", 1)
    target = f"/proc/self/fd/{lower}".encode()
    words = (layer_label(number), target, b"overlay", 0, options.encode())
    call = c_function("mount")
    if call is None or call(*words) != 0:
        raise _refused(covered.path, words)


def _refused(path: str, words: tuple[bytes | int, ...]) -> Problem:
    """Say why. Only now it is worth loading what knows the number of the error."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    why = os.strerror(ctypes.get_errno()) if library.mount(*words) != 0 else "it changed its mind"
    return Problem(
        f"the kernel lets no layer lie over {path}: {why}",
        f"a layer needs Linux 5.11, and {SHOWN.directory} on ext4, btrfs, xfs or tmpfs\n"
        "      without it, changes reach this host at once: --review off",
    )


def _changed(path: str) -> Problem:
    return Problem(f"{path} is not what it was when claudebox looked at it", "start it again")


def after(plan: Plan) -> Callable[[bool], None]:
    from claudebox.features.review.end import finish

    return lambda may_ask: finish(plan, may_ask)
