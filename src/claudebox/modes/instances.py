"""`--instances`: lists the state that is kept for each project; with `gc`, removes that of projects that are gone."""

from __future__ import annotations

from claudebox import instances
from claudebox.host import read_host
from claudebox.problem import Problem
from claudebox.settings.words import COLLECT, Request
from claudebox.terminal import output_style, says_yes, show


def serve(request: Request) -> int:
    found = instances.find_instances(read_host().person.home)
    if ("instances", COLLECT) in request.said:
        _collect(found, yes=request.yes)
    else:
        show(instances.listing(found, output_style()))
    return 0


def _collect(found: list[instances.Instance], *, yes: bool) -> None:
    gone = instances.collect(found)
    show(instances.listing(gone, output_style()) if gone else "Every project is still there: nothing to remove.\n")
    if gone and not yes and not says_yes("Remove these, with their conversations? [y/N] "):
        raise Problem("nothing removed")
    for instance in gone:
        instances.remove(instance)
