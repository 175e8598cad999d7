"""Which variables enter the box, and whom it may believe."""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.secrets import looks_secret
from claudebox.host.system import CERTIFICATE_VARIABLES
from claudebox.host.variables import (
    AROUND,
    BASE_URL,
    JUDGED,
    KEY,
    KINDS,
    LEADING,
    LOOPBACK,
    PROXY,
    REASONS,
    is_harmless,
    is_loopback,
    may_hold_password,
    read_address,
)
from claudebox.model import EnvVar, Finding, Origin, Person, Plan
from claudebox.settings import EnvWish
from claudebox.settings.table import DROP_ENV, ENV

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features import Answer, Question, Section

BOX = Origin.of_rule("box", "made for this box")
AROUND_PROXY = Origin.of_rule("proxy", "the way to the API does not lead through it")
CERTIFICATES = Origin.of_rule("certificates", "where TLS finds the certificate bundle")

ALLOWED = "allowed"
COERCED = ("C.UTF-8", "C.utf8", "UTF-8")  # Python sets one of these itself if nobody has chosen a language
MADE = ("HOME", "USER", "SHELL", "PATH", "TMPDIR", "XDG_RUNTIME_DIR")  # see made_by_the_box

# bwrap is started with the box's environment, and runs outside of the box. A variable that its loader or libc obeys
# could make it run the project's code on the host: bwrap sets these for the program instead.
LOADER_PREFIXES = ("LD_", "MALLOC_", "GLIBC_")
LOADER_NAMES = frozenset("GCONV_PATH GETCONF_DIR HOSTALIASES LOCALDOMAIN LOCPATH NLSPATH RES_OPTIONS TZDIR".split())


class Routes(Feature):
    """Variables that say where requests go or whom to believe, or hold a credential that has to be judged."""

    def applies(self, facts: Facts) -> bool:
        users, names = facts.users, (*facts.host.environ, *(wish.name for wish in facts.settings[ENV]))
        return bool(users.leading or users.foreign or users.holds) or not (JUDGED | LEADING).isdisjoint(names)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.environment import routes

        return routes.decide(facts, draft)


class Environment(Feature):
    """All other variables."""

    settings = (DROP_ENV,)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        """Every variable of the box. A later rule wins; what is kept out stays outside, whoever asks for it."""
        # Claude puts its settings above the variables of the host: whoever asks for what both have means that.
        environ, wishes = facts.host.environ | dict(facts.users.leading), facts.settings[ENV]
        kept_out = dict(draft.kept_out)
        variables = made_by_the_box(facts.person, draft.search_path, facts.system.shell)
        entering = [name for name in KINDS if enters(name, environ)]
        variables += [EnvVar(name, environ[name], Origin.of_rule(ALLOWED, REASONS[name])) for name in entering]
        if facts.certificates:
            variables += [EnvVar(name, facts.certificates, CERTIFICATES) for name in CERTIFICATE_VARIABLES]
        variables += draft.variables
        for wish in wishes:
            if wish.name == BASE_URL and BASE_URL in kept_out:
                continue  # the broker takes it, and the box keeps the way to the broker
            variables += _granted(wish, environ)
            if wish.name in kept_out:
                raise Problem(f"{wish.origin.shown}: {wish.name} {kept_out[wish.name]}", "choose: --auth passthrough")
        variables = [variable for variable in variables if variable.name not in kept_out or variable.is_ours]
        by_name = {variable.name: _marked(variable) for variable in variables}
        for drop in facts.settings[DROP_ENV]:
            if drop.text in by_name and by_name[drop.text].is_ours:
                raise Problem(f"{drop.origin.shown}: {drop.text} is made by the box, and programs need it")
            by_name.pop(drop.text, None)
        decided = tuple(_around_loopback(by_name).values())
        secrets = [
            Finding(Finding.SECRET, one.name, f"enters and looks secret ({one.secret})")
            for one in decided
            if one.secret
        ]
        unset = [
            Finding(Finding.NOTE, wish.name, f"asked for by {wish.origin.shown}, but not set")
            for wish in wishes
            if wish.value is None and wish.name not in environ
        ]
        return Contribution(findings=(*secrets, *unset), environment=decided)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import Section

        users = [one for one in plan.environment if not one.is_ours and not one.origin.is_rule("certificates")]
        names = ", ".join(f"`{variable.name}`" for variable in users) or "none"
        text = f"Of the user's variables you have: {names}. All others stayed outside.\n"
        return (Section(told=(("Environment", text),)),)

    def explain(self, question: Question) -> list[Answer]:
        from claudebox.features.environment import diagnosis

        return diagnosis.explain(question)


def enters(name: str, environ: dict[str, str]) -> bool:
    """Whether a variable of the host enters as it is, without being asked for."""
    if name not in environ or (name == "LC_CTYPE" and environ[name] in COERCED and "LANG" not in environ):
        return False
    return KINDS.get(name) == KEY or is_harmless(name, environ[name])


def _around_loopback(by_name: dict[str, EnvVar]) -> dict[str, EnvVar]:
    """Keep requests for a gateway or broker on localhost away from a proxy: it would get the key, unencrypted."""
    route = read_address(by_name[BASE_URL].value) if BASE_URL in by_name else None
    if route is None or not is_loopback(route[1]) or not any(KINDS.get(name) == PROXY for name in by_name):
        return by_name
    names = [name for name in by_name if KINDS.get(name) == AROUND] or ["NO_PROXY"]
    for name in names:
        variable = by_name.get(name) or EnvVar(name, "", AROUND_PROXY)
        said = [word.strip() for word in variable.value.split(",")]
        missing = [place for place in LOOPBACK if place not in said and said != ["*"]]
        by_name[name] = variable.replace(value=",".join([*filter(None, said), *missing]))
    return by_name


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
    if not secret and variable.name in LEADING and may_hold_password(variable.value):
        secret = "it may hold a password"
    late = variable.name.startswith(LOADER_PREFIXES) or variable.name in LOADER_NAMES
    if late and secret:
        raise Problem(f"{variable.name} looks secret ({secret}), and everybody on this host could read it in `ps`")
    return variable.replace(secret=secret, late=late)
