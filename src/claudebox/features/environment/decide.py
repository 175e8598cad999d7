"""Decides which variables enter the box. The host's environment stays outside unless a rule names a variable."""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.model import EnvVar, Finding, Origin, Person
from claudebox.problem import Problem
from claudebox.secret_values import looks_secret
from claudebox.settings.values import EnvWish, Word

BOX = Origin.of_rule("box", "made for this box")
ALLOWED = Origin.of_rule("allowed", "passed on if the host has it")
CERTIFICATES = Origin.of_rule("certificates", "where TLS finds the certificate bundle")

# These enter as they are on the host.
PASSED = ("TERM", "EDITOR", "LANG", "LC_ALL", "ANTHROPIC_API_KEY")
MADE = ("HOME", "USER", "SHELL", "PATH", "TMPDIR", "XDG_RUNTIME_DIR")  # see made_by_the_box
CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "NIX_SSL_CERT_FILE")

# bwrap is started with the box's environment, and runs outside of the box. A variable that its loader or libc obeys
# could make it run the project's code on the host: bwrap sets these for the program instead.
LOADER_PREFIXES = ("LD_", "MALLOC_", "GLIBC_")
LOADER_NAMES = frozenset("GCONV_PATH GETCONF_DIR HOSTALIASES LOCALDOMAIN LOCPATH NLSPATH RES_OPTIONS TZDIR".split())


def decide(facts: Facts, draft: Draft) -> Contribution:
    environ, wishes = facts.host.environ, facts.settings.env
    variables = plan_environment(
        environ=environ,
        person=facts.person,
        path=draft.search_path,
        shell=facts.system.shell,
        certificates=facts.certificates,
        features=draft.variables,
        wishes=wishes,
        dropped=facts.settings.dropped,
        kept_out=dict(draft.kept_out),
    )
    findings = environment_findings(variables, wishes, environ)
    return Contribution(findings=tuple(findings), decided=(("environment", variables),))


def plan_environment(
    environ: dict[str, str],
    person: Person,
    path: tuple[str, ...],
    shell: str,
    certificates: str,
    features: list[EnvVar],
    wishes: tuple[EnvWish, ...],
    dropped: tuple[Word, ...] = (),
    kept_out: dict[str, str] | None = None,
) -> tuple[EnvVar, ...]:
    """Every variable of the box. A later rule wins over an earlier one, and `kept_out` wins over all of them.

    `kept_out` has the names that stay outside, whoever asks for them, and the reason.
    """
    variables = made_by_the_box(person, path, shell)
    variables += [
        EnvVar(name, environ[name], ALLOWED) for name in PASSED if name in environ and _may_pass(name, environ)
    ]
    if certificates:
        variables += [EnvVar(name, certificates, CERTIFICATES) for name in CERTIFICATE_VARIABLES]
    variables += features
    for wish in wishes:
        variables += _granted(wish, environ)
        if kept_out and wish.name in kept_out:
            raise Problem(f"{wish.origin.shown}: {wish.name} {kept_out[wish.name]}", "choose: --auth passthrough")
    variables = [variable for variable in variables if variable.name not in (kept_out or ()) or variable.is_ours]
    by_name = {variable.name: _marked(variable) for variable in variables}
    for drop in dropped:
        if drop.text in by_name and by_name[drop.text].is_ours:
            raise Problem(f"{drop.origin.shown}: {drop.text} is made by the box, and programs need it")
        by_name.pop(drop.text, None)
    return tuple(by_name.values())


def _may_pass(name: str, environ: dict[str, str]) -> bool:
    # The C library takes a locale with a slash for a path, in bwrap too.
    return not (name in ("LANG", "LC_ALL") and "/" in environ[name])


def made_by_the_box(person: Person, path: tuple[str, ...], shell: str) -> list[EnvVar]:
    values = {
        "HOME": person.home,
        "USER": person.name,
        "SHELL": shell,
        "PATH": ":".join(path),
        "TMPDIR": "/tmp",
        "XDG_RUNTIME_DIR": f"/run/user/{person.uid}",
    }
    return [EnvVar(name, value, BOX, is_ours=True) for name, value in values.items()]


def _granted(wish: EnvWish, environ: dict[str, str]) -> list[EnvVar]:
    if wish.name in MADE and (wish.value is None or wish.name not in ("PATH", "SHELL")):
        raise Problem(
            f"{wish.origin.shown}: {wish.name} is made by the box and cannot be passed in",
            "PATH and SHELL can be set to a value of your own: --env PATH=…" if wish.name in ("PATH", "SHELL") else "",
        )
    value = environ.get(wish.name) if wish.value is None else wish.value
    return [] if value is None else [EnvVar(wish.name, value, wish.origin)]


def _marked(variable: EnvVar) -> EnvVar:
    if variable.is_ours:
        return variable
    secret = looks_secret(variable.name, variable.value)
    late = variable.name.startswith(LOADER_PREFIXES) or variable.name in LOADER_NAMES
    if late and secret:
        raise Problem(f"{variable.name} looks secret ({secret}), and everybody on this host could read it in `ps`")
    return variable.replace(secret=secret, late=late)


def environment_findings(
    variables: tuple[EnvVar, ...], wishes: tuple[EnvWish, ...], environ: dict[str, str]
) -> list[Finding]:
    findings = [
        Finding(Finding.SECRET, variable.name, f"enters and looks secret ({variable.secret})")
        for variable in variables
        if variable.secret
    ]
    findings += [
        Finding(Finding.NOTE, wish.name, f"asked for by {wish.origin.shown}, but not set")
        for wish in wishes
        if wish.value is None and wish.name not in environ
    ]
    return findings
