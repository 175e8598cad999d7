"""Says what a box may have, whatever the features decide. The judge (`judge.py`) holds each box against it.

The law comes from what the user said, the project, the places of claudebox's own state, and tables: never
from what a feature contributes. What features find by looking around, such as toolchains, is here as a kind with a
bound: read-only, below these directories, without these files.
"""

from __future__ import annotations

import os

from claudebox.host.programs import find, inspect
from claudebox.host.secrets import looks_secret, openings, refuse_readable, refuse_writable
from claudebox.host.system import CERTIFICATE_VARIABLES, JAVA, NIX_SOCKETS, NIX_STORE, OF_ETC, is_bundle
from claudebox.host.toolchains import ELF, MIXED, RUSTUPS, TOKENS, TOOLCHAINS, match
from claudebox.host.tree import Tree
from claudebox.host.variables import (
    API_KEY,
    BUNDLE,
    KEY,
    KINDS,
    MADE,
    OF_AGENTS,
    OF_BROKER,
    PROXY,
    STAYS,
    may_hold_password,
)
from claudebox.model import RW
from claudebox.paths import absolute, expand_home, is_below, is_inside
from claudebox.record import Record
from claudebox.sandbox.judge import DEVICES, LATER, NEVER, READ, WRITE, upwards
from claudebox.sandbox.seccomp import call_filter
from claudebox.settings import table as said
from claudebox.state import LOGIN_FILE
from claudebox.state.claude_settings import SCRIPT_ENDINGS, SHOWN_DIRECTORIES, SHOWN_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from claudebox.facts import Facts

SYSTEM = "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /usr/local /etc/resolv.conf /etc/claude-code"
# What this host runs unasked, in the root of the project. The guard knows more; this is the least that holds.
HELD = (
    ".github/workflows .github/actions .gitlab-ci.yml .circleci .envrc .vscode .idea .devcontainer .mcp.json .husky "
    ".pre-commit-config.yaml lefthook.yml Jenkinsfile .claudebox.toml .claude/settings.json "
    ".claude/settings.local.json"
)
HIDDEN_OF_PROC = "keys key-users locks interrupts irq softirqs asound sched_debug latency_stats"
OF_PROC = (("/proc/sys", READ), *((f"/proc/{name}", NEVER) for name in HIDDEN_OF_PROC.split()))
ROOTS_PROC = tuple((f"/proc/{name}", NEVER) for name in ("sysrq-trigger", "kcore", "kmsg", "timer_list"))
ONE_FILE, WRITTEN = "--debug-file", ("--add-dir", "--debug-file")  # options of claude
MOST_OF_CLAUDES = 16 << 20  # bytes of a file of settings
SHORTEST_SECRET = 16  # characters: a shorter one may occur by chance


class Rule(Record):
    """How much a box may have of a place, and of what is below it."""

    path: str
    access: int
    why: str
    names: str = ""  # only what is in it and has a name that begins so
    has_programs: bool = False  # only programs in it, and never scripts
    # Only what is called so below it, as a whole (`*` stands for one name), if this is in there.
    trees: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()  # what stays hidden in each of these

    @property
    def is_about_parts(self) -> bool:
        return bool(self.names or self.has_programs or self.trees)

    def means(self, place: str) -> bool:
        """Whether it is about this place, which lies in its own."""
        marks = [mark for tree, mark in self.trees if match(place, self.path, tree) == place]
        if any(not mark or os.path.exists(f"{place}/{mark}") for mark in marks):
            return True
        name, has_more, _ = place[len(self.path) + 1 :].partition("/")
        if not self.has_programs:
            return name.startswith(self.names) and not self.trees
        with open(place, "rb") as file:
            return bool(name) and not has_more and file.read(len(ELF)) == ELF


class Law(Record):
    """What one box may have."""

    places: dict[str, Rule]
    claude: tuple[str, ...]  # the user's own directory of Claude, the home, and files that may name programs
    layers: tuple[str, str, str]  # where they keep what boxes change; the project, and its repository elsewhere
    of_proc: tuple[tuple[str, int], ...]
    names: frozenset[str]  # of variables
    withheld: tuple[tuple[str, bytes], ...]  # what on this host holds a secret, and the secret
    links: tuple[tuple[str, tuple[str, ...]], ...]  # where a symlink in the box may lead, if there is one
    call_filter: bytes
    has_hosts_network: bool
    devices: frozenset[str]  # of another network
    typed: bytes  # the end of bwrap's command line, which is the user's own
    groups: frozenset[int]

    def nearest(self, place: str) -> Rule | None:
        """What the law says of a place."""
        return next((self.places[above] for above in upwards(place) if above in self.places), None)

    def is_run_by_claude(self, path: str, place: str) -> bool:
        """Whether it is a single program or script that the user's own files for Claude name."""
        rule = self.nearest(place)
        is_program = os.access(place, os.X_OK) or place.endswith(SCRIPT_ENDINGS) or Tree().read(place, 2) == b"#!"
        is_free = rule is None or rule.is_about_parts or rule.path == self.claude[0]
        if not is_free or not is_program or not os.path.isfile(place) or os.path.realpath(path) != place:
            return False
        named = path.removeprefix(self.claude[1])  # `~` or `$HOME` may stand for that; JSON may write it otherwise
        escaped = "".join(one if one.isascii() else f"\\u{ord(one):04x}" for one in named).encode()
        texts = [(Tree().read(text, MOST_OF_CLAUDES) or b"").replace(b"//", b"/") for text in self.claude[2:]]
        return any(os.fsencode(named) in text or escaped.lower() in text.lower() for text in texts)

    def uppers(self, path: str) -> Iterator[str]:
        """Where it may be kept if boxes have changed it."""
        directory, *tops = self.layers
        for number in os.listdir(directory):
            for top, upper in zip(tops, ("upper", "git-upper"), strict=True):
                if top and is_inside(path, top):
                    yield f"{directory}/{number}/{upper}{path[len(top) :]}"


def lay_down(facts: Facts, *more: str) -> Law:
    """The law for one box. `more` are places that only this one may write."""
    settings, tree = facts.settings, facts.tree
    tier, has_namespaces = settings[said.NETWORK].text, settings[said.USERNS].text == said.ON
    has_no_groups = facts.is_root and tree.text("/proc/self/setgroups") == "allow\n"
    users, host_home = facts.claude.users, facts.claude.all_projects.home
    texts = (f"{users}/settings.json", f"{users}/.claude.json", f"{host_home}/.claude.json")
    has_ports = tier == said.NO_NETWORK and bool(settings[said.PUBLISH] or settings[said.HOST_PORTS])
    names, places = _names(facts), _places(facts, more)
    return Law(
        places=places,
        claude=(tree.destination(users) or "", facts.home, *texts),
        layers=(tree.destination(facts.claude.instance.layers) or "", facts.project, facts.repository.outside),
        of_proc=(() if has_namespaces else OF_PROC) + (ROOTS_PROC if facts.is_root else ()),
        names=names.union(OF_BROKER.split() if settings[said.AUTH].text == said.BROKER else ()),
        withheld=tuple(_withheld(facts, names, places)),
        links=tuple(_links(facts)),
        call_filter=call_filter(facts.host.machine, with_namespaces=has_namespaces, with_setgid=facts.is_shared),
        has_hosts_network=tier == said.FULL,
        devices=frozenset(("lo", "tap0") if tier == said.INET or has_ports else ("lo",)),
        typed=b"".join(os.fsencode(word) + b"\0" for word in facts.request.run or facts.request.claude),
        groups=frozenset(() if has_no_groups else (*os.getgroups(), os.getegid())),
    )


def _places(facts: Facts, more: tuple[str, ...]) -> dict[str, Rule]:
    """The table. A grant counts if it gives more than those before it; what is held or secret counts always."""
    places: dict[str, Rule] = {}
    rules = (_of_the_project(facts), _asked_for(facts), _of_the_agent(facts), _of_this_host(facts), _less(facts))
    for one in facts.places:
        if not one.is_drawer and facts.tree.lstat(one.path) is not None:
            path = facts.tree.resolve(one.path) or one.path
            places[path] = Rule(path, NEVER, f"secret ({one.reason})")
    for rule in (rule for some in rules for rule in some):
        path = facts.tree.destination(rule.path) or rule.path
        above = next((places[above] for above in upwards(path) if above in places), None)
        if above is None or above.is_about_parts or above.access < rule.access or rule.access in (NEVER, LATER):
            places[path] = rule if path == rule.path else rule.replace(path=path)
    for path in sorted(facts.tree.destination(hidden) or hidden for hidden in facts.hidden):
        places = {place: rule for place, rule in places.items() if not is_inside(place, path)}
        places[path] = Rule(path, NEVER, "hidden")
    return places | {rule.path: rule for rule in _kept(facts, more)}


def _of_the_project(facts: Facts) -> Iterator[Rule]:
    access = LATER if facts.is_reviewed else WRITE
    yield Rule(facts.project, access, "the project")
    if facts.repository.outside:
        yield Rule(facts.repository.outside, access, facts.repository.why)


def _kept(facts: Facts, more: tuple[str, ...]) -> Iterator[Rule]:
    """What claudebox keeps for the project, whatever is hidden."""
    kept, real = facts.claude.instance, facts.tree.destination
    auth = (kept.auth,) if facts.settings[said.AUTH].text == said.PASSTHROUGH else ()
    for path in (kept.claude, kept.agents, kept.cache, kept.nix, *auth, *more):
        yield Rule(real(path) or path, WRITE, "what boxes of this project keep")
    for path in (kept.memory, kept.sandbox, kept.empty, kept.masks):
        yield Rule(real(path) or path, READ, "made for boxes of this project")
    yield Rule("/tmp", READ, "only claudebox-…, made for this box", names="claudebox-")


def _asked_for(facts: Facts) -> Iterator[Rule]:
    """What the user named, by a setting or as a word for claude."""
    wanted, after = [(wish.source, wish.access == RW) for wish in facts.settings[said.MOUNTS]], ""
    for word in facts.words if facts.runs_claude else ():
        name, _, value = word.text.partition("=")
        after = name if name[:1] == "-" else after
        wanted.append((value if after == name else word.text, after in WRITTEN))
        after = "" if after == ONE_FILE and (value or name != after) else after
    for named, is_writable in wanted:
        path = absolute(named, facts.project, facts.home)
        refuse = refuse_writable if is_writable else refuse_readable
        if named and not refuse(facts.tree.destination(path) or path, facts.host.person.homes, facts.places):
            yield Rule(path, WRITE if is_writable else READ, "you named it")


def _of_this_host(facts: Facts) -> Iterator[Rule]:
    settings, environ, home, tree = facts.settings, facts.host.environ, facts.home, facts.tree
    java = [name for name in tree.entries("/etc") if name.startswith(JAVA)]
    for path in (*SYSTEM.split(), *(f"/etc/{name}" for name in (*OF_ETC, *java))):
        yield Rule(path, READ, "of this system")
    for path in DEVICES:
        yield Rule(path, WRITE, "devices without anything behind them")
    nix, is_full = settings[said.NIX].text, settings[said.NETWORK].text == said.FULL
    if nix != said.OFF or facts.system.is_nix:
        yield Rule(NIX_STORE, READ, "programs of Nix")
    if nix == said.DAEMON or (nix == said.AUTO and is_full):
        yield Rule(NIX_SOCKETS, READ, "the daemon of Nix")
    bundles = (name for name, kind in KINDS.items() if kind == BUNDLE)
    named = [environ.get(name, "") for name in (*bundles, *CERTIFICATE_VARIABLES)]
    named += [value for _, value in facts.users.leading if value[:1] == "/"]
    for path in (facts.certificates, *(path for path in named if path and is_bundle(tree, path))):
        yield Rule(path, READ, "certificates")
    if settings[said.FROM_HOME].text != said.OFF:
        mixed = [expand_home(directory, home) for directory in MIXED]
        roots: dict[str, tuple[tuple[str, str], ...]] = dict.fromkeys(mixed, ())
        for row in (*TOOLCHAINS, RUSTUPS):
            for root in {expand_home(row.root, home), environ.get(row.variable, "")}:
                real = tree.destination(root) or root
                roots[real] = (*roots.get(real, ()), (row.tree, row.mark))
        for root, trees in roots.items():
            if is_below(root, home) and not refuse_readable(root, facts.host.person.homes, facts.places):
                is_mixed = root in mixed
                yield Rule(root, READ, "tools of yours", has_programs=is_mixed, trees=trees, without=TOKENS)


def _of_the_agent(facts: Facts) -> Iterator[Rule]:
    """The program of the agent, and what the user has of Claude's configuration."""
    users, tree, agent = facts.claude.users, facts.tree, facts.settings[said.PROGRAM].text
    install = facts.install or (inspect(facts.host, find(facts.host, agent)) if agent != said.CLAUDE else None)
    for file in install.files if install is not None else ():
        if tree.is_file(file) or "/node_modules/" in file or tree.is_dir(f"{file}/lib"):
            yield Rule(file, READ, "the program that you start")
    own = [f"{users}/{name}" for name in (*SHOWN_DIRECTORIES, *SHOWN_FILES)]
    own += [f"{path}/{name}" for path in own for name in tree.entries(path) if tree.is_link(f"{path}/{name}")]
    for path in own:
        real = tree.resolve(path)
        is_own = is_inside(real or "", tree.resolve(users) or users)
        if real and (is_own or not refuse_readable(real, facts.host.person.homes, facts.places)):
            yield Rule(path, READ, "your configuration of Claude")


def _less(facts: Facts) -> Iterator[Rule]:
    """What is held, but for what the user opens; and what is secret, but for what the user named itself."""
    tree, settings, project = facts.tree, facts.settings, facts.project
    opened = openings(settings[said.WRITABLE], project, facts.home)
    git_dirs = {facts.repository.git_dir, facts.repository.outside} - {""}
    held = [f"{project}/{name}" for name in HELD.split()]
    held += [f"{git_dir}/{name}" for git_dir in git_dirs for name in ("config", "hooks")]
    for path in held:
        is_plain = tree.resolve(path) == path and (tree.is_file(path) or tree.is_dir(path))
        if is_plain and not any(opening.opens(path) for opening in opened):
            yield Rule(path, LATER, "this host obeys it")
    for opening in opened if not facts.is_reviewed else ():
        if is_inside(opening.path, project):
            yield Rule(opening.path, WRITE, opening.said.origin.shown)
    login = facts.claude.instance.own_login
    if settings[said.AUTH].text == said.BROKER and not tree.is_link(login):
        yield Rule(login, NEVER, "the login of an earlier box")
    asked = {tree.resolve(absolute(wish.source, project, facts.home)) for wish in settings[said.MOUNTS]}
    secrets = [*facts.secrets.closed] if facts.secrets is not None else []
    for one in facts.secrets.masked if facts.secrets is not None else ():
        if tree.read_plain(one.path, len(one.decoy) + 1) != one.decoy:  # else nothing in it had to be replaced
            secrets.append((one.path, one.reason))
    for path, why in secrets:
        if path not in asked:
            yield Rule(path, NEVER, f"secret ({why})")


def _links(facts: Facts) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Where programs are found, and name servers."""
    for path in (*SYSTEM.split(), "/bin/sh", "/usr/bin/env"):
        yield path, (facts.tree.link_target(path), facts.tree.resolve(path) or "")
    if facts.install is not None:
        yield f"{facts.home}/.local/bin/claude", (facts.install.real,)


def _names(facts: Facts) -> frozenset[str]:
    """The variables that may enter as this host has them, or that are made for the box."""
    settings = facts.settings
    known = [name for name, kind in KINDS.items() if kind not in (STAYS, KEY)]
    asked = [wish.name for wish in settings[said.ENV]]
    key = [API_KEY] if settings[said.AUTH].text == said.PASSTHROUGH else []
    dropped = {word.text for word in settings[said.DROP_ENV]}
    others = settings[said.PROGRAM].text != said.CLAUDE
    agents = [name for name in facts.host.environ if others and name.startswith(OF_AGENTS)]
    return frozenset((*MADE.split(), *CERTIFICATE_VARIABLES, *known, *asked, *key, *agents)) - dropped


def _withheld(facts: Facts, names: frozenset[str], places: dict[str, Rule]) -> Iterator[tuple[str, bytes]]:
    """Secrets of this host that are nothing of the box."""
    environ, settings = facts.host.environ, facts.settings
    found = [(name, value) for name, value in environ.items() if name not in names and looks_secret(name, value)]
    if settings[said.AUTH].text != said.PASSTHROUGH:
        for file in (f"{facts.claude.users}/{LOGIN_FILE}", facts.claude.all_projects.login):
            found += [(file, word) for word in (facts.tree.text(file) or "").split('"')[1::2]]
    asked = [wish.name for wish in settings[said.ENV]]
    proxies = [name for name, kind in KINDS.items() if kind == PROXY and name in environ and name not in asked]
    found += [(name, environ[name]) for name in proxies if may_hold_password(environ[name])]
    entering = [environ[name] for name in names if name in environ and (name, environ[name]) not in found]
    entering += [wish.value for wish in settings[said.ENV] if wish.value is not None]
    entering += [*places, *(value for _, value in facts.users.leading)]
    for name, value in found:
        is_long = len(value) >= SHORTEST_SECRET and value[0] != "/" and not any(value in one for one in entering)
        if is_long and not facts.tree.exists(absolute(value, facts.project, facts.home)):  # then it names a file
            yield name, os.fsencode(value)
