"""Claude Code: its program, its home, and what its options name. And other agents in its place."""

from __future__ import annotations

import os

from claudebox.errors import Problem, quote, suppress
from claudebox.facts import ClaudeHome, Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.files import READ, Open
from claudebox.host import Host
from claudebox.host.programs import (
    PACKAGE,
    ClaudeInstall,
    another,
    check_files,
    check_named,
    choose_agent,
    install_mounts,
    npm_install,
)
from claudebox.host.secrets import refuse_readable, secret_value
from claudebox.host.tree import Tree
from claudebox.host.variables import API_KEY, LEADING, shown_way
from claudebox.model import (
    ABSENT,
    ANY_VERSION,
    FROM_HOST,
    RO,
    RW,
    SYMLINK,
    Directory,
    EnvVar,
    Finding,
    Launch,
    Mount,
    Origin,
    Plan,
    Preparation,
    Program,
    SecretPlace,
    Step,
)
from claudebox.paths import is_below, is_inside, parents, shorten_home
from claudebox.sandbox.mounts import find_holder
from claudebox.settings import Settings, Word
from claudebox.settings.table import AUTH, BROKER, CLAUDE, CLAUDE_PATH, ENV, PROGRAM
from claudebox.settings.words import Request
from claudebox.state import check_state, memory
from claudebox.state.claude_settings import (
    LARGEST_FILE,
    PROJECT_SETTINGS,
    SCRIPT_ENDINGS,
    SHOWN_DIRECTORIES,
    load,
    parse_object,
    printable,
    programs,
    read_variables,
)
from claudebox.state.memory import Form
from claudebox.state.reach import Reach, TrustedSource, reach_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from claudebox.features import CheckRow, Deed, Section
    from claudebox.features.claude.configuration import Runnable

    T = TypeVar("T")

RULE = "claude"
AGENT = "agent"  # the rule by which another agent has something

HISTORY = Origin.of_rule(RULE, "conversations and state of this project")
YOUR_CONFIGURATION = Origin.of_rule(RULE, "your configuration")
YOUR_PROGRAM = Origin.of_rule(RULE, "your status line, a hook, or an MCP server")
NONE_THERE = Origin.of_rule(RULE, "you have none")
AWARENESS = Origin.of_rule(RULE, "what the agent is told about the box")
VARIABLES = Origin.of_rule(RULE, "so that Claude finds its home and leaves its installation alone")

OUTSIDE = Finding(
    Finding.NOTE,
    "conversations",
    "those of this project that you had outside stay there: claudebox --import-history copies them",
)

LARGEST_SCRIPT = 1 << 18
OF_INSTALLATION = ("install", "update", "upgrade")  # words of claude
INSTRUCTIONS = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")  # of a project
MANAGED = "/etc/claude-code"
CHANGED = """
claudebox: that is for the boxes of this project; claude outside lacks it.
It is in {}/.claude.json
"""
DEFAULT_MEMORY = "# Memory\n\nYou have no CLAUDE.md of your own. claudebox shows this one in its place.\n"


class Claude(Feature):
    def applies(self, facts: Facts) -> bool:
        return facts.install is not None

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        install, claude = facts.install, facts.claude
        assert install is not None
        if facts.runs_claude and facts.request.claude[:1] and facts.request.claude[0] in OF_INSTALLATION:
            word = facts.request.claude[0]
            what = f"`{word}` changes the installation of claude, which a box sees read-only"
            raise Problem(what, f"outside of the box: claude {word}")
        path = f"{facts.home}/.local/bin/claude"  # in the box, however it is installed on the host
        words = (path, "--dangerously-skip-permissions", *(word.text for word in facts.words))
        program = Program("claude", words, Origin.of_rule(RULE, install.kind))
        values = {"CLAUDE_CONFIG_DIR": claude.place, "DISABLE_AUTOUPDATER": "1", "DISABLE_INSTALLATION_CHECKS": "1"}
        # Whether somebody talks to Claude, and may want to go on with it later.
        is_asked_once = any(word.text in ("-p", "--print") for word in facts.words)
        is_conversation = facts.runs_claude and not is_asked_once and not facts.request.quiet
        return Contribution(
            mounts=(
                *install_mounts(install, path, facts.project, RULE),
                *(home := home_mounts(claude, facts.trusted)),
                *program_mounts(facts, home, named := files_of_servers(facts)),
                *server_mounts(facts, draft.mounts, named),
                *managed_mounts(facts.tree, claude),
            ),
            variables=tuple(EnvVar(name, value, VARIABLES, is_ours=True) for name, value in values.items()),
            path=(Directory(f"{facts.home}/.local/bin", Directory.CLAUDE),),
            steps=(Step(Step.AFTER, self),) if is_conversation else (),
            program=program if facts.runs_claude else None,
            findings=_conversations_outside(facts) if is_conversation else (),
            policy=facts.tree.text(f"{MANAGED}/CLAUDE.md") or "",
        )

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        """Prepare Claude's home. Which of the user's hooks can run follows from all mounts of the plan."""
        claude, person = facts.claude, facts.host.person
        check_state(facts.tree, claude.all_projects, claude.instance, person.uid)

        def can_run(command: str) -> bool:
            return self._inside(facts, draft, plan).can_run(command)

        # Claude remembers the end of a key: with a broker not even that enters.
        key = next((one.value for one in plan.environment if one.name == API_KEY), "")
        key = "" if facts.settings[AUTH].text == BROKER else key
        preparations, left_out = seed_state(facts, key, can_run)
        notes = [Finding(Finding.NOTE, "left out", line) for line in left_out]
        if any(b"@" in (facts.tree.read(path) or b"") for path in instructions(facts)):
            from claudebox.features.claude.imports import find_lost_imports

            notes += find_lost_imports(facts, self._inside(facts, draft, plan))
        return plan.replace(
            preparations=(*plan.preparations, *home_preparations(claude, plan.mounts), *preparations),
            findings=(*plan.findings, *notes, *facts.trusted.findings()),
        )

    def _inside(self, facts: Facts, draft: Draft, plan: Plan) -> Runnable:
        from claudebox.features.claude.configuration import Runnable

        return Runnable(facts.tree, plan.mounts, draft.search_path, facts.host.person.home)

    def check(self, host: Host, settings: Settings) -> list[CheckRow]:
        from claudebox.process.trial import FAIL, OK, CheckRow, run, version_number

        try:
            install = choose_claude(host, settings[CLAUDE_PATH], reach_of(host))
        except Problem as problem:
            return [CheckRow.of_problem("claude", problem)]
        outcome = run(install.path, "--version")
        if "native binary not installed" in outcome.stdout + outcome.stderr:
            why = "its package was installed without running its install script"
            return [CheckRow(FAIL, "claude", f"{install.path} is not complete", why, (npm_install(host, PACKAGE),))]
        return [CheckRow(OK, "claude", f"{version_number(outcome)}, {install.path} ({install.kind})")]

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import READ_ONLY, WRITABLE, Section

        if not any(mount.origin.is_rule(RULE) for mount in plan.mounts):
            return ()
        return (Section(adds=((WRITABLE, "Claude's state"), (READ_ONLY, "Claude and its configuration"))),)

    def after(self, launch: Launch) -> Deed:
        """Say how to go on with the conversation: Claude's own hint is for a host without claudebox."""
        from claudebox.output.terminal import say

        assert launch.plan.state is not None
        home = shorten_home(launch.plan.state.claude, launch.plan.person.home)
        prompts = f"{launch.plan.state.claude}/history.jsonl"  # Claude adds a line for each
        before, is_shown = _time_of(prompts), os.isatty(0) and os.isatty(1)
        servers = servers_of_boxes(launch.plan)

        def tell(_: bool) -> None:
            if servers_of_boxes(launch.plan) != servers:
                say(CHANGED.format(home))
            if is_shown and _time_of(prompts) != before:
                with suppress(OSError):  # the terminal is gone
                    say(f"\nResume it in a box with:\nclaudebox {_last_conversation(prompts)}\n")

        return tell


def servers_of_boxes(plan: Plan) -> dict[str, Any]:
    """The MCP servers that boxes of the project have, if Claude was asked about them: `claudebox mcp add …`."""
    if plan.state is None or "mcp" not in plan.program.argv:
        return {}
    from claudebox.features.claude.configuration import users_servers

    with suppress(Problem):  # the agent can write anything there
        return users_servers(load(Tree(), f"{plan.state.claude}/.claude.json"), plan.project)
    return {}


def _conversations_outside(facts: Facts) -> tuple[Finding, ...]:
    """Offer them until boxes of the project have conversations of their own."""
    claude, tree = facts.claude, facts.tree
    if tree.lstat(f"{claude.state}/projects") is not None or tree.lstat(f"{claude.users}/projects") is None:
        return ()
    from claudebox.state.conversations import conversations, directories

    places = directories(tree, claude.users, facts.project)
    return (OUTSIDE,) if any(conversations(tree, place, facts.project) for place in places) else ()


def _time_of(path: str) -> int:
    status = Tree().lstat(path)
    return status.st_mtime_ns if status is not None else 0


def _last_conversation(prompts: str) -> str:
    """What to type to go on with the conversation of the last prompt.

    The agent can write this file, so all that is shown of it has the form of a name. An older Claude notes none.
    """
    from claudebox.state.conversations import is_name

    with suppress(OSError), Open(os.open(prompts, READ)) as file:
        end = os.pread(file, LAST_PROMPTS, max(0, os.fstat(file).st_size - LAST_PROMPTS))
        name = end.decode("ascii", "replace").rpartition('"sessionId":"')[2].partition('"')[0]
        if is_name(name):
            return f"--resume {name}"
    return "--continue"


class ProjectSettings(Feature):
    """Settings of Claude that the project brings."""

    def applies(self, facts: Facts) -> bool:
        return any(facts.tree.lstat(f"{facts.project}/{name}") is not None for name in PROJECT_SETTINGS)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        # With the broker, the box has no credential that could go anywhere.
        kind = Finding.NOTE if facts.settings[AUTH].text == BROKER else Finding.RISK
        findings = []
        for name in PROJECT_SETTINGS:
            content = facts.tree.read(f"{facts.project}/{name}", limit=LARGEST_FILE) or b""
            findings.append(Finding(kind, name, leads_elsewhere(content)))
            findings.append(Finding(Finding.NOTE, name, names_programs(content)))
        return Contribution(findings=tuple(finding for finding in findings if finding.text))


class Options(Feature):
    """Files of the host that options of Claude name."""

    def applies(self, facts: Facts) -> bool:
        return facts.runs_claude and bool(facts.words)

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.claude import options

        return options.decide(facts, draft)


class Agents(Feature):
    """Other coding agents than Claude."""

    def applies(self, facts: Facts) -> bool:
        return facts.starts_agent and facts.settings[PROGRAM].text != CLAUDE

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        from claudebox.features.claude import agents

        return agents.decide(facts, draft)

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import READ_ONLY, WRITABLE, Section

        if not any(mount.origin.is_rule(AGENT) for mount in plan.mounts):
            return ()
        name = plan.program.title
        return (Section(adds=((WRITABLE, f"{name}'s state"), (READ_ONLY, name))),)


def instructions(facts: Facts) -> list[str]:
    """The files with what the user, and this project, tell Claude."""
    return [f"{facts.claude.users}/CLAUDE.md", *(f"{facts.project}/{name}" for name in INSTRUCTIONS)]


def home_mounts(home: ClaudeHome, trusted: TrustedSource) -> list[Mount]:
    mounts = [Mount(RW, home.place, HISTORY, source=home.state)]
    for name in SHOWN_DIRECTORIES:
        real = trusted.find(f"{home.users}/{name}", is_dir=True)
        path = f"{home.place}/{name}"
        if real is None:
            mounts.append(Mount(ABSENT, path, NONE_THERE, source=home.instance.empty))
        else:
            mounts.append(Mount(RO, path, YOUR_CONFIGURATION, source=real))
            mounts += _linked_entries(real, trusted)
    memory = trusted.find(f"{home.users}/CLAUDE.md", is_dir=False)
    mounts.append(_shown_file(home, "CLAUDE.md", memory or home.instance.memory))
    keys = trusted.find(f"{home.users}/keybindings.json", is_dir=False)
    return [*mounts, _shown_file(home, "keybindings.json", keys)] if keys else mounts


def program_mounts(facts: Facts, mounts: list[Mount], named: tuple[str, ...]) -> list[Mount]:
    """Show the scripts in Claude's own directory that are run from there, unless a mount does already."""
    own = [path for path in (*facts.users.runs, *named) if is_below(path, facts.claude.users)]
    covered = [mount.path for mount in mounts if mount.kind == RO]
    lacking = [path for path in own if not any(is_inside(path, place) for place in covered)]
    found = {path: facts.trusted.find(path, is_dir=False) for path in lacking}
    return [
        Mount(RO, path, YOUR_PROGRAM, source=real, is_dir=False, consent=ANY_VERSION)
        for path, real in found.items()
        if real is not None and _is_script(facts.tree, real)
    ]


def server_mounts(facts: Facts, mounts: tuple[Mount, ...], named: tuple[str, ...]) -> list[Mount]:
    """Show the other scripts and programs that the user's MCP servers name, unless a mount does already."""
    tree, reach = facts.tree, facts.reach
    found = {path: tree.resolve(path) or "" for path in named if not is_inside(path, facts.project)}
    return [
        Mount(RO, path, YOUR_PROGRAM, source=real, is_dir=False, consent=ANY_VERSION)
        for path, real in found.items()
        if tree.is_file(real)
        and not ((holder := find_holder(path, mounts)) and holder.kind in FROM_HOST)
        and not refuse_readable(real, facts.person.homes, facts.places)
        and not reach.leads_through(path)
        and _is_script(tree, real, may_be_binary=True)
    ]


def files_of_servers(facts: Facts) -> tuple[str, ...]:
    """What the user's MCP servers name. It is noted, so that their file is read only when it has changed."""
    source = _servers_source(facts)
    if not source.changed:
        return source.named
    from claudebox.features.claude.configuration import named_files, users_servers

    servers = users_servers(load(facts.tree, source.path), facts.project)
    return _not_too_deep(lambda: named_files(servers, _passed(facts), facts.home), source.path)


def _passed(facts: Facts) -> frozenset[str]:
    """The variables that somebody passes by name, secret or not."""
    said = {wish.name for wish in facts.settings[ENV] if wish.value is not None or wish.name in facts.host.environ}
    return frozenset(said)


def _servers_source(facts: Facts) -> _Source:
    """Where the user's MCP servers are. What is passed decides which of them enter."""
    beside = f"{facts.claude.users}/.claude.json"  # where CLAUDE_CONFIG_DIR puts it
    named = beside if facts.tree.exists(beside) else f"{facts.claude.all_projects.home}/.claude.json"
    path, note = facts.trusted.find(named, is_dir=False), facts.claude.instance.servers_note
    return _Source(facts.tree, path, note, facts.host.person.uid, " ".join(sorted(_passed(facts))))


def _is_script(tree: Tree, path: str, *, may_be_binary: bool = False) -> bool:
    """Whether a program runs it, and it holds no secret: a command may name any file, a login too."""
    content = tree.read(path, limit=LARGEST_SCRIPT + 1) or b""
    if may_be_binary and content.startswith(b"\x7fELF") and tree.is_executable(path):
        return True
    is_program = tree.is_executable(path) or content.startswith(b"#!") or path.endswith(SCRIPT_ENDINGS)
    return is_program and len(content) <= LARGEST_SCRIPT and not secret_value(content.decode(errors="replace"))


def _shown_file(home: ClaudeHome, name: str, source: str) -> Mount:
    return Mount(RO, f"{home.place}/{name}", YOUR_CONFIGURATION, source=source, is_dir=False)


def _linked_entries(directory: str, trusted: TrustedSource) -> list[Mount]:
    """Show where symlinks in a directory lead: people keep such files in a repository of dotfiles."""
    tree = trusted.tree
    links = [f"{directory}/{name}" for name in tree.entries(directory) if tree.is_link(f"{directory}/{name}")]
    # What is in the project is in the box already.
    outward = [path for path in links if not is_inside(tree.resolve(path) or "", trusted.reach.project)]
    return [
        Mount(RO, real, YOUR_CONFIGURATION, source=real, is_dir=tree.is_dir(real), consent=ANY_VERSION)
        for path in outward
        if (real := trusted.find(path, is_dir=tree.is_dir(path)))
    ]


def managed_mounts(tree: Tree, home: ClaudeHome) -> list[Mount]:
    """Put what the agent is told where an organisation's policy would be, which no option of Claude leaves out."""
    entries = tree.entries(MANAGED)
    # The organisation's CLAUDE.md becomes a part of ours.
    kept = [f"{MANAGED}/{name}" for name in entries if name not in ("CLAUDE.md", "SANDBOX.md")]
    mounts = [Mount(RO, path, YOUR_CONFIGURATION, source=path, is_dir=tree.is_dir(path)) for path in kept]
    mounts.append(Mount(RO, f"{MANAGED}/SANDBOX.md", AWARENESS, source=home.instance.sandbox, is_dir=False))
    mounts.append(Mount(SYMLINK, f"{MANAGED}/CLAUDE.md", AWARENESS, source="SANDBOX.md"))
    return mounts


def home_preparations(home: ClaudeHome, mounts: tuple[Mount, ...]) -> list[Preparation]:
    """Make the directories of the state, and something to mount on where the box can write."""
    instance = home.instance
    directories = [instance.directory, instance.empty, home.state]
    points = [mount for mount in mounts if mount.path.startswith(f"{home.place}/") and mount.kind in (RO, ABSENT)]
    return [
        *(Preparation(Preparation.DIRECTORY, directory) for directory in directories),
        *(preparation for mount in points for preparation in _mount_point(mount, home)),
        Preparation(Preparation.FILE, instance.memory, DEFAULT_MEMORY.encode()),
        Preparation(Preparation.SANDBOX, instance.sandbox),
        Preparation(Preparation.USED, instance.project),
    ]


def _mount_point(mount: Mount, home: ClaudeHome) -> list[Preparation]:
    """Make the directories above it one by one: an agent may have put a symlink in the place of one of them."""
    path = f"{home.state}/{mount.path.removeprefix(home.place + '/')}"
    above = [directory for directory in parents(path) if is_below(directory, home.state)]
    kind = Preparation.DIRECTORY if mount.is_dir else Preparation.EMPTY_FILE
    return [*(Preparation(Preparation.DIRECTORY, directory) for directory in reversed(above)), Preparation(kind, path)]


OTHERWISE = """
      or name it: CLAUDEBOX_CLAUDE=PATH
      or do without it: --run CMD, after all other options"""


def choose_claude(host: Host, named: Word | None, reach: Reach) -> ClaudeInstall:
    return choose_agent(host, CLAUDE, named, reach, npm_install(host, PACKAGE) + OTHERWISE)


def find_claude(
    host: Host, request: Request, settings: Settings, places: tuple[SecretPlace, ...], reach: Reach
) -> ClaudeInstall | None:
    """Find claude. A command or a shell gets it too, but can start without it: then this is None.

    Another agent does not get it, nor its login.
    """
    starts_agent, named = request.run is None and not request.shell, settings[CLAUDE_PATH]
    is_claudes = starts_agent and settings[PROGRAM].text == CLAUDE
    if not is_claudes:
        check_named(host, named)
    if starts_agent and not is_claudes:
        return None
    try:
        found = choose_claude(host, named, reach)
        check_files(found, host.person.homes, places, another(CLAUDE))
        return found
    except Problem:
        if is_claudes or named is not None:
            raise
        return None


# They let a stranger answer in the place of the API, too.
MORE = ("ANTHROPIC_UNIX_SOCKET", "NODE_TLS_REJECT_UNAUTHORIZED", "NODE_OPTIONS")
MARKS = tuple(name.encode() for name in (*LEADING, *MORE))
ESCAPE = b"\\u"  # with which a name can be written so that it does not look like one


def leads_elsewhere(content: bytes) -> str:
    """What the settings of a project do to Claude's requests; "" if nothing."""
    if len(content) < LARGEST_FILE and not (ESCAPE in content or any(mark in content for mark in MARKS)):
        return ""
    try:
        variables = read_variables(parse_object(content, "the project's settings"))
    except Problem:
        return "may change where Claude sends its requests and the credential: claudebox cannot read it"
    names = [f"{name}={shown_way(value)}" for name, value in variables.items() if name in LEADING or name in MORE]
    what = "changes where Claude sends its requests, and the credential with them: env"
    return f"{what} {', '.join(names)}" if names else ""


def names_programs(content: bytes) -> str:
    """Which programs the settings of a project have Claude run; "" if none, and if nobody can read them."""
    names: list[str] = []
    with suppress(Problem):
        names = programs(parse_object(content, "the project's settings")) if content else []
    return f"names programs that Claude runs: {', '.join(names)}" if names else ""


# The number changes when boxes get something else of the same file: then it is copied anew.
COPIED = Form("A file of yours as it was when boxes got a copy of it, what it names, and what was left out.", number=2)
ANSWERED = Form("What Claude need not ask: the project that it trusts, and the end of the API key that it may use.")
LAST_PROMPTS = 1 << 16  # bytes
KEY_TAIL = 20  # of an API key, by which Claude remembers that it may be used


def seed_state(facts: Facts, api_key: str, can_run: Callable[[str], bool]) -> tuple[list[Preparation], tuple[str, ...]]:
    """Copy what changed since the last launch, and answer Claude's first questions. Returns what was left out, too."""
    tree, users, home, project, uid = facts.tree, facts.users, facts.claude, facts.project, facts.host.person.uid
    settings = _Source(tree, users.path, home.instance.settings_note, uid)
    state = _servers_source(facts)
    answers = (f"project {memory.escape(project)}", f"key {memory.escape(api_key[-KEY_TAIL:])}")
    are_answered = memory.recall(tree, home.instance.answered, ANSWERED, uid) == answers
    preparations: list[Preparation] = []
    if settings.changed or tree.read_plain(f"{home.state}/settings.json", limit=1) is None:
        from claudebox.features.claude.configuration import admit_settings

        admitted = _not_too_deep(lambda: admit_settings(load(tree, users.path), can_run), users.path)
        settings.left_out = admitted.left_out
        preparations += [_state_file(f"{home.state}/settings.json", admitted.value), settings.note()]
    current = current_state(tree, home)
    # The agent may have reset the state, and the answers in it.
    is_prepared = b'"hasCompletedOnboarding"' in current and b'"hasTrustDialogAccepted"' in current
    if state.changed or not is_prepared or not are_answered:
        from claudebox.features.claude.configuration import admit_servers, users_servers

        passed, known = _passed(facts), users_servers(load(tree, state.path), project)
        servers = _not_too_deep(lambda: admit_servers(known, passed, can_run), state.path)
        state.left_out, state.named = servers.left_out, files_of_servers(facts)
        try:
            merged = merge_state(current, f"{home.state}/.claude.json", project, api_key, servers.value)
        except Problem as problem:
            raise Problem(problem.message, _put_aside(home)) from None
        preparations += [
            _state_file(f"{home.state}/.claude.json", merged),
            state.note(),
            memory.note(home.instance.answered, ANSWERED, answers, is_private=True),
        ]
    return preparations, (*settings.left_out, *state.left_out)


def _not_too_deep(work: Callable[[], T], path: str) -> T:
    try:
        return work()
    except RecursionError:
        raise Problem(f"{path} is nested too deeply", "repair it, or move it away") from None


class _Source:
    """A file of the user, and the note of how it was when it was last copied."""

    def __init__(self, tree: Tree, path: str | None, note: str, uid: int, also: str = "") -> None:
        self.path = path or ""
        self.note_path = note
        status = tree.lstat(path) if path else None
        # The time of the last change cannot be set by anybody.
        times = f"{status.st_mtime_ns} {status.st_ctime_ns}" if status is not None else ""
        self.stamp = f"{times} {status.st_size} {status.st_ino}" if status is not None else "none"
        self.stamp += also
        lines = memory.recall(tree, note, COPIED, uid)
        self.changed = lines[:1] != (self.stamp,)
        self.named = tuple(line for line in lines[1:] if line.startswith("/"))  # files that it names
        self.left_out = tuple(line for line in lines[1:] if not line.startswith("/"))

    def note(self) -> Preparation:
        return memory.note(
            self.note_path, COPIED, (self.stamp, *self.named, *printable(self.left_out)), is_private=True
        )


def current_state(tree: Tree, home: ClaudeHome) -> bytes:
    """The project's .claude.json; "" if it has none yet. Half a file is a Problem: Claude would overwrite it."""
    path = f"{home.state}/.claude.json"
    # In this order: another box of the project may make it at any moment, and then it is there and can be read.
    if tree.lstat_anew(path) is None:
        return b""
    content = tree.read_plain(path, limit=LARGEST_FILE)
    if content is None:
        raise Problem(f"{path} cannot be read", _put_aside(home))
    text = content.strip()
    if not (text.startswith(b"{") and text.endswith(b"}")):
        what = f"{path} is damaged: it is not a whole JSON object"
        raise Problem(what, f"look for an older one in its backups/, or start afresh:\n      {_put_aside(home)}")
    return content


def _put_aside(home: ClaudeHome) -> str:
    """A command that mends it. With -T: if the agent has made a symlink of that name, it does not lead to the user's
    own state."""
    return f"cd {quote(home.state)}\n      mv -T .claude.json broken-$(date +%s).json"


def merge_state(current: bytes, path: str, project: str, api_key: str, servers: dict[str, Any]) -> dict[str, Any]:
    """The state with onboarding done, the project trusted, and the user's servers in place of those copied before."""
    state = parse_object(current, path) if current else {}
    state["hasCompletedOnboarding"] = True
    _inner(_inner(state, "projects"), project)["hasTrustDialogAccepted"] = True
    state["mcpServers"] = servers
    if api_key:
        responses = _inner(state, "customApiKeyResponses")
        approved = responses.get("approved")
        kept = approved if isinstance(approved, list) else []
        responses["approved"] = [*(key for key in kept if key != api_key[-KEY_TAIL:]), api_key[-KEY_TAIL:]]
    elif "customApiKeyResponses" in state:
        _inner(state, "customApiKeyResponses")["approved"] = []  # an earlier box had the key itself
    return state


def _inner(value: dict[str, Any], name: str) -> dict[str, Any]:
    """The object of that name. It is made anew if it is none: the agent may have put anything there."""
    inner = value.get(name)
    if not isinstance(inner, dict):
        inner = value[name] = {}
    return inner


def _state_file(path: str, value: dict[str, Any]) -> Preparation:
    """Write a file of the state. It is private, so that no pasted command follows a symlink of the agent's."""
    import json

    return Preparation(Preparation.FILE, path, json.dumps(value, indent=2).encode() + b"\n", is_private=True)
