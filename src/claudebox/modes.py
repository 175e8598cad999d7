"""What claudebox does besides starting a box. Each function takes the request and returns an exit status."""

from __future__ import annotations

from claudebox import instances
from claudebox.host import read_host
from claudebox.problem import Problem
from claudebox.settings.files.profiles import list_profiles
from claudebox.settings.words import COLLECT, Request
from claudebox.state import State
from claudebox.terminal import output_style, says_yes, show
from claudebox.view.completion import completion
from claudebox.view.help import help_text
from claudebox.view.wishes import profiles_text


def show_profiles(_: Request) -> int:
    show(profiles_text(list_profiles(read_host()), output_style()))
    return 0


def tend_instances(request: Request) -> int:
    found = instances.find_instances(State(read_host().person.home))
    if ("instances", COLLECT) in request.said:
        _collect(found, yes=request.yes)
    else:
        show(instances.listing(found, output_style()))
    return 0


def _collect(found: list[instances.Listed], *, yes: bool) -> None:
    gone = instances.collect(found)
    show(instances.listing(gone, output_style()) if gone else "Every project is still there: nothing to remove.\n")
    if gone and not yes and not says_yes("Remove these, with their conversations? [y/N] "):
        raise Problem("nothing removed")
    for instance in gone:
        instances.remove(instance)


def show_completion(request: Request) -> int:
    show(completion(dict(request.said)["completion"]))
    return 0


def show_help(_: Request) -> int:
    show(help_text())
    return 0
