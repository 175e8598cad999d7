"""Decides how Claude is in the box: its program, its home, and what it is told."""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.facts import ClaudeHome, Contribution, Draft, Facts
from claudebox.features.claude import CLAUDE_CODE, RULE
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
from claudebox.host.variables import LEADING, shown_way
from claudebox.model import (
    ABSENT,
    ANY_VERSION,
    RO,
    RW,
    SYMLINK,
    Directory,
    EnvVar,
    Finding,
    Mount,
    Origin,
    Preparation,
    Program,
    SecretPlace,
    Step,
)
from claudebox.paths import is_below, is_inside, parents
from claudebox.settings.table import BROKER, CLAUDE
from claudebox.settings.values import Settings, Word
from claudebox.settings.words import Request
from claudebox.state.claude_settings import LARGEST_FILE, PROJECT_SETTINGS, parse_object, read_variables
from claudebox.state.reach import Reach, TrustedSource, reach_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.process.trial import CheckRow

SKIP_PERMISSIONS = "--dangerously-skip-permissions"

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
STUB_MESSAGE = "native binary not installed"
DEFAULT_MEMORY = "# Memory\n\nYou have no CLAUDE.md of your own. claudebox shows this one in its place.\n"


def decide(facts: Facts, _: Draft) -> Contribution:
    install, claude = facts.install, facts.claude
    assert install is not None
    path = f"{facts.home}/.local/bin/claude"  # in the box, however it is installed on the host
    words = (path, SKIP_PERMISSIONS, *(word.text for word in facts.words))
    program = Program("claude", words, Origin.of_rule(RULE, install.kind))
    return Contribution(
        mounts=(
            *install_mounts(install, path, facts.project, RULE),
            *(home := home_mounts(claude, facts.trusted)),
            *program_mounts(facts, home),
            *managed_mounts(facts.tree, claude),
        ),
        variables=tuple(home_variables(claude)),
        path=(Directory(f"{facts.home}/.local/bin", Directory.CLAUDE),),
        steps=(Step(Step.AFTER, CLAUDE_CODE),) if _is_conversation(facts) else (),
        program=program if facts.runs_claude else None,
        policy=facts.tree.text(f"{MANAGED}/CLAUDE.md") or "",
    )


def _is_conversation(facts: Facts) -> bool:
    """Whether somebody talks to Claude, and may want to go on with it later."""
    is_asked_once = any(word.text in ("-p", "--print") for word in facts.words)
    return facts.runs_claude and not is_asked_once and not facts.request.quiet


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


def home_variables(home: ClaudeHome) -> list[EnvVar]:
    values = {"CLAUDE_CONFIG_DIR": home.place, "DISABLE_AUTOUPDATER": "1", "DISABLE_INSTALLATION_CHECKS": "1"}
    return [EnvVar(name, value, VARIABLES, is_ours=True) for name, value in values.items()]


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


def check(host: Host, settings: Settings) -> list[CheckRow]:
    from claudebox.process.trial import FAIL, OK, CheckRow, run, version_number

    try:
        install = choose_claude(host, settings.claude, reach_of(host))
    except Problem as problem:
        return [CheckRow.of_problem("claude", problem)]
    outcome = run(install.path, "--version")
    if STUB_MESSAGE in outcome.stdout + outcome.stderr:
        why = "its package was installed without running its install script"
        return [CheckRow(FAIL, "claude", f"{install.path} is not complete", why, (npm_install(host, PACKAGE),))]
    return [CheckRow(OK, "claude", f"{version_number(outcome)}, {install.path} ({install.kind})")]


def find_claude(
    host: Host, request: Request, settings: Settings, places: tuple[SecretPlace, ...], reach: Reach
) -> ClaudeInstall | None:
    """Find claude. A command or a shell gets it too, but can start without it: then this is None.

    Another agent does not get it, nor its login.
    """
    starts_agent = request.run is None and not request.shell
    if starts_agent and settings.program.text != CLAUDE:
        return None
    try:
        found = choose_claude(host, settings.claude, reach)
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


def decide_project_settings(facts: Facts, _: Draft) -> Contribution:
    # With the broker, the box has no credential that could go anywhere.
    kind = Finding.NOTE if facts.settings.auth.text == BROKER else Finding.RISK
    contents = {name: facts.tree.read(f"{facts.project}/{name}", limit=LARGEST_FILE) for name in PROJECT_SETTINGS}
    texts = {name: leads_elsewhere(content or b"") for name, content in contents.items()}
    return Contribution(findings=tuple(Finding(kind, name, text) for name, text in texts.items() if text))


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
