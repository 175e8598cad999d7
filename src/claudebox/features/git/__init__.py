"""Git in the box: an identity, the user's settings, hooks; and no credentials."""

from __future__ import annotations

import posixpath

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.host.git import Pairs, Repository, find_repository, host_configs, load_config, parse_config
from claudebox.host.git.directory import read_head, read_refs
from claudebox.host.secrets import (
    contained_secret,
    is_systems,
    openings,
    refuse_readable,
    refuse_writable,
    secret_value,
)
from claudebox.host.tree import Tree
from claudebox.model import COVER, FILE, LAYER, RO, RW, Directory, EnvVar, Finding, Launch, Mount, Origin, Step
from claudebox.output.terminal import say
from claudebox.paths import expand_home, is_inside, normalize
from claudebox.record import Record
from claudebox.settings.table import WRITABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.features import CheckRow, Deed, Host, Settings

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
        ignored, not_ignored = find_ignore_list(facts, dict(users))
        masked = facts.secrets.ignored if facts.secrets is not None else b""
        carried = carry(users)
        lfs = lfs_filter(facts, users)
        # The names of masked files come last: whatever the user's list says, git must not add them.
        config = config_files(facts, identity, carried, ignored + masked, bool(lfs))
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
            findings=(
                *git_findings(repository, identity_in([*users, *own]), may_mount, signs),
                *([Finding(Finding.NOTE, "git", not_ignored)] if not_ignored else []),
            ),
            told=(UNSIGNED_TOLD.format(key=signs[0]),) if signs else (),
            steps=(Step(Step.AFTER, self),) if signs and repository.git_dir and not facts.is_reviewed else (),
        )

    def after(self, launch: Launch) -> Deed:
        """Note which commits there are before the program starts."""
        git_dir = find_repository(Tree(), launch.plan.project).git_dir
        before = {*read_refs(Tree(), git_dir).tips.values(), read_head(Tree(), git_dir).commit} - {""}

        def tell(_: bool) -> None:
            now = read_head(Tree(), git_dir).commit
            if now and now not in before and (base := _base(launch, git_dir, before, now)):
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


def _base(launch: Launch, git_dir: str, before: set[str], now: str) -> str:
    from claudebox.overlay.history import CannotTell, find_base

    try:
        return find_base(launch.plan.bwrap, git_dir, before, now)
    except CannotTell:
        return "COMMIT_BEFORE_THEM"


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
    return Identity(name or "claudebox", email or "claudebox@localhost", is_neutral=not (name and email))


def config_files(facts: Facts, identity: Identity, carried: Pairs, ignored: bytes, has_lfs: bool) -> list[Mount]:
    """The user's configuration of git, and the list of files that git does not add."""
    trusted = [facts.project, f"{facts.project}/*", *filter(None, [facts.repository.outside])]
    lines = as_lines(carried)
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
    aliases = sum(name.startswith(ALIAS) for name, _ in carried)
    counts = {"settings": len(carried) - aliases, "aliases": aliases}
    along = " and ".join(f"{count} of your {what}" for what, count in counts.items() if count)
    shown = f"{'neutral ' if identity.is_neutral else ''}identity {identity.name} <{identity.email}>"
    shown += f", {along}" if along else ""
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


# What of the user's own git comes along into the box, and why it may: settings, aliases, the list of ignored files
#
# A key is in a list, and its value is one of git's own words, a number or a name. So nothing comes along that names a
# program or a file, or that can hold a secret, as `url.*.insteadOf` and `http.extraHeader` can. What is not in the list
# stays outside: helpers, signing, filters, proxies, includes, and `push.autoSetupRemote`, with which git would want to
# write the repository's configuration at each push.

# Settings whose value is one of git's own words or a number.
KEYS = frozenset(
    "am.keepcr am.threeway apply.whitespace checkout.guess color.ui column.ui commit.cleanup commit.status "
    "commit.verbose core.abbrev core.autocrlf core.commentchar core.eol core.quotepath core.safecrlf diff.algorithm "
    "diff.colormoved diff.colormovedws diff.context diff.ignoresubmodules diff.indentheuristic diff.interhunkcontext "
    "diff.mnemonicprefix diff.noprefix diff.renameempty diff.renamelimit diff.renames diff.submodule "
    "fetch.fsckobjects fetch.parallel fetch.prune fetch.prunetags grep.fullname grep.linenumber grep.patterntype "
    "grep.threads help.autocorrect log.abbrevcommit log.decorate log.follow log.mailmap log.showroot merge.autostash "
    "merge.conflictstyle merge.directoryrenames merge.ff merge.log merge.renamelimit merge.renormalize merge.stat "
    "pack.threads pull.ff pull.rebase push.default push.followtags rebase.autosquash rebase.autostash "
    "rebase.missingcommitscheck rebase.rebasemerges rebase.stat rebase.updaterefs receive.fsckobjects "
    "rerere.autoupdate rerere.enabled stash.showincludeuntracked stash.showpatch stash.showstat status.aheadbehind "
    "status.branch status.relativepaths status.short status.showstash status.showuntrackedfiles submodule.fetchjobs "
    "transfer.fsckobjects".split()
)
WORDS = frozenset(
    "true false yes no on off "
    "all allow-indentation-change always auto basic blocks conflict copies copy crlf current default diff diff3 "
    "dimmed-zebra dimmed_zebra dirty error error-all extended fixed fix full histogram ignore ignore-all-space "
    "ignore-space-at-eol ignore-space-change immediate input interactive lf log matching merge merges minimal myers "
    "native never no-rebase-cousins none normal nothing nowarn only patience perl plain prompt rebase-cousins scissors "
    "short simple strip tracking untracked upstream verbatim verbose warn whitespace zdiff3 zebra".split()
)
# Settings whose value is a name: it has no slash, so it is no path.
NAMED = frozenset("branch.sort checkout.defaultremote init.defaultbranch log.date tag.sort versionsort.suffix".split())
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
LONGEST_NAME = 60
LONGEST_ALIAS = 400
MOST_ALIASES = 200
ALIAS = "alias."
# Words that set an option of git for one command: whoever writes a token into an alias writes it there.
SETS_OPTIONS = ("-c", "--config", "--exec", "--upload-pack", "--receive-pack")

IGNORED = "/etc/claudebox/gitignore"  # in the box
IGNORE_LIST = "core.excludesfile"
LARGEST_LIST = 1 << 16


def is_gits_own(value: str) -> bool:
    """Whether it is a word of git, a number, or a single character: there is no room for anything else."""
    is_number = value.isascii() and value.removeprefix("-").isdigit() and len(value) < 10
    return value.lower() in WORDS or is_number or (len(value) == 1 and value.isprintable())


def is_name(value: str) -> bool:
    """Whether it can be the name of a branch or of a field."""
    return 0 < len(value) <= LONGEST_NAME and PLAIN.issuperset(value)


def carry(pairs: Pairs) -> Pairs:
    """Choose from the user's configuration. Of several values for a key the last one counts, as in git."""
    last = dict(pairs).items()
    settings = [
        (name, value)
        for name, value in last
        if (name in KEYS and is_gits_own(value)) or (name in NAMED and is_name(value))
    ]
    aliases = [(name, value) for name, value in last if name.startswith(ALIAS) and is_plain_alias(name, value)]
    return [*settings, *aliases[:MOST_ALIASES]]


def is_plain_alias(name: str, value: str) -> bool:
    """Whether an alias is a command of git with its options: no shell, no address, no setting for one command."""
    words = value.split()
    return (
        is_name(name.removeprefix(ALIAS))
        and bool(words)
        and words[0].replace("-", "").isalpha()
        and not words[0].startswith("-")
        and len(value) <= LONGEST_ALIAS
        and value.isprintable()
        and "://" not in value
        and not any(word.partition("=")[0] in SETS_OPTIONS or word.startswith("-c") for word in words)
        and not secret_value(value)
    )


def as_lines(pairs: Pairs) -> list[str]:
    """The pairs as a file of git has them."""
    lines: list[str] = []
    section = ""
    for name, value in sorted(pairs):
        above, _, key = name.rpartition(".")
        lines += [f"[{above}]"] if above != section else []
        lines.append(f"\t{key} = {quote_value(value)}")
        section = above
    return lines


def find_ignore_list(facts: Facts, users: dict[str, str]) -> tuple[bytes, str]:
    """Patterns as a .gitignore has them, and why they are missing, if they are.

    The list is read if no agent can choose which file that is: one may have made it a symlink to a key.
    """
    home, environ = facts.host.person.home, facts.host.environ
    configuration = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    path = normalize(expand_home(users[IGNORE_LIST], home) if users.get(IGNORE_LIST) else f"{configuration}/git/ignore")
    real = facts.tree.resolve(path) if path.startswith("/") else None
    if real is None or not facts.tree.is_file(real):
        return b"", ""
    own = (home, configuration, f"{configuration}/git")
    is_chosen = facts.reach.leads_through(path) or not all(
        _is_the_users(link, own) for link, _ in facts.tree.links(path)
    )
    is_secret = bool(refuse_readable(real, facts.person.homes, facts.places))
    content = b"\0" if is_chosen or is_secret else facts.tree.read_plain(real, LARGEST_LIST + 1) or b""
    if len(content) > LARGEST_LIST or b"\0" in content or secret_value(content.decode(errors="replace")):
        why = f"your ignore list stays outside: {path} does not look like one, or leads where agents or secrets are"
        return b"", why
    return (content if content.endswith(b"\n") or not content else content + b"\n"), ""


def _is_the_users(link: str, own: tuple[str, ...]) -> bool:
    """Whether a symlink is where people keep those to their dotfiles, or above the home, or the system's."""
    return posixpath.dirname(link) in own or is_inside(own[0], link) or is_systems(link)
