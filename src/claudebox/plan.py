"""Turns facts into a Plan: a loop over the features, `arrange`, and a loop over those that need all the others."""

from __future__ import annotations

from claudebox.errors import Problem, quote
from claudebox.facts import Draft, Facts, find_claude_home, find_claudes_own_place
from claudebox.features.claude import find_claude
from claudebox.features.secrets import table as secrets_table
from claudebox.features.secrets.finding import find_secrets
from claudebox.features.system import box_person
from claudebox.features.table import FEATURES
from claudebox.host import Host
from claudebox.host.git.index import Indexes, Loose
from claudebox.host.programs import check_named, choose_bwrap
from claudebox.host.secrets import check_project, secret_places
from claudebox.host.system import BOX_NAME, find_system
from claudebox.host.tree import Tree
from claudebox.host.walk import BEYOND, MOST_DIRECTORIES, Entry, walk_project
from claudebox.model import Outside, Plan, Preparation, SecretPlace
from claudebox.overlay import table as guard_table
from claudebox.paths import absolute
from claudebox.sandbox.law import lay_down
from claudebox.sandbox.mounts import add_identities, arrange, pin_directories
from claudebox.settings import Settings
from claudebox.settings.table import BWRAP_PATH, HIDES, NFT_PATH, PASTA_PATH
from claudebox.settings.words import Request
from claudebox.state import Instance, State, check_state, claude_settings, find_state
from claudebox.state.reach import TrustedSource, find_own_repository, host_certificates, reach_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.output.section import Section

IN_PROJECT = guard_table.WANTED | secrets_table.WANTED


def make_plan(host: Host, request: Request, settings: Settings) -> Plan:
    """Decide everything about the box. A promise is never weakened: if it cannot be kept, this raises a Problem."""
    return decide(survey(host, request, settings))


def survey(host: Host, request: Request, settings: Settings, answered: tuple[str, ...] = ()) -> Facts:
    """Find out what several features need to know."""
    tree, environ = host.tree, host.environ
    places, reach = _check_places(host), reach_of(host)
    check_named(host, settings[PASTA_PATH], settings[NFT_PATH])
    bwrap = choose_bwrap(host, settings[BWRAP_PATH], reach)
    repository = find_own_repository(reach)
    person = box_person(host.person)
    all_projects = find_state(host)
    instance = all_projects.instance(repository.canonical_root(host.cwd))
    state = _find_state(tree, all_projects, instance, host.person.uid)
    claude = find_claude_home(all_projects, instance, person, environ)
    last = tree.lstat(f"{instance.masks}/lock")  # touched whenever a box starts
    since = last.st_mtime_ns if last is not None else 0
    loose = Loose(Indexes(tree, host.cwd, repository.git_dir), since)
    # What the project's own file hides, which an agent may have written, is looked at all the same.
    hides = [hide for hide in settings[HIDES] if not hide.origin.is_projects]
    hidden = frozenset(absolute(hide.text, host.cwd, host.person.home) for hide in hides)
    directories: list[str] = []
    entries = walk_project(tree, host.cwd, IN_PROJECT, loose, hidden, directories)
    _check_size(host.cwd, entries)
    claudes = find_claudes_own_place(tree, claude, host.cwd)
    places = places if claudes in places else (*places, claudes)
    trusted = TrustedSource(reach, claude.users, host.person.homes, places)
    users = claude_settings.look(trusted, claude)
    return Facts(
        host=host,
        request=request,
        settings=settings,
        person=person,
        bwrap=bwrap,
        places=places,
        system=find_system(tree, environ.get("PATH", "")),
        repository=repository,
        certificates=host_certificates(reach, environ | dict(users.leading)),
        install=find_claude(host, request, settings, places, reach),
        claude=claude,
        state=state,
        reach=reach,
        trusted=trusted,
        users=users,
        entries=entries,
        directories=tuple(directories),
        hidden=hidden,
        since=since,
        secrets=find_secrets(host, settings, repository, state, entries, loose),
        answered=answered,
    )


def decide(facts: Facts) -> Plan:
    draft = Draft()
    features = [feature for feature in FEATURES if feature.applies(facts)]
    for feature in features:
        draft = draft.and_then(feature.decide(facts, draft))
    plan = _assemble(facts, draft)
    for feature in features:
        plan = feature.complete(facts, draft, plan)
    return _with_sandbox_md(plan.replace(law=lay_down(facts)))


def sections_of(plan: Plan) -> tuple[Section, ...]:
    """What all features show of a box."""
    from claudebox.output.law import law_section

    assert plan.law is not None
    shown = (section for feature in FEATURES for section in feature.show(plan))
    return (*shown, law_section(plan.law, plan.person.home))


def _with_sandbox_md(plan: Plan) -> Plan:
    """The plan with the text for the agent, which is a view of it."""
    if all(preparation.kind != Preparation.SANDBOX for preparation in plan.preparations):
        return plan
    from claudebox.output.sandbox_md import sandbox_md

    text = sandbox_md(plan, sections_of(plan)).encode(errors="replace")
    preparations = (
        one.replace(kind=Preparation.FILE, content=text) if one.kind == Preparation.SANDBOX else one
        for one in plan.preparations
    )
    return plan.replace(preparations=tuple(preparations))


def _assemble(facts: Facts, draft: Draft) -> Plan:
    mounts = pin_directories(arrange(draft.mounts, draft.hides), draft.pins)
    assert draft.network is not None
    assert draft.program is not None
    assert draft.kernel is not None
    return Plan(
        project=facts.project,
        bwrap=facts.bwrap,
        person=facts.person,
        hostname=BOX_NAME,
        mounts=add_identities(facts.tree, mounts, facts.claude.all_projects.directory),
        environment=draft.environment,
        network=draft.network,
        program=draft.program,
        kernel=draft.kernel,
        wrapper=draft.wrapper,
        findings=(*facts.settings.findings, *draft.findings),
        preparations=draft.preparations,
        records=draft.records,
        grants=draft.grants,
        told=draft.told,
        policy=draft.policy,
        outside=_outside(facts, draft),
        state=facts.state,
        steps=draft.steps,
        unknown=draft.unknown,
        kept_out=draft.kept_out,
    )


def _outside(facts: Facts, draft: Draft) -> Outside:
    entering = {variable.name for variable in draft.environment}
    return Outside(
        variables=len(facts.host.environ.keys() - entering),
        places=tuple(one for one in draft.hidden_places(facts.places) if one.exists and not one.is_drawer),
    )


def _check_places(host: Host) -> tuple[SecretPlace, ...]:
    """The secret places. Raises a Problem if the home or the project cannot be used."""
    home, homes = host.person.home, host.person.homes
    if home == "/" or ":" in home or not home.isprintable():
        raise Problem(f"HOME is {home!r}, which cannot be a home in the box", "export HOME=/path/to/your/home")
    places = secret_places(host.tree, homes, host.environ, host.cwd)
    check_project(host.cwd, homes, places)
    return places


def _check_size(project: str, entries: tuple[Entry, ...]) -> None:
    """What was not looked at must not be in the box: there may be secrets."""
    if entries and entries[-1].kind == BEYOND:
        top = quote(entries[-1].path[len(project) + 1 :].partition("/")[0])
        raise Problem(
            f"the project has more than {MOST_DIRECTORIES:,} directories: not all of them can be looked at for secrets",
            f"see whether they are needed in the box, or: --hide {top}",
        )


def _find_state(tree: Tree, all_projects: State, instance: Instance, uid: int) -> Instance | None:
    try:
        check_state(tree, all_projects, instance, uid)
    except Problem:
        return None
    return instance
