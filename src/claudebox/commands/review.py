"""Tends the layers that are kept for a project: `--review list`, `show`, `land`, `discard`."""

from __future__ import annotations

import os
import sys
from itertools import chain

from claudebox.commands.kept import measure
from claudebox.errors import Declined, Problem
from claudebox.features.limits import CPU, MEMORY, PIDS
from claudebox.features.nix import PACKAGES
from claudebox.features.table import SETTINGS
from claudebox.host import Host, read_host
from claudebox.host.git import find_repository
from claudebox.model import RW, Launch, Mount, Origin, Plan, Step
from claudebox.output.as_json import dump
from claudebox.output.terminal import ask, can_ask, output_style, page, say, says_yes, show
from claudebox.overlay import store
from claudebox.overlay.bundle import BUNDLE, HEAD, KNOWN
from claudebox.overlay.landing import read_journal, recover
from claudebox.overlay.mounting import usable_mounts
from claudebox.overlay.review import Kept, end, in_advance, land_chosen
from claudebox.overlay.screen import counts, diff_lines, listing, summary
from claudebox.overlay.store import Layer
from claudebox.plan import decide, survey
from claudebox.sandbox.launch import launch
from claudebox.sandbox.law import lay_down
from claudebox.settings import Word
from claudebox.settings.gather import gather
from claudebox.settings.table import ASK, AUTH, ENV, HOST_PORTS, MOUNTS, NETWORK, NO_NETWORK, NONE, ON, PUBLISH, REVIEW
from claudebox.settings.words import Request
from claudebox.state import find_state
from claudebox.text import escape

OUT = "/run/claudebox-out"  # the directory in the box where the bundle is made
PACKS = Origin.of_option("--review", "commits on their way to this host")
# What git does here, it does in the box: the repository may name programs, and they run there. Git makes no empty
# bundle, so it is asked first whether there is something to pack: whatever fails is not taken for "nothing new". What
# the host has may be missing here, where git has removed directories of objects.
SCRIPT = f"""
git symbolic-ref -q HEAD >{OUT}/{HEAD}
news=$(git rev-list -n 1 --ignore-missing --branches --stdin <{OUT}/{KNOWN}) || exit
test "$news" || exit 0
exec git -c core.fsmonitor=false -c core.hooksPath=/dev/null \\
    bundle create -q {OUT}/{BUNDLE} --ignore-missing --branches --stdin <{OUT}/{KNOWN}
"""


def tend_layers(request: Request) -> int:
    host = read_host()
    instance = find_state(host).instance(find_repository(host.tree, host.cwd).canonical_root(host.cwd))
    home, deed, *number = host.person.home, *request.review
    if deed == "list":
        return show_list(instance.layers, host, as_json=request.json)
    layer = _choose(store.list_layers(instance.layers, host.cwd), number)
    if deed == "bundle":
        launch(Launch(plan_of_packing(host, request, layer)))
    if store.lock(layer) < 0:  # held as long as this process lives
        raise Problem(f"review {layer.number} is in use: a box works in it", "end that box first")
    if deed == "show":
        return show_layer_json(home, layer) if request.json else show_layer(home, layer)
    if deed == "discard":
        return _discard(layer, yes=request.yes)
    return _land(home, layer, request)


def finish_landings(place: str) -> None:
    """Undo landings that somebody ended, or finish those that were as good as done."""
    for layer in store.list_layers(place):
        if read_journal(layer) is None:
            continue
        held = store.lock(layer)
        if held >= 0:
            recover(layer)
            os.close(held)
            say(f"claudebox: review {layer.number} was ended while it landed: brought in order (--review show)\n")


def _choose(layers: list[Layer], number: list[str]) -> Layer:
    found = [layer for layer in layers if not number or layer.number == number[0]]
    if len(found) == 1:
        return found[0]
    if not layers:
        raise Problem("nothing is kept for this project", "start a box that keeps its changes: claudebox --review")
    numbers = ", ".join(layer.number for layer in layers)
    raise Problem("which one?" if not number else f"there is no review {number[0]} here", f"there are: {numbers}")


def show_list(place: str, host: Host, *, as_json: bool) -> int:
    """A layer that a box works in has no changes to list yet: they may be half written."""
    layers, damaged = store.list_layers(place, host.cwd), store.list_damaged(place)
    listed: list[dict[str, object]] = []
    lines = [] if layers or damaged else ["Nothing is kept for this project.\n"]
    lines += [f"Its note cannot be read: {escape(directory)}\n" for directory in damaged]
    for layer in layers:
        held = store.lock(layer)
        changes = Kept(layer, host.person.home).changes if held >= 0 else []
        said = counts(changes) if held >= 0 else "in use: a box works in it"
        lines.append(f"{layer.number:>4}  {measure(layer.directory).shown:>5}  {said}\n")
        listed.append({**_layer_json(layer), "is_in_use": held < 0, "changes": len(changes)})
        if held >= 0:
            os.close(held)
    show(dump({"reviews": listed, "damaged": damaged}) if as_json else "".join(lines))
    return 0


def show_layer_json(home: str, layer: Layer) -> int:
    kept = Kept(layer, home)
    changes = [
        {
            **{name: getattr(change, name) for name in ("path", "kind", "what", "size")},
            "target": change.target or None,
            "is_conflict": change.is_conflict,
            "host_runs": change.reason or None,
        }
        for change in kept.changes
    ]
    never = [{"path": one.path, "reason": one.reason} for one in kept.never]
    show(dump({**_layer_json(layer), "changes": changes, "never_lands": never}))
    return 0


def _layer_json(layer: Layer) -> dict[str, object]:
    return {"number": int(layer.number), "project": layer.project, "size": measure(layer.directory).amount}


def show_layer(home: str, layer: Layer) -> int:
    kept, style = Kept(layer, home), output_style()
    head = summary(layer.number, kept.changes, kept.never, style) + listing(kept.changes, style)
    lines = chain(head.splitlines(), diff_lines(kept.layer, kept.changes, style))
    if sys.stdout.isatty():
        page(lines, home)
    else:
        for line in lines:
            show(f"{line}\n")
    return 0


def _discard(layer: Layer, *, yes: bool) -> int:
    if not yes and not says_yes(f"Discard review {layer.number}? This cannot be undone. [y/N] "):
        raise Declined("nothing was discarded")
    # If it was ended while it landed, what the project had before is in there.
    store.discard(recover(layer))
    say(f"Review {layer.number} is discarded: what it held of {escape(layer.project)} is gone.\n")
    return 0


def _land(home: str, layer: Layer, request: Request) -> int:
    said = dict(request.said).get("land", ASK)
    if said == ASK and not can_ask():
        raise Problem("there is no terminal to ask on", "say what lands: --land safe, or --land all")
    kept = Kept(layer, home)
    if said == ASK or kept.is_empty:
        end(kept, said, ask)
    else:
        say(summary(layer.number, kept.changes, kept.never, output_style()))
        land_chosen(kept, in_advance(kept.changes, said), ask if can_ask() and not request.yes else None)
    return 0


def plan_of_packing(host: Host, request: Request, layer: Layer) -> Plan:
    """The plan of a box without a network that packs the commits of a layer. Whoever asks for it holds the layer."""
    settings = gather(SETTINGS, host, request).settings
    plain = settings.without(MOUNTS, ENV, PUBLISH, HOST_PORTS, PACKAGES, MEMORY, PIDS, CPU)
    for setting, text in ((AUTH, NONE), (NETWORK, NO_NETWORK), (REVIEW, ON)):
        plain = plain.having(setting, Word(text, PACKS))
    facts = survey(host, Request(yes=True, run=("/bin/sh", "-c", SCRIPT)), plain)
    plan = decide(facts)
    assert plan.review is not None
    out = Mount(RW, OUT, PACKS, source=layer.out)
    return plan.having(layer).replace(
        mounts=(*usable_mounts(plan.mounts, plan.review, layer), out),
        steps=tuple(step for step in plan.steps if step.moment in (Step.MOUNT, Step.BEFORE)),
        law=lay_down(facts, layer.out),
    )
