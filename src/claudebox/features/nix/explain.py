"""Why the box uses Nix as it does."""

from __future__ import annotations

from claudebox.answers import (
    IN,
    NIX,
    OUT,
    Answer,
    Because,
    Change,
    named,
    undo,
)
from claudebox.model import (
    Nix,
    Plan,
)
from claudebox.settings.table import (
    AUTO,
    DAEMON,
    OFF,
    PRIVATE,
    STORE,
)

WORD = "nix"
EFFECTS = {
    DAEMON: "the daemon, all the same: the agent can do through it what is said above",
    PRIVATE: "a store of this project's own: builds stay in the box",
    STORE: "the store to read, and no daemon",
    OFF: "nothing of Nix",
}


def explain_nix(plan: Plan) -> Answer:
    if plan.nix is None:
        because = Because("this host has no /nix/store")
        way = Change("a store of this project's own, if nix is installed", ("--nix", PRIVATE))
        return Answer(NIX, WORD, OUT, "not in the box", (because,), (way,))
    nix = plan.nix
    others = [mode for mode in (DAEMON, PRIVATE, STORE, OFF) if mode != nix.mode and (mode != DAEMON or nix.holes)]
    changes = tuple(Change(EFFECTS[mode], ("--nix", mode)) for mode in others)
    return Answer(
        kind=NIX,
        subject=WORD,
        state=OUT if nix.mode == OFF else IN,
        verdict=f"{nix.mode}: {nix.meaning}",
        because=_because(nix),
        changes=(*undo(nix.origin, nix.mode, "then it is chosen by what is safe"), *changes),
    )


def _because(nix: Nix) -> tuple[Because, ...]:
    asked = Because(f"asked for by {named(nix.origin)}", nix.origin) if nix.origin.rule != "default" else None
    if nix.holes:
        judged = [Because(f"the daemon is a way out of the box: {hole}") for hole in nix.holes]
    elif nix.mode == DAEMON:
        builds = "says that it builds in a sandbox; a start tries that" if nix.needs_trial else "builds in a sandbox"
        judged = [Because(f"the daemon is no way out: it does not trust you, and {builds}")]
    else:
        judged = []
    chosen = [asked] if asked is not None else [Because(f"it is {AUTO}: the daemon, unless that is a way out")]
    return (*chosen, *judged)
