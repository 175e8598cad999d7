"""`--explain` about a variable: why it is in the box or not."""

from __future__ import annotations

from claudebox.features.environment import LOADER_NAMES, LOADER_PREFIXES, MADE
from claudebox.host import Host
from claudebox.host.secrets import looks_secret
from claudebox.host.variables import KEY, KINDS, LOCALE, PLAIN, ZONE
from claudebox.model import EnvVar, Finding, Origin
from claudebox.output.explanation import Answer, Because, Change, Question, describe_origin, undo, with_reason
from claudebox.settings.table import AUTH, BROKER, DROP_ENV, ENV, PASSTHROUGH

LONGEST_VALUE = 200
SETTABLE = ("PATH", "SHELL")


def explain(question: Question) -> list[Answer]:
    plan, host, settings, name = question.plan, question.host, question.settings, question.variable
    if not name:
        return []
    variable = next((variable for variable in plan.environment if variable.name == name), None)
    if name == "PWD" and variable is None:
        # bwrap sets it where it starts the program.
        variable = EnvVar(name, plan.project, Origin.of_rule("box", "the directory of the project"))
    found = (one for one in plan.findings if one.kind == Finding.NOTE and name in one.subject.split(", "))
    notes = [Because(finding.text) for finding in found]
    # A value that was typed may be secret: the name is enough to find it.
    undone = [change for wish in settings[ENV] if wish.name == name for change in undo(wish.origin, name)]
    if variable is not None:
        ways, because = list(dict.fromkeys(_ways_out(variable, undone))), [*_entering(variable, host), *notes]
        return [Answer(Answer.VARIABLE, name, Answer.IN, "in the box", because, ways)]
    said = settings[AUTH].text
    if name in dict(plan.kept_out) and said != PASSTHROUGH:
        because = [Because(f"--auth {said} keeps credentials, and the way to them, outside")]
        ways = [Change("lets it in", ("--auth", PASSTHROUGH) if said == BROKER else ("--env", name))]
    elif drops := [drop.origin for drop in settings[DROP_ENV] if drop.text == name]:
        because = [with_reason(f"{describe_origin(origin)} keeps it out", origin) for origin in drops]
        ways = [change for origin in drops for change in undo(origin, name)]
    elif name in host.environ:
        is_path = KINDS.get(name) in (LOCALE, ZONE)
        why = "a path, which would make bwrap itself read that file" if is_path else "set, and no rule lets it in"
        because, ways = [Because(f"on this host it is {why}"), *notes], [_way_in(name, host.environ[name])]
    else:
        because = [Because("this host does not have it set"), *notes]
        ways = [Change("gives it a value", ("--env", f"{name}=VALUE"))]
    return [Answer(Answer.VARIABLE, name, Answer.OUT, "not in the box", because, ways)]


def _entering(variable: EnvVar, host: Host) -> list[Because]:
    origin, value = variable.origin, variable.value
    is_passed = variable.name not in MADE and host.environ.get(variable.name) == value
    verb = "passes this host's value" if is_passed else "sets it"
    shown = f"its value: {value[:LONGEST_VALUE]}{'…' if len(value) > LONGEST_VALUE else ''}"
    if variable.secret:
        shown = f"its value looks secret ({variable.secret}) and is not shown"
    because = [with_reason(f"{describe_origin(origin)} {verb}", origin), Because(shown)]
    if host.environ.get(variable.name, value) != value:
        because.append(Because("this host's own value stays outside"))
    return because


def _ways_out(variable: EnvVar, undone: list[Change]) -> list[Change]:
    name = variable.name
    if name not in SETTABLE and (name in (*MADE, "PWD") or variable.is_ours):
        return [Change("cannot be changed: it is made by the box, and programs need it")]
    keeping = [] if name in SETTABLE else [Change("keeps it out", ("--drop-env", name))]
    setting = [] if variable.secret else [Change("gives it another value", ("--env", f"{name}=VALUE"))]
    return [*keeping, *setting, *undone]


def _way_in(name: str, value: str) -> Change:
    if KINDS.get(name) in (PLAIN, LOCALE, ZONE, KEY):
        return Change("gives it a value", ("--env", f"{name}=VALUE"))
    secret = looks_secret(name, value)
    if secret and (name.startswith(LOADER_PREFIXES) or name in LOADER_NAMES):
        return Change(f"cannot be changed: it looks secret ({secret}), and everybody could read it in `ps`")
    warning = f"; it looks secret ({secret}), which is shown before the start" if secret else ""
    return Change(f"passes this host's value{warning}", ("--env", name))
