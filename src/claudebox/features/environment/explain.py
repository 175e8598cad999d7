"""Explains why a variable is in the box or not."""

from __future__ import annotations

from claudebox.answers import IN, OUT, VARIABLE, Answer, Because, Change, describe_origin, undo, with_reason
from claudebox.features.environment.decide import ALLOWED, LOADER_NAMES, LOADER_PREFIXES, MADE
from claudebox.host import Host
from claudebox.model import EnvVar, Finding, Origin, Plan
from claudebox.settings.values import EnvWish, Settings
from claudebox.trust.secret_values import looks_secret
from claudebox.trust.variables import KEY, KINDS, LOCALE, PLAIN, ZONE

LONGEST_VALUE = 200
PASSED = frozenset(name for name, kind in KINDS.items() if kind in (PLAIN, LOCALE, ZONE, KEY))
PASSTHROUGH = ("--auth", "passthrough")
SETTABLE = ("PATH", "SHELL")
MADE_BY_THE_BOX = "cannot be changed: it is made by the box, and programs need it"


def explain_variable(plan: Plan, host: Host, settings: Settings, name: str) -> Answer:
    variable = next((variable for variable in plan.environment if variable.name == name), None)
    if name == "PWD" and variable is None:
        # bwrap sets it where it starts the program.
        variable = EnvVar(name, plan.project, Origin.of_rule("box", "the directory of the project"))
    notes = [
        Because(finding.text)
        for finding in plan.findings
        if name in finding.subject.split(", ") and finding.kind == Finding.NOTE
    ]
    wishes = [wish for wish in settings.env if wish.name == name]
    if variable is not None:
        wishes = [wish for wish in wishes if wish.value is not None or name in host.environ]
        because = [*_entering(variable, host, wishes), *notes]
        return Answer(VARIABLE, name, IN, "in the box", tuple(because), tuple(_ways_out(variable, wishes)))
    if name in dict(plan.kept_out) and plan.broker is not None:
        reason = Because("--auth broker keeps credentials, and the way to them, outside")
        return Answer(VARIABLE, name, OUT, "not in the box", (reason,), (Change("lets it in", PASSTHROUGH),))
    because = _staying_out(host, settings, name, wishes)
    because += [note for note in notes if not any(wish.origin.shown in note.text for wish in wishes)]
    return Answer(VARIABLE, name, OUT, "not in the box", tuple(because), tuple(_ways_in(host, settings, name, wishes)))


def _entering(variable: EnvVar, host: Host, wishes: list[EnvWish]) -> list[Because]:
    origin = variable.origin
    last = wishes[-1] if wishes else None
    is_hosts = origin.is_rule(ALLOWED, "proxy", "gateway") and host.environ.get(variable.name) == variable.value
    is_passed = last.value is None if last is not None else is_hosts
    verb = "passes this host's value" if is_passed else "sets it"
    because = [with_reason(f"{describe_origin(origin)} {verb}", origin)]
    for wish in reversed(wishes[:-1]):
        asks = "passes this host's value" if wish.value is None else "sets it"
        because.append(Because(f"{wish.origin.shown} {asks}, too; what is said later wins", wish.origin))
    if variable.secret:
        because.append(Because(f"its value looks secret ({variable.secret}) and is not shown"))
    else:
        cut = "…" if len(variable.value) > LONGEST_VALUE else ""
        because.append(Because(f"its value: {variable.value[:LONGEST_VALUE]}{cut}"))
    if variable.name in host.environ and not is_passed:
        same = "is the same" if host.environ[variable.name] == variable.value else "stays outside"
        because.append(Because(f"this host's own value {same}"))
    return because


def _ways_out(variable: EnvVar, wishes: list[EnvWish]) -> list[Change]:
    name = variable.name
    if name in SETTABLE:
        return [Change("gives it another value", ("--env", f"{name}=VALUE")), *_undone(wishes)]
    if name in (*MADE, "PWD") or variable.is_ours:
        return [Change(MADE_BY_THE_BOX)]
    return [
        Change("keeps it out", ("--drop-env", name)),
        *([] if variable.secret else [Change("gives it another value", ("--env", f"{name}=VALUE"))]),
        *_undone(wishes),
    ]


def _undone(wishes: list[EnvWish]) -> list[Change]:
    # A value that was typed may be secret: the name is enough to find it.
    changes = [change for wish in wishes for change in undo(wish.origin, wish.name)]
    return list(dict.fromkeys(changes))


def _staying_out(host: Host, settings: Settings, name: str, wishes: list[EnvWish]) -> list[Because]:
    drops = [drop.origin for drop in settings.dropped if drop.text == name]
    because = [with_reason(f"{describe_origin(origin)} keeps it out", origin) for origin in drops]
    verb = "that wins over {}, which lets it in" if drops else "{} asks for it"
    because += [Because(verb.format(wish.origin.shown), wish.origin) for wish in wishes]
    if drops and name in PASSED and name in host.environ and not wishes:
        because.append(Because("that wins over rule `allowed`, which passes it on"))
    if name not in host.environ:
        because.append(Because("this host does not have it set"))
    elif not drops and KINDS.get(name) in (LOCALE, ZONE):
        because.append(Because("its value is a path, which would make bwrap itself read that file"))
    elif not drops and KINDS.get(name) != KEY:
        because.append(Because("this host has it set, and no rule lets it in"))
    return because


def _ways_in(host: Host, settings: Settings, name: str, wishes: list[EnvWish]) -> list[Change]:
    drops = [drop.origin for drop in settings.dropped if drop.text == name]
    undone = [change for origin in drops for change in undo(origin, name)]
    if undone and (wishes or name in PASSED):
        return undone
    if name not in host.environ or name in PASSED:
        given = [Change("gives it a value", ("--env", f"{name}=VALUE"))]
        passed = (
            [Change("set it on this host: then it is passed on")]
            if name not in host.environ and (name in PASSED or wishes)
            else []
        )
        return [*undone, *passed, *given]
    secret = looks_secret(name, host.environ[name])
    if secret and (name.startswith(LOADER_PREFIXES) or name in LOADER_NAMES):
        return [*undone, Change(f"cannot be changed: it looks secret ({secret}), and everybody could read it in `ps`")]
    warning = f"; it looks secret ({secret}), which is shown before the start" if secret else ""
    return [*undone, Change(f"passes this host's value{warning}", ("--env", name))]
