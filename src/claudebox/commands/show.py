"""Shows a box, or the profiles, instead of starting one. Each function takes the request and returns an exit status."""

from __future__ import annotations

from claudebox.commands.explain import explain
from claudebox.errors import NOT_FOUND, Problem
from claudebox.features.table import FEATURES, SETTINGS
from claudebox.host import Host, read_host
from claudebox.model import Plan
from claudebox.output.as_json import audit_json, dry_run_json, dump
from claudebox.output.audit import audit
from claudebox.output.explanation import explanation_json, explanation_text
from claudebox.output.shell import shell_command
from claudebox.output.terminal import output_style, say, show
from claudebox.plan import make_plan, sections_of
from claudebox.settings import Settings
from claudebox.settings.files import Profile, list_profiles
from claudebox.settings.gather import gather
from claudebox.settings.words import Request
from claudebox.state import SHOWN
from claudebox.text import Style, escape, table_row

NO_PROGRAM = ("true",)
PLACE = 21
YOUR_OWN = f"Your own: {SHOWN.profiles}/NAME.toml (or .json); its keys: --help all"


def show_audit(request: Request) -> int:
    _, _, plan = _plan(request)
    sections = sections_of(plan)
    show(audit_json(plan, sections) if request.json else audit(plan, sections, output_style()))
    return 0


def show_dry_run(request: Request) -> int:
    host, settings, plan = _plan(request)
    sections, less = sections_of(plan), settings
    for feature in FEATURES:
        less = feature.pasted(plan, less)
    pasted = plan if less == settings else make_plan(host, request, less)
    show(dry_run_json(pasted, sections) if request.json else shell_command(pasted, sections))
    return 0


def show_explanation(request: Request) -> int:
    host, settings, plan = _plan_to_explain(request)
    thing = dict(request.said)["explain"]
    answers = explain(plan, host, settings, thing)
    show(explanation_json(thing, answers) if request.json else explanation_text(answers, output_style()))
    return 0


def _plan_to_explain(request: Request) -> tuple[Host, Settings, Plan]:
    """Plan the box. Where the agent is not installed yet, a question is answered about a box for another program."""
    try:
        return _plan(request)
    except Problem as problem:
        if problem.status != NOT_FOUND or request.run is not None:
            raise
        planned = _plan(request.replace(run=NO_PROGRAM))
        say(f"claudebox: {escape(problem.message)}: this is about a box without it\n")
        return planned


def _plan(request: Request) -> tuple[Host, Settings, Plan]:
    """Plan a box that is only shown: nobody is asked anything, and what is not known yet stays unknown."""
    host = read_host()
    settings = gather(SETTINGS, host, request).settings
    return host, settings, make_plan(host, request, settings)


def show_profiles(request: Request) -> int:
    profiles = list_profiles(SETTINGS, read_host())
    listed = [{"name": one.name, "description": one.description, "file": one.file} for one in profiles]
    show(dump({"profiles": listed}) if request.json else profiles_text(profiles, output_style()))
    return 0


def profiles_text(profiles: list[Profile], style: Style) -> str:
    lines: list[str] = []
    for profile in profiles:
        lines += table_row(
            profile.name, [*escape(profile.description).split(), f"({escape(profile.file)})"], PLACE, style
        )
    lines += ["", YOUR_OWN]
    return "\n".join(lines) + "\n"
