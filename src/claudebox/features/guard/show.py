"""What people and programs are told of what is guarded."""

from __future__ import annotations

from claudebox.model import Guarded, Plan
from claudebox.output.section import WRITABLE, Row, Section, fields, plain
from claudebox.overlay.ways import WAYS
from claudebox.paths import within
from claudebox.text import some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from claudebox.output.section import Line

LATER = "lands later"
OPENS = "(if that is what the agent is to work on: --writable PATH)"
MOST_NAMED = 20
TOLD = """\
The user's own programs run these later, outside the box, so you cannot change, rename or remove them ("Read-only
file system", "Device or resource busy"): {names}.
If the task needs it, write down the change that you would make and ask the user to make it, or to start claudebox again
with `--writable PATH`. What you create of this kind is shown to the user when the box ends.
Directories above them cannot be renamed either, and a rename from one into another fails ("Invalid cross-device link"):
use `mv` or `git mv`, which copy then.
"""
TOLD_OF_GIT = """\
Git works: commit, branch, checkout, stash, merge, rebase, fetch, submodule update. A command that would change one of
these files, or `.git/config` (`git remote add`, `push -u`, `branch -u`, `submodule add`, `sparse-checkout`), does not
begin ("was not started") and says why; nothing has changed then. For one command use `git -c NAME=VALUE …`, and name
remote and branch (`git push origin BRANCH`). Make worktrees in the project (`.claude/worktrees/NAME`): elsewhere they
would vanish.
"""


def show(plan: Plan) -> tuple[Section, ...]:
    guard, later = plan.guard, plan.layered
    held = [one for one in guard.held if one.path not in later]
    lands = [one for one in guard.held if one.path in later]
    names, landing = (tuple(within(one.path, plan.project) for one in part) for part in (held, lands))
    walls = f"(no layers here: {guard.walls})" if guard.walls else ""
    opens = OPENS if any(one.group == WAYS for one in guard.held) else ""  # because something outside leads there
    parts = {"read_only": held, "lands_later": lands, "opened": guard.opened, "cannot_be_held": guard.loose}
    told = TOLD.format(names=", ".join(some([f"`{plain(name)}`" for name in names], MOST_NAMED)))
    told += TOLD_OF_GIT if any(one.group == "git" for one in held) else ""
    return (
        Section(
            title="Guarded",
            legend="what this host may run later",
            lines=(
                *_with_reasons("read-only", held, plan.project),
                *(("", tuple(note.split(" "))) for note in (walls, opens) if note and guard.held),
                *_with_reasons(LATER, lands, plan.project),
                *_with_reasons("writable", guard.opened, plan.project),
            ),
            rows=(
                Row("guarded", names, "(read-only: this host may run it later)" if names else "", after=WRITABLE),
                Row(LATER, landing, "(this host may run it)" if landing else "", after=WRITABLE),
            ),
            key="guard",
            value={
                **{name: [fields(one, "path", "reason") for one in part] for name, part in parts.items()},
                "no_layers_because": guard.walls or None,
            },
            told=(("Read-only in the project", told),) if held else (),
        ),
    )


def _with_reasons(label: str, members: Iterable[Guarded], project: str) -> Iterable[Line]:
    for guarded in members:
        yield label, (within(guarded.path, project), *f"({guarded.reason})".split(" "))
        label = ""
