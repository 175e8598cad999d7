"""What claudebox does besides starting a box. Each function takes the request and returns an exit status."""

from __future__ import annotations

from claudebox import doctor, instances
from claudebox.explain import explain
from claudebox.features.broker.server.journal import auth_log_text, read_journal
from claudebox.host import Host, read_host
from claudebox.host.git.repository import find_repository
from claudebox.model import Plan
from claudebox.plan import make_plan
from claudebox.problem import Problem
from claudebox.settings.files.profiles import list_profiles
from claudebox.settings.gather import gather
from claudebox.settings.values import Settings
from claudebox.settings.words import COLLECT, Request
from claudebox.state import State, canonical_root
from claudebox.terminal import output_style, says_yes, show
from claudebox.view.as_json import audit_json, dry_run_json
from claudebox.view.audit import audit
from claudebox.view.completion import completion
from claudebox.view.explain import explanation_json, explanation_text
from claudebox.view.help import help_text
from claudebox.view.shell import shell_command
from claudebox.view.wishes import profiles_text


def show_audit(request: Request) -> int:
    _, _, plan = _plan(request)
    show(audit_json(plan) if request.json else audit(plan, output_style(), everything=True))
    return 0


def show_dry_run(request: Request) -> int:
    _, _, plan = _plan(request)
    show(dry_run_json(plan) if request.json else shell_command(plan))
    return 0


def show_explanation(request: Request) -> int:
    host, settings, plan = _plan(request)
    explanation = explain(plan, host, settings, dict(request.said)["explain"])
    show(explanation_json(explanation) if request.json else explanation_text(explanation, output_style()))
    return 0


def _plan(request: Request) -> tuple[Host, Settings, Plan]:
    """Plan a box that is only shown: nobody is asked anything, and what is not known yet stays unknown."""
    host = read_host()
    settings = gather(host, request).settings
    return host, settings, make_plan(host, request, settings)


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


def show_auth_log(_: Request) -> int:
    host = read_host()
    root = canonical_root(host.cwd, find_repository(host.tree, host.cwd))
    show(auth_log_text(read_journal(State(host.person.home).instance(root).journal)))
    return 0


def check(request: Request) -> int:
    text, status = doctor.check(request)
    show(text)
    return status


def show_versions(request: Request) -> int:
    show(doctor.versions(request))
    return 0


def show_completion(request: Request) -> int:
    show(completion(dict(request.said)["completion"]))
    return 0


def show_help(_: Request) -> int:
    show(help_text())
    return 0
