"""Git in the box: an identity, the user's settings, hooks; and no credentials."""

from __future__ import annotations

import posixpath

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.features.git.users import IGNORED, Carried, as_lines, carry, find_ignore_list
from claudebox.host.git import Pairs, Repository, find_repository, host_configs, load_config, parse_config
from claudebox.host.git.directory import read_head
from claudebox.host.secrets import contained_secret, openings, refuse_writable
from claudebox.host.tree import Tree
from claudebox.model import COVER, FILE, LAYER, RO, RW, Directory, EnvVar, Finding, Launch, Mount, Origin, Step
from claudebox.output.terminal import say
from claudebox.record import Record
from claudebox.settings.table import WRITABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features import CheckRow, Deed, Host, Settings

NEUTRAL_NAME = "claudebox"
NEUTRAL_EMAIL = "claudebox@localhost"
RULE = "git"
# Each makes git sign without being asked to. No key is in the box, so nothing is signed there.
SIGNING = {"commit.gpgsign": "commits", "tag.gpgsign": "tags", "push.gpgsign": "pushes"}
OFF = ("", "false", "no", "off", "0")
UNSIGNED = Origin.of_rule(RULE, "no key is in the box: nothing is signed there")
UNSIGNED_TOLD = (
    "Git signs nothing here, although `{key}` is on: there are no keys. Commit as usual, without `-S`; the user signs "
    "afterwards."
)
# Each commit since the one that is named is made again, by the user's own git with the user's own key.
SIGN = "git rebase --force-rebase --rebase-merges --gpg-sign"

SCRIPTS = "claudebox/features/git"  # in a claudebox that is a single file
LFS = "/etc/claudebox/lfs"  # in the box
LFS_LINES = ['[filter "lfs"]', f"\tclean = {LFS} clean", f"\tsmudge = {LFS} smudge", "\trequired = true"]
DIRECTORY = "/etc/claudebox/bin"  # in the box
SCRIPT = "shim.sh"
KNOWN = b"@KNOWN@"
ORIGIN = Origin.of_rule("git", "says beforehand what git cannot do here")


class Git(Feature):
    """Its configuration, and a repository outside of the project."""

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        repository, outside = facts.repository, facts.repository.outside
        users = read_users(facts.tree, facts.host.environ, facts.host.person.home, repository.git_dir)
        own = read_own(facts.tree, repository.git_dir)
        identity = identity_in(users)
        ignored = find_ignore_list(facts, dict(users))
        masked = facts.secrets.ignored if facts.secrets is not None else b""
        carried = carry(users)
        lfs = lfs_filter(facts, users)
        # The names of masked files come last: whatever the user's list says, git must not add them.
        config = config_files(facts, identity, carried, ignored.patterns + masked, bool(lfs))
        signs = signed_by(users, own)
        may_mount = (
            outside.isprintable()
            and not refuse_writable(outside, facts.person.homes, facts.places)
            and contained_secret(outside, facts.places) is None
        )
        kind, origin = LAYER if facts.is_reviewed else RW, Origin.of_rule(RULE, repository.why)
        shown = [Mount(kind, outside, origin, source=outside)] if outside and may_mount else []
        return Contribution(
            mounts=(*shown, *config, *lfs),
            variables=tuple(unsigned_variables(own)),
            findings=(*git_findings(repository, identity_in([*users, *own]), may_mount, signs), *ignored.findings),
            told=(UNSIGNED_TOLD.format(key=signs[0]),) if signs else (),
            steps=(Step(Step.AFTER, self),) if signs and repository.git_dir and not facts.is_reviewed else (),
        )

    def after(self, launch: Launch) -> Deed:
        """Note the commit that is checked out before the program starts."""
        git_dir = find_repository(Tree(), launch.plan.project).git_dir
        before = read_head(Tree(), git_dir)

        def tell(_: bool) -> None:
            now = read_head(Tree(), git_dir)
            if now.commit and now.commit != before.commit:
                # On another branch nobody knows where the new commits begin.
                base = before.commit[:12] if before.commit and now.branch == before.branch else "COMMIT_BEFORE_THEM"
                say(f"claudebox: the commits of this box are not signed; to sign them:\n  {SIGN} {base}\n")

        return tell

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        from claudebox.host.programs import ADMIN_DIRECTORIES, find
        from claudebox.host.system import install_command
        from claudebox.process.trial import FAIL, OK, CheckRow

        if path := find(host, "git", *ADMIN_DIRECTORIES):
            return [CheckRow(OK, "git", path)]
        fix = (install_command(host.tree, "git"),)
        return [CheckRow(FAIL, "git", "not installed", "needed for commits and history", fix)]


class Hooks(Feature):
    """What hooks need that the box lacks."""

    def applies(self, facts: Facts) -> bool:
        """Whether git would run a hook: there is one beside the samples, or the configuration names another place."""
        tree, git_dir = facts.tree, facts.repository.git_dir
        if not git_dir:
            return False
        config = tree.text(f"{git_dir}/config")  # a worktree has none of its own
        is_elsewhere = config is None or "hookspath" in config.lower()
        return is_elsewhere or any(not name.endswith(".sample") for name in tree.entries(f"{git_dir}/hooks"))

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.git import hooks

        return hooks.decide(facts, draft)


class Shim(Feature):
    """A script that asks git beforehand what it cannot do here."""

    def applies(self, facts: Facts) -> bool:
        return bool(facts.repository.git_dir)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        """It needs to know everything that is held, so it comes after what covers and after what is a layer."""
        script = shipped(facts, SCRIPT)
        if script is None:
            return Contribution()
        # All of it is printable: single quotes are enough for the shell.
        known = "\n".join(known_places(facts, draft)).replace("'", "'\\''")
        content = script.replace(KNOWN, f"'{known}'".encode(), 1)
        return Contribution(
            mounts=(Mount(COVER, f"{DIRECTORY}/git", ORIGIN, content=content, mode=0o555),),
            path=(Directory(DIRECTORY, Directory.FIRST),),
        )


GIT = Git()


class Identity(Record):
    """Who commits."""

    name: str
    email: str
    is_neutral: bool = False


def read_users(tree: Tree, environ: dict[str, str], home: str, git_dir: str) -> Pairs:
    """All that git reads before the repository's own file, in git's order."""
    return [pair for path in host_configs(environ, home) for pair in load_config(tree, path, home, git_dir)]


def read_own(tree: Tree, git_dir: str) -> Pairs:
    """The repository's own file, which the box has, too. What it includes is not read: an agent may name it."""
    text = (tree.text(f"{common_directory(git_dir)}/config") if git_dir else "") or ""
    lower = text.lower()
    return parse_config(text) if "[user" in lower or "gpgsign" in lower else []


def common_directory(git_dir: str) -> str:
    """The directory with the configuration: a worktree has none of its own."""
    above, name = posixpath.split(posixpath.dirname(git_dir))
    return above if name == "worktrees" else git_dir


def identity_in(pairs: Pairs) -> Identity:
    values = dict(pairs)
    # What cannot be shown is left out: the identity appears on the screen.
    name, email = ("".join(filter(str.isprintable, values.get(f"user.{key}", ""))) for key in ("name", "email"))
    return Identity(name or NEUTRAL_NAME, email or NEUTRAL_EMAIL, is_neutral=not (name and email))


def config_files(facts: Facts, identity: Identity, carried: Carried, ignored: bytes, has_lfs: bool) -> list[Mount]:
    """The user's configuration of git, and the list of files that git does not add."""
    trusted = [facts.project, f"{facts.project}/*", *filter(None, [facts.repository.outside])]
    lines = as_lines([*carried.settings, *carried.aliases], quote_value)
    lines += ["[user]", f"\tname = {quote_value(identity.name)}", f"\temail = {quote_value(identity.email)}", "[safe]"]
    lines += [f"\tdirectory = {quote_value(path)}" for path in trusted]
    # An empty value forgets every helper that was configured before.
    lines += ["[credential]", "\thelper ="]
    # Other worktrees are not visible in the box: git must not conclude that they are gone.
    lines += ["[gc]", "\tworktreePruneExpire = never"]
    # Where the repository's own file is guarded, a new branch cannot be told its upstream, and git would complain.
    lines += ["[branch]", "\tautoSetupMerge = false"] if _is_guarded(facts) else []
    # Not the repository's own list: it may be missing, and a file that is mounted there would stay on the host.
    lines += ["[core]", f"\texcludesFile = {IGNORED}"] if ignored else []
    lines += LFS_LINES if has_lfs else []
    content = ("\n".join(lines) + "\n").encode(errors="surrogateescape")
    ignore = Origin.of_rule(RULE, "what git does not add: your own list, and masked files")
    neutral, along = "neutral " if identity.is_neutral else "", f", {carried.shown}" if carried.shown else ""
    shown = f"{neutral}identity {identity.name} <{identity.email}>{along}"
    return [
        Mount(FILE, f"{facts.home}/.gitconfig", Origin.of_rule(RULE, shown), content=content, mode=0o644),
        *([Mount(COVER, IGNORED, ignore, content=ignored, mode=0o444)] if ignored else []),
    ]


def quote_value(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def git_findings(repository: Repository, identity: Identity, may_mount: bool, signs: tuple[str, ...]) -> list[Finding]:
    texts = []
    if repository.trouble:
        texts.append("; ".join(filter(None, (repository.trouble, repository.remedy))))
    if repository.outside and not may_mount:
        texts.append(f"{repository.outside} may not be mounted: git will not work")
    if identity.is_neutral:
        texts.append(f"no identity found: commits are by {identity.name} <{identity.email}>")
    if signs:
        what = " and ".join(SIGNING[key] for key in signs)
        texts.append(
            f"{what} of this box are not signed, since your keys stay outside; how to sign them is said at the end"
        )
    return [Finding(Finding.NOTE, "git", text) for text in texts]


def _is_guarded(facts: Facts) -> bool:
    """Whether the repository's own configuration is read-only in the box."""
    git_dir = facts.repository.git_dir
    opened = openings(facts.settings[WRITABLE], facts.project, facts.home)
    return bool(git_dir) and not facts.is_reviewed and not any(opening.opens(f"{git_dir}/config") for opening in opened)


def signed_by(users: Pairs, own: Pairs) -> tuple[str, ...]:
    """The keys that would make git sign. The repository's own word wins over the user's."""
    values = dict([*users, *own])
    return tuple(key for key in SIGNING if values.get(key, "").lower() not in OFF)


def unsigned_variables(own: Pairs) -> list[EnvVar]:
    """Switch off what the repository's own file switches on: only the environment wins over that."""
    said = signed_by([], own)
    values = {"GIT_CONFIG_COUNT": str(len(said))} if said else {}
    for number, key in enumerate(said):
        values |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": "false"}
    return [EnvVar(name, value, UNSIGNED, is_ours=True) for name, value in values.items()]


def lfs_filter(facts: Facts, users: Pairs) -> list[Mount]:
    """A filter for files of Git LFS, if the user has installed that: without one, git would commit their content."""
    if not any(name in ("filter.lfs.clean", "filter.lfs.process") for name, _ in users):
        return []
    script = shipped(facts, "lfs.sh")
    origin = Origin.of_rule(RULE, "files of Git LFS, without its server")
    return [Mount(COVER, LFS, origin, content=script, mode=0o555)] if script else []


def shipped(facts: Facts, name: str) -> bytes | None:
    """A script that comes with this feature. If claudebox is a single file, who loaded this module has all files."""
    packed: dict[str, bytes] = getattr(__spec__.loader, "files", {})
    return packed.get(f"{SCRIPTS}/{name}") or facts.tree.read_plain(f"{facts.host.own_source}/features/git/{name}")


def known_places(facts: Facts, draft: Draft) -> list[str]:
    """What cannot be replaced in the box, each with the reason, and where files outlive it."""
    last = {mount.path: mount for mount in draft.mounts}  # at the same path, a later one wins
    # What is guarded, and files with made-up values.
    held = [mount for mount in last.values() if mount.covers or (mount.kind == RO and mount.origin.is_rule("guard"))]
    kept = [facts.project, *(wish.path for wish in draft.wished if wish.kind == RW and wish.is_dir)]
    lines = [
        *(f"held\t{mount.path}\t{mount.origin.reason}" for mount in sorted(held, key=lambda mount: mount.path)),
        *(f"kept\t{path}" for path in kept),
        *(["layered"] if any(mount.kind == LAYER for mount in last.values()) else []),
    ]
    # A name with a line break would be two. Such a one is held all the same.
    return [line for line in lines if line.replace("\t", "").isprintable()]
