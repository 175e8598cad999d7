"""Claude Code: its program, its home, and what its options name. And other agents in its place."""

from __future__ import annotations

import os
import posixpath

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
    choose_agent,
    install_mounts,
    npm_install,
)
from claudebox.host.secrets import secret_value
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
from claudebox.paths import absolute, is_below, is_inside, parents
from claudebox.record import Record
from claudebox.sandbox.mounts import find_holder
from claudebox.settings import MountWish, Settings, Word
from claudebox.settings.table import AUTH, BROKER, CLAUDE, CLAUDE_PATH, PROGRAM
from claudebox.settings.words import Request
from claudebox.state import check_state, memory
from claudebox.state.claude_settings import (
    LARGEST_FILE,
    PROJECT_SETTINGS,
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
    from typing import Any

    from claudebox.features import CheckRow, Deed, Section
    from claudebox.features.claude.configuration import Admitted

RULE = "claude"
AGENT = "agent"  # the rule by which another agent has something

HISTORY = Origin.of_rule(RULE, "conversations and state of this project")
YOUR_CONFIGURATION = Origin.of_rule(RULE, "your configuration")
YOUR_PROGRAM = Origin.of_rule(RULE, "your status line, or a hook")
NONE_THERE = Origin.of_rule(RULE, "you have none")
AWARENESS = Origin.of_rule(RULE, "what the agent is told about the box")
VARIABLES = Origin.of_rule(RULE, "so that Claude finds its home and leaves its installation alone")

# Directories of the user's own configuration. Every box has them, empty if need be: from inside, a mount cannot be
# replaced by a symlink, into which a later launch would mount.
SHOWN_DIRECTORIES = ("agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills")
SCRIPT_ENDINGS = (".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl")
LARGEST_SCRIPT = 1 << 18
MANAGED = "/etc/claude-code"
DEFAULT_MEMORY = "# Memory\n\nYou have no CLAUDE.md of your own. claudebox shows this one in its place.\n"


class Claude(Feature):
    def applies(self, facts: Facts) -> bool:
        return facts.install is not None

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        install, claude = facts.install, facts.claude
        assert install is not None
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
                *program_mounts(facts, home),
                *managed_mounts(facts.tree, claude),
            ),
            variables=tuple(EnvVar(name, value, VARIABLES, is_ours=True) for name, value in values.items()),
            path=(Directory(f"{facts.home}/.local/bin", Directory.CLAUDE),),
            steps=(Step(Step.AFTER, self),) if is_conversation else (),
            program=program if facts.runs_claude else None,
            policy=facts.tree.text(f"{MANAGED}/CLAUDE.md") or "",
        )

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        """Prepare Claude's home. Which of the user's hooks can run follows from all mounts of the plan."""
        claude, person = facts.claude, facts.host.person
        check_state(facts.tree, claude.all_projects, claude.instance, person.uid)

        def can_run(command: str) -> bool:
            from claudebox.features.claude.configuration import Runnable

            return Runnable(facts.tree, plan.mounts, draft.search_path, person.home).can_run(command)

        # Claude remembers the end of a key: with a broker not even that enters.
        key = next((one.value for one in plan.environment if one.name == API_KEY), "")
        key = "" if facts.settings[AUTH].text == BROKER else key
        preparations, left_out = seed_state(facts, key, can_run)
        notes = [Finding(Finding.NOTE, "left out", line) for line in left_out]
        return plan.replace(
            preparations=(*plan.preparations, *home_preparations(claude, plan.mounts), *preparations),
            findings=(*plan.findings, *notes, *facts.trusted.findings()),
        )

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
        prompts = f"{launch.plan.state.claude}/history.jsonl"  # Claude adds a line for each
        before, is_shown = _time_of(prompts), os.isatty(0) and os.isatty(1)

        def tell(_: bool) -> None:
            if is_shown and _time_of(prompts) != before:
                with suppress(OSError):  # the terminal is gone
                    say(f"\nResume it in a box with:\nclaudebox {_last_conversation(prompts)}\n")

        return tell


def _time_of(path: str) -> int:
    status = Tree().lstat(path)
    return status.st_mtime_ns if status is not None else 0


def _last_conversation(prompts: str) -> str:
    """What to type to go on with the conversation of the last prompt.

    The agent can write this file, so all that is shown of it has the form of a name. An older Claude notes none.
    """
    with suppress(OSError), Open(os.open(prompts, READ)) as file:
        end = os.pread(file, LAST_PROMPTS, max(0, os.fstat(file).st_size - LAST_PROMPTS))
        name = end.decode("ascii", "replace").rpartition('"sessionId":"')[2].partition('"')[0]
        parts = name.split("-")
        if [*map(len, parts)] == [8, 4, 4, 4, 12] and set("".join(parts)) <= set("0123456789abcdef"):
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
        """Ask for what the options name and the box lacks. If it does not exist, claude itself complains best."""
        tree, wishes, preparations = facts.tree, [], []
        for option, said in _mentions(facts.words):
            path = absolute(said.text, facts.project, facts.home)
            above = find_holder(path, draft.mounts)
            if said.text.startswith("{") or above is None or above.kind in FROM_HOST:
                continue
            rule = PATH_OPTIONS[option]
            directory = tree.resolve(posixpath.dirname(path))
            if rule.creates and directory is not None and tree.lstat(path) is None:
                new = f"{directory}/{posixpath.basename(path)}"
                preparations.append(Preparation(Preparation.EMPTY_FILE, new))
                wishes.append(MountWish(rule.access, path, "", said.origin, is_new=True))
            elif tree.exists(path):
                wishes.append(MountWish(rule.access, path, "", said.origin))
        return Contribution(wishes=tuple(wishes), preparations=tuple(preparations))


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


def program_mounts(facts: Facts, mounts: list[Mount]) -> list[Mount]:
    """Show the scripts in Claude's own directory that the status line and hooks run, unless a mount does already."""
    own = [path for path in facts.users.runs if is_below(path, facts.claude.users)]
    covered = [mount.path for mount in mounts if mount.kind == RO]
    lacking = [path for path in own if not any(is_inside(path, place) for place in covered)]
    found = {path: facts.trusted.find(path, is_dir=False) for path in lacking}
    return [
        Mount(RO, path, YOUR_PROGRAM, source=real, is_dir=False, consent=ANY_VERSION)
        for path, real in found.items()
        if real is not None and _is_script(facts.tree, real)
    ]


def _is_script(tree: Tree, path: str) -> bool:
    """Whether a program runs it, and it holds no secret: a command may name any file, a login too."""
    content = tree.read(path, limit=LARGEST_SCRIPT + 1) or b""
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
    starts_agent = request.run is None and not request.shell
    if starts_agent and settings[PROGRAM].text != CLAUDE:
        return None
    try:
        found = choose_claude(host, settings[CLAUDE_PATH], reach)
        check_files(found, host.person.homes, places, another(CLAUDE))
        return found
    except Problem:
        if starts_agent:
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
COPIED = Form("A file of yours as it was when boxes got a copy of it, and what was left out.", number=2)
ANSWERED = Form("What Claude need not ask: the project that it trusts, and the end of the API key that it may use.")
LAST_PROMPTS = 1 << 16  # bytes
KEY_TAIL = 20  # of an API key, by which Claude remembers that it may be used


def seed_state(facts: Facts, api_key: str, can_run: Callable[[str], bool]) -> tuple[list[Preparation], tuple[str, ...]]:
    """Copy what changed since the last launch, and answer Claude's first questions. Returns what was left out, too."""
    tree, users, home, project, uid = facts.tree, facts.users, facts.claude, facts.project, facts.host.person.uid
    settings = _Source(tree, users.path, home.instance.settings_note, uid)
    beside = f"{home.users}/.claude.json"  # where CLAUDE_CONFIG_DIR puts it
    named = beside if tree.exists(beside) else f"{home.all_projects.home}/.claude.json"
    state = _Source(tree, facts.trusted.find(named, is_dir=False), home.instance.servers_note, uid)
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
        from claudebox.features.claude.configuration import admit_servers

        servers = _not_too_deep(lambda: admit_servers(load(tree, state.path).get("mcpServers"), can_run), state.path)
        state.left_out = servers.left_out
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


def _not_too_deep(work: Callable[[], Admitted], path: str) -> Admitted:
    try:
        return work()
    except RecursionError:
        raise Problem(f"{path} is nested too deeply", "repair it, or move it away") from None


class _Source:
    """A file of the user, and the note of how it was when it was last copied."""

    def __init__(self, tree: Tree, path: str | None, note: str, uid: int) -> None:
        self.path = path or ""
        self.note_path = note
        status = tree.lstat(path) if path else None
        # The time of the last change cannot be set by anybody.
        times = f"{status.st_mtime_ns} {status.st_ctime_ns}" if status is not None else ""
        self.stamp = f"{times} {status.st_size} {status.st_ino}" if status is not None else "none"
        lines = memory.recall(tree, note, COPIED, uid)
        self.changed = lines[:1] != (self.stamp,)
        self.left_out = lines[1:]

    def note(self) -> Preparation:
        return memory.note(self.note_path, COPIED, (self.stamp, *printable(self.left_out)), is_private=True)


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


# The files of the host that enter because an option of claude names them

REASON = "named by an option of claude"


class PathOption(Record):
    """How an option of claude uses the path that follows it."""

    access: str
    takes_several: bool = False
    creates: bool = False


PATH_OPTIONS = {
    "--add-dir": PathOption(RW, takes_several=True),
    "--append-system-prompt-file": PathOption(RO),
    "--debug-file": PathOption(RW, creates=True),
    "--mcp-config": PathOption(RO, takes_several=True),
    "--plugin-dir": PathOption(RO),
    "--settings": PathOption(RO),
    "--system-prompt-file": PathOption(RO),
}


def _mentions(words: tuple[Word, ...]) -> list[tuple[str, Word]]:
    """Every option of claude that takes a path, and the path with where that was said."""
    mentions = []
    waiting: Word | None = None  # the option whose values these are
    for word in words:
        name, has_value, value = word.text.partition("=")
        if name in PATH_OPTIONS:
            if has_value:
                mentions.append(_mention(word.replace(text=name), word.replace(text=value)))
            waiting = None if has_value else word
        elif word.text.startswith("-"):
            waiting = None
        elif waiting is not None:
            mentions.append(_mention(waiting, word))
            waiting = waiting if PATH_OPTIONS[waiting.text].takes_several else None
    return mentions


def _mention(option: Word, value: Word) -> tuple[str, Word]:
    """A path counts as typed if both words are: a typed prompt after an option in a file may happen to be a path."""
    if option.origin.is_typed and value.origin.is_typed:
        return option.text, value.replace(origin=Origin.of_option(option.text, REASON))
    said = option.origin if value.origin.is_typed else value.origin
    return option.text, value.replace(origin=said.replace(reason=REASON))
