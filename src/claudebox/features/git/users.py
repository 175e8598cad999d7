"""What of the user's own git comes along into the box, and why it may: settings, aliases, the list of ignored files.

A key is in a list, and its value is one of git's own words, a number or a name. So nothing comes along that names a
program or a file, or that can hold a secret, as `url.*.insteadOf` and `http.extraHeader` can. What is not in the list
stays outside: helpers, signing, filters, proxies, includes, and `push.autoSetupRemote`, with which git would want to
write the repository's configuration at each push.
"""

from __future__ import annotations

import posixpath

from claudebox.facts import Facts
from claudebox.host.git import Pairs
from claudebox.host.secrets import is_systems, refuse_readable, secret_value
from claudebox.model import Finding
from claudebox.paths import expand_home, is_inside, normalize
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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


class Carried(Record):
    """What comes along: each key with its value, in git's order."""

    settings: Pairs
    aliases: Pairs

    @property
    def shown(self) -> str:
        """In a few words, for the audit."""
        found = {"settings": self.settings, "aliases": self.aliases}
        return " and ".join(f"{len(pairs)} of your {what}" for what, pairs in found.items() if pairs)


def carry(pairs: Pairs) -> Carried:
    """Choose from the user's configuration. Of several values for a key the last one counts, as in git."""
    last = dict(pairs).items()
    settings = [
        (name, value)
        for name, value in last
        if (name in KEYS and is_gits_own(value)) or (name in NAMED and is_name(value))
    ]
    aliases = [(name, value) for name, value in last if name.startswith(ALIAS) and is_plain_alias(name, value)]
    return Carried(settings, aliases[:MOST_ALIASES])


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


def as_lines(pairs: Pairs, quote: Callable[[str], str]) -> list[str]:
    """The pairs as a file of git has them."""
    lines: list[str] = []
    section = ""
    for name, value in sorted(pairs):
        above, _, key = name.rpartition(".")
        lines += [f"[{above}]"] if above != section else []
        lines.append(f"\t{key} = {quote(value)}")
        section = above
    return lines


class IgnoreList(Record):
    """Patterns as a .gitignore has them, and why they are missing, if they are."""

    patterns: bytes = b""
    findings: tuple[Finding, ...] = ()


def find_ignore_list(facts: Facts, users: dict[str, str]) -> IgnoreList:
    """Read the list if no agent can choose which file that is: one may have made it a symlink to a key."""
    home, environ = facts.host.person.home, facts.host.environ
    configuration = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    path = normalize(expand_home(users[IGNORE_LIST], home) if users.get(IGNORE_LIST) else f"{configuration}/git/ignore")
    if not path.startswith("/") or facts.tree.lstat(path) is None:
        return IgnoreList()
    real = facts.tree.resolve(path)
    if real is None or not facts.tree.is_file(real):
        return IgnoreList()
    own = (home, configuration, f"{configuration}/git")
    if facts.reach.leads_through(path) or not all(_is_the_users(link, own) for link, _ in facts.tree.links(path)):
        return _left_out(path, "leads through where agents may have written")
    if refuse_readable(real, facts.person.homes, facts.places):
        return _left_out(path, "leads to a place that stays outside")
    content = facts.tree.read_plain(real, LARGEST_LIST + 1) or b""
    if len(content) > LARGEST_LIST or b"\0" in content or secret_value(content.decode(errors="replace")):
        return _left_out(path, "does not look like one")
    return IgnoreList(content if content.endswith(b"\n") or not content else content + b"\n")


def _is_the_users(link: str, own: tuple[str, ...]) -> bool:
    """Whether a symlink is where people keep those to their dotfiles, or above the home, or the system's."""
    return posixpath.dirname(link) in own or is_inside(own[0], link) or is_systems(link)


def _left_out(path: str, why: str) -> IgnoreList:
    return IgnoreList(findings=(Finding(Finding.NOTE, "git", f"your ignore list stays outside: {path} {why}"),))
