"""Git in the box: an identity, trust in the project, the repository's directory, and no credentials."""

from __future__ import annotations

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.host.git import config as gitconfig
from claudebox.host.git.config import host_configs
from claudebox.host.git.repository import Repository
from claudebox.host.tree import Tree
from claudebox.model import COVER, FILE, LAYER, RW, Finding, Mount, Origin, SecretPlace
from claudebox.places import contained_secret, openings, refuse_writable
from claudebox.record import Record

NEUTRAL_NAME = "claudebox"
NEUTRAL_EMAIL = "claudebox@localhost"
RULE = "git"
IGNORED = "/etc/claudebox/masked"  # in the box: names of masked files, as a .gitignore has them


class Identity(Record):
    """Who commits."""

    name: str
    email: str
    is_neutral: bool = False


def decide(facts: Facts, _: Draft) -> Contribution:
    repository, homes, places = facts.repository, facts.person.homes, facts.places
    identity = find_identity(facts.tree, facts.host.environ, facts.host.person.home, repository.git_dir)
    masked = facts.secrets.ignored if facts.secrets is not None else b""
    config = config_files(identity, facts.home, facts.project, repository, masked, is_guarded=_is_guarded(facts))
    return Contribution(
        mounts=(*repository_mounts(repository, homes, places, LAYER if facts.is_reviewed else RW), *config),
        findings=tuple(git_findings(repository, identity, homes, places)),
    )


def find_identity(tree: Tree, environ: dict[str, str], home: str, git_dir: str) -> Identity:
    """Take user.name and user.email from where git would find them, except for the repository's own file."""
    values: dict[str, str] = {}
    for path in host_configs(environ, home):
        values.update(gitconfig.load(tree, path, home, git_dir))
    name, email = _shown(values.get("user.name", "")), _shown(values.get("user.email", ""))
    if not name and not email:
        return Identity(NEUTRAL_NAME, NEUTRAL_EMAIL, is_neutral=True)
    return Identity(name or NEUTRAL_NAME, email or NEUTRAL_EMAIL, is_neutral=not (name and email))


def _shown(text: str) -> str:
    """Leave out what cannot be shown: the identity appears on the screen."""
    return "".join(character for character in text if character.isprintable())


def config_files(
    identity: Identity, home: str, project: str, repository: Repository, ignored: bytes, *, is_guarded: bool
) -> list[Mount]:
    """The user's configuration of git, and the list of masked files, which git must not add to the repository."""
    trusted = [project, f"{project}/*", *([repository.outside] if repository.outside else [])]
    lines = ["[user]", f"\tname = {quote_value(identity.name)}", f"\temail = {quote_value(identity.email)}", "[safe]"]
    lines += [f"\tdirectory = {quote_value(path)}" for path in trusted]
    # An empty value forgets every helper that was configured before.
    lines += ["[credential]", "\thelper ="]
    # Other worktrees are not visible in the box: git must not conclude that they are gone.
    lines += ["[gc]", "\tworktreePruneExpire = never"]
    # Where the repository's own file is guarded, a new branch cannot be told its upstream, and git would complain.
    lines += ["[branch]", "\tautoSetupMerge = false"] if is_guarded else []
    # Not the repository's own list: it may be missing, and a file that is mounted there would stay on the host.
    lines += ["[core]", f"\texcludesFile = {IGNORED}"] if ignored else []
    shown = f"identity {identity.name} <{identity.email}>"
    origin = Origin.of_rule(RULE, f"neutral {shown}" if identity.is_neutral else shown)
    content = ("\n".join(lines) + "\n").encode(errors="surrogateescape")
    masked = Origin.of_rule(RULE, "masked files, which git must not add")
    return [
        Mount(FILE, f"{home}/.gitconfig", origin, content=content, mode=0o644),
        *([Mount(COVER, IGNORED, masked, content=ignored, mode=0o444)] if ignored else []),
    ]


def quote_value(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def repository_mounts(
    repository: Repository, homes: tuple[str, ...], places: tuple[SecretPlace, ...], kind: str = RW
) -> list[Mount]:
    if not _may_mount(repository, homes, places):
        return []
    return [Mount(kind, repository.outside, Origin.of_rule(RULE, repository.why), source=repository.outside)]


def _may_mount(repository: Repository, homes: tuple[str, ...], places: tuple[SecretPlace, ...]) -> bool:
    outside = repository.outside
    if not outside or not outside.isprintable():
        return False
    return not refuse_writable(outside, homes, places) and contained_secret(outside, places) is None


def git_findings(
    repository: Repository, identity: Identity, homes: tuple[str, ...], places: tuple[SecretPlace, ...]
) -> list[Finding]:
    findings = []
    if repository.trouble:
        advice = f"; {repository.remedy}" if repository.remedy else ""
        findings.append(Finding(Finding.NOTE, "git", f"{repository.trouble}{advice}"))
    if repository.outside and not _may_mount(repository, homes, places):
        findings.append(Finding(Finding.NOTE, "git", f"{repository.outside} may not be mounted: git will not work"))
    if identity.is_neutral:
        findings.append(
            Finding(Finding.NOTE, "git", f"no identity found: commits are by {identity.name} <{identity.email}>")
        )
    return findings


def _is_guarded(facts: Facts) -> bool:
    """Whether the repository's own configuration is read-only in the box."""
    git_dir = facts.repository.git_dir
    opened = openings(facts.settings.writable, facts.project, facts.home)
    return bool(git_dir) and not facts.is_reviewed and not any(opening.opens(f"{git_dir}/config") for opening in opened)
