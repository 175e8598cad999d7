"""Explains why a variable is in the box or not."""

from __future__ import annotations

from claudebox.features.environment.decide import ALLOWED, LOADER_NAMES, LOADER_PREFIXES, MADE
from claudebox.host import Host
from claudebox.model import EnvVar, Finding, Origin, Plan
from claudebox.settings.values import EnvWish, Settings
from claudebox.trust.secret_values import looks_secret
from claudebox.trust.variables import KEY, KINDS, LOCALE, PLAIN, ZONE
from claudebox.view.explanation import IN, OUT, VARIABLE, Answer, Because, Change, describe_origin, undo, with_reason

LONGEST_VALUE = 200
PASSED = frozenset(name for name, kind in KINDS.items() if kind in (PLAIN, LOCALE, ZONE, KEY))
PASSTHROUGH = ("--auth", "passthrough")
SETTABLE = ("PATH", "SHELL")


def explain_variable(plan: Plan, host: Host, settings: Settings, name: str) -> Answer:
    variable = next((variable for variable in plan.environment if variable.name == name), None)
    if name == "PWD" and variable is None:
        # bwrap sets it where it starts the program.
        variable = EnvVar(name, plan.project, Origin.of_rule("box", "the directory of the project"))
    found = (one for one in plan.findings if one.kind == Finding.NOTE and name in one.subject.split(", "))
    notes = tuple(Because(finding.text) for finding in found)
    wishes = [wish for wish in settings.env if wish.name == name]
    if variable is not None:
        wishes = [wish for wish in wishes if wish.value is not None or name in host.environ]
        because = (*_entering(variable, host, wishes), *notes)
        return Answer(VARIABLE, name, IN, "in the box", because, tuple(_ways_out(variable, wishes)))
    if name in dict(plan.kept_out) and plan.broker is not None:
        reason = Because("--auth broker keeps credentials, and the way to them, outside")
        return Answer(VARIABLE, name, OUT, "not in the box", (reason,), (Change("lets it in", PASSTHROUGH),))
    drops = [drop.origin for drop in settings.drop_env if drop.text == name]
    others = (note for note in notes if not any(wish.origin.shown in note.text for wish in wishes))
    because = (*_staying_out(host, name, wishes, drops), *others)
    return Answer(VARIABLE, name, OUT, "not in the box", because, tuple(_ways_in(host, name, wishes, drops)))


def _entering(variable: EnvVar, host: Host, wishes: list[EnvWish]) -> list[Because]:
    origin, value = variable.origin, variable.value
    is_hosts = origin.is_rule(ALLOWED, "proxy", "gateway") and host.environ.get(variable.name) == value
    is_passed = wishes[-1].value is None if wishes else is_hosts
    verb = "passes this host's value" if is_passed else "sets it"
    shown = f"its value: {value[:LONGEST_VALUE]}{'…' if len(value) > LONGEST_VALUE else ''}"
    if variable.secret:
        shown = f"its value looks secret ({variable.secret}) and is not shown"
    because = [with_reason(f"{describe_origin(origin)} {verb}", origin), Because(shown)]
    if host.environ.get(variable.name, value) != value:
        because.append(Because("this host's own value stays outside"))
    return because


def _ways_out(variable: EnvVar, wishes: list[EnvWish]) -> list[Change]:
    name = variable.name
    if name not in SETTABLE and (name in (*MADE, "PWD") or variable.is_ours):
        return [Change("cannot be changed: it is made by the box, and programs need it")]
    changes = [] if name in SETTABLE else [Change("keeps it out", ("--drop-env", name))]
    changes += [] if variable.secret else [Change("gives it another value", ("--env", f"{name}=VALUE"))]
    # A value that was typed may be secret: the name is enough to find it.
    changes += [change for wish in wishes for change in undo(wish.origin, name)]
    return list(dict.fromkeys(changes))


def _staying_out(host: Host, name: str, wishes: list[EnvWish], drops: list[Origin]) -> list[Because]:
    because = [with_reason(f"{describe_origin(origin)} keeps it out", origin) for origin in drops]
    because += [] if drops else [Because(f"{wish.origin.shown} asks for it", wish.origin) for wish in wishes]
    if name not in host.environ:
        because.append(Because("this host does not have it set"))
    elif not drops and KINDS.get(name) in (LOCALE, ZONE):
        because.append(Because("its value is a path, which would make bwrap itself read that file"))
    elif not drops and KINDS.get(name) != KEY:
        because.append(Because("this host has it set, and no rule lets it in"))
    return because


def _ways_in(host: Host, name: str, wishes: list[EnvWish], drops: list[Origin]) -> list[Change]:
    undone = [change for origin in drops for change in undo(origin, name)]
    if undone and (wishes or name in PASSED):
        return undone
    if name not in host.environ or name in PASSED:
        is_passed_on = name not in host.environ and (name in PASSED or wishes)
        passed = [Change("set it on this host: then it is passed on")] if is_passed_on else []
        return [*undone, *passed, Change("gives it a value", ("--env", f"{name}=VALUE"))]
    secret = looks_secret(name, host.environ[name])
    if secret and (name.startswith(LOADER_PREFIXES) or name in LOADER_NAMES):
        return [*undone, Change(f"cannot be changed: it looks secret ({secret}), and everybody could read it in `ps`")]
    warning = f"; it looks secret ({secret}), which is shown before the start" if secret else ""
    return [*undone, Change(f"passes this host's value{warning}", ("--env", name))]
