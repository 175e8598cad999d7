"""Says what a box may have, whatever the features decide. The judge (`judge.py`) holds each box against it.

The law comes from what the user said, the project, the places of claudebox's own state, and the tables below: never
from what a feature contributes. What features find by looking around, such as toolchains, is here as a kind with a
bound: read-only, below these directories, without these files.
"""

from __future__ import annotations

import os

from claudebox.host.programs import find, inspect
from claudebox.host.secrets import looks_secret, openings, refuse_readable, refuse_writable
from claudebox.host.system import CERTIFICATE_VARIABLES, NIX_SOCKETS, NIX_STORE, is_bundle
from claudebox.host.toolchains import ELF, MIXED, TOKENS, TOOLCHAINS, match
from claudebox.host.variables import API_KEY, BUNDLE, KEY, KINDS, STAYS
from claudebox.model import RW
from claudebox.paths import absolute, expand_home, is_below, is_inside
from claudebox.record import Record
from claudebox.sandbox.judge import LATER, NEVER, READ, WRITE, upwards
from claudebox.sandbox.seccomp import call_filter
from claudebox.settings import table as said
from claudebox.state import LOGIN_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from claudebox.facts import Facts

SYSTEM = "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /usr/local /etc/resolv.conf /etc/claude-code"
# Of /etc what programs need, below; with `java-…`. Never all of it: that holds keys, passwords and the host's identity.
# NixOS has `static`: most of /etc are symlinks into it.
JAVA = "java-"
OF_ETC = tuple(
    "alternatives bash.bashrc bashrc ca-certificates crypto-policies fonts ld.so.cache ld.so.conf ld.so.conf.d "
    "localtime manpath.config nsswitch.conf os-release pki/ca-trust pki/tls/cert.pem pki/tls/certs "
    "pki/tls/openssl.cnf profile protocols services ssl/ca-bundle.pem ssl/cert.pem ssl/certs ssl/openssl.cnf static "
    "terminfo".split()
)
OF_CLAUDE = "agents commands hooks output-styles plugins rules skills CLAUDE.md keybindings.json"  # the user's own
SCRIPTS = (".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl")
# What this host runs unasked, in the root of the project. The guard knows more; this is the least that holds.
HELD = (
    ".github/workflows .github/actions .gitlab-ci.yml .circleci .envrc .vscode .idea .devcontainer .mcp.json .husky "
    ".pre-commit-config.yaml lefthook.yml Jenkinsfile .claudebox.toml .claude/settings.json "
    ".claude/settings.local.json"
)
HIDDEN_OF_PROC = "keys key-users locks interrupts irq softirqs asound sched_debug latency_stats"
OF_PROC = (("/proc/sys", READ), *((f"/proc/{name}", NEVER) for name in HIDDEN_OF_PROC.split()))
ROOTS_PROC = tuple((f"/proc/{name}", NEVER) for name in ("sysrq-trigger", "kcore", "kmsg", "timer_list"))
MADE = (  # variables for the box itself; numbers may follow
    "HOME USER SHELL PATH TMPDIR XDG_RUNTIME_DIR PWD CLAUDE_CONFIG_DIR DISABLE_AUTOUPDATER DISABLE_INSTALLATION_CHECKS "
    "CLAUDE_SECURESTORAGE_CONFIG_DIR NIX_REMOTE GIT_CONFIG_COUNT GIT_CONFIG_KEY_ GIT_CONFIG_VALUE_ JAVA_HOME "
    "DOTNET_ROOT RUSTUP_HOME GEMINI_SANDBOX OPENCODE_PERMISSION OPENCODE_DISABLE_AUTOUPDATE"
)
OF_BROKER = (
    "ANTHROPIC_BASE_URL ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN CLAUDE_CODE_SUBSCRIPTION_TYPE "
    "ENABLE_TOOL_SEARCH CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL"
)
OF_AGENTS = ("OPENAI_", "CODEX_", "GEMINI_", "GOOGLE_", "OPENROUTER_", "OPENCODE_")  # how variables of others begin
SHORTEST_SECRET = 16  # characters: a shorter one may occur by chance


class Rule(Record):
    """How much a box may have of a place, and of what is below it."""

    path: str
    access: int
    why: str
    names: str = ""  # only what is in it and has a name that begins so
    has_programs: bool = False  # only programs in it, and never scripts
    trees: tuple[str, ...] = ()  # only what is called so below it, as a whole: `*` stands for one name
    without: tuple[str, ...] = ()  # what stays hidden in each of these

    def means(self, place: str) -> bool:
        """Whether it is about this place, which lies in its own."""
        if self.trees:
            return any(match(place, self.path, tree) == place for tree in self.trees)
        name, has_more, _ = place[len(self.path) + 1 :].partition("/")
        if not self.has_programs:
            return name.startswith(self.names)
        with open(place, "rb") as file:
            return bool(name) and not has_more and file.read(len(ELF)) == ELF


class Law(Record):
    """What one box may have."""

    places: dict[str, Rule]
    layers: tuple[str, str]  # where layers keep what boxes change, and the project
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

    def uppers(self, place: str) -> Iterator[str]:
        """Where changes of a place may be kept."""
        directory, project = self.layers
        below = place[len(project) :] if is_inside(place, project) else ""
        for number in os.listdir(directory):
            yield f"{directory}/{number}/upper{below}"
            yield f"{directory}/{number}/git-upper"


def lay_down(facts: Facts, *more: str) -> Law:
    """The law for one box. `more` are places that only this one may write."""
    settings, tree = facts.settings, facts.tree
    tier, has_namespaces = settings[said.NETWORK].text, settings[said.USERNS].text == said.ON
    has_no_groups = facts.is_root and tree.text("/proc/self/setgroups") == "allow\n"
    has_ports = tier == said.NO_NETWORK and bool(settings[said.PUBLISH] or settings[said.HOST_PORTS])
    names = _names(facts)
    return Law(
        places=_places(facts, more),
        layers=(tree.destination(facts.claude.instance.layers) or "", facts.project),
        of_proc=(() if has_namespaces else OF_PROC) + (ROOTS_PROC if facts.is_root else ()),
        names=names.union(OF_BROKER.split() if settings[said.AUTH].text == said.BROKER else ()),
        withheld=tuple(_withheld(facts, names)),
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
    rules = (_of_the_project(facts, more), _asked_for(facts), _of_the_agent(facts), _of_this_host(facts), _less(facts))
    for one in facts.places:
        if not one.is_drawer and facts.tree.lstat(one.path) is not None:
            path = facts.tree.resolve(one.path) or one.path
            places[path] = Rule(path, NEVER, f"secret ({one.reason})")
    for rule in (rule for some in rules for rule in some):
        path = facts.tree.destination(rule.path) or rule.path
        above = next((places[above] for above in upwards(path) if above in places), None)
        if above is None or above.access < rule.access or rule.access in (NEVER, LATER):
            places[path] = rule if path == rule.path else rule.replace(path=path)
    for path in sorted(facts.tree.destination(hidden) or hidden for hidden in facts.hidden):
        places = {place: rule for place, rule in places.items() if not is_inside(place, path)}
        places[path] = Rule(path, NEVER, "hidden")
    return places


def _of_the_project(facts: Facts, more: tuple[str, ...]) -> Iterator[Rule]:
    settings, kept = facts.settings, facts.claude.instance
    access = LATER if facts.is_reviewed else WRITE
    yield Rule(facts.project, access, "the project")
    if facts.repository.outside:
        yield Rule(facts.repository.outside, access, facts.repository.why)
    auth = (kept.auth,) if settings[said.AUTH].text == said.PASSTHROUGH else ()
    for path in (kept.claude, kept.agents, kept.cache, kept.nix, *auth, *more):
        yield Rule(path, WRITE, "what boxes of this project keep")
    for path in (kept.memory, kept.sandbox, kept.empty, kept.masks):
        yield Rule(path, READ, "made for boxes of this project")
    yield Rule("/tmp", READ, "only claudebox-…, made for this box", names="claudebox-")


def _asked_for(facts: Facts) -> Iterator[Rule]:
    """What the user named, by a setting or as a word for claude."""
    wanted, after = [(wish.source, wish.access == RW) for wish in facts.settings[said.MOUNTS]], ""
    for word in facts.words if facts.runs_claude else ():
        name, _, value = word.text.partition("=")
        after = name if name[:2] == "--" else after
        wanted.append((value if after == name else word.text, after in ("--add-dir", "--debug-file")))
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
        roots: dict[str, tuple[str, ...]] = {}
        for row in TOOLCHAINS:
            for root in (expand_home(row.root, home), environ.get(row.variable, "")):
                roots[root] = (*roots.get(root, ()), row.tree)
        for root, trees in roots.items():
            if is_below(tree.destination(root) or "", home):
                yield Rule(root, READ, "toolchains of yours", trees=trees, without=TOKENS)
        for directory in MIXED:
            yield Rule(expand_home(directory, home), READ, "single programs of yours", has_programs=True)


def _of_the_agent(facts: Facts) -> Iterator[Rule]:
    """The program of the agent, and what the user has of Claude's configuration."""
    users, tree, agent = facts.claude.users, facts.tree, facts.settings[said.PROGRAM].text
    install = facts.install or (inspect(facts.host, find(facts.host, agent)) if agent != said.CLAUDE else None)
    for file in install.files if install is not None else ():
        if tree.is_file(file) or "/node_modules/" in file or tree.is_dir(f"{file}/lib"):
            yield Rule(file, READ, "the program that you start")
    own = [f"{users}/{name}" for name in OF_CLAUDE.split()]
    own += [f"{path}/{name}" for path in own for name in tree.entries(path) if tree.is_link(f"{path}/{name}")]
    for path in own:
        real = tree.resolve(path)
        if real and (real == path or not refuse_readable(real, facts.host.person.homes, facts.places)):
            yield Rule(path, READ, "your configuration of Claude")
    for path in facts.users.runs:
        is_script = tree.is_executable(path) or path.endswith(SCRIPTS) or tree.read(path, 2) == b"#!"
        if is_below(path, users) and is_script:
            yield Rule(path, READ, "what your settings of Claude run")


def _less(facts: Facts) -> Iterator[Rule]:
    """What is held, but for what the user opens; and what is secret, but for what the user named itself."""
    tree, settings, project = facts.tree, facts.settings, facts.project
    opened = openings(settings[said.WRITABLE], project, facts.home)
    git_dirs = {facts.repository.git_dir, facts.repository.outside} - {""}
    held = [f"{project}/{name}" for name in HELD.split()]
    held += [f"{git_dir}/{name}" for git_dir in git_dirs for name in ("config", "hooks")]
    for path in held:
        if tree.resolve(path) == path and not any(opening.opens(path) for opening in opened):
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
    others = settings[said.PROGRAM].text != said.CLAUDE
    agents = [name for name in facts.host.environ if others and name.startswith(OF_AGENTS)]
    return frozenset((*MADE.split(), *CERTIFICATE_VARIABLES, *known, *asked, *key, *agents))


def _withheld(facts: Facts, names: frozenset[str]) -> Iterator[tuple[str, bytes]]:
    """Secrets of this host that are nothing of the box."""
    environ, settings = facts.host.environ, facts.settings
    found = [(name, value) for name, value in environ.items() if name not in names and looks_secret(name, value)]
    if settings[said.AUTH].text != said.PASSTHROUGH:
        for file in (f"{facts.claude.users}/{LOGIN_FILE}", facts.claude.all_projects.login):
            found += [(file, word) for word in (facts.tree.text(file) or "").split('"')[1::2]]
    entering = [environ[name] for name in names if name in environ]
    entering += [wish.value for wish in settings[said.ENV] if wish.value is not None]
    for name, value in found:
        if len(value) >= SHORTEST_SECRET and value[0] != "/" and not any(value in one for one in entering):
            yield name, os.fsencode(value)
