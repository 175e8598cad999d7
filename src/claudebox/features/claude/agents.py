"""Other coding agents in the same box: a table with a row each, and what follows from the row.

Claude stays the default, and the best served: the broker, the login of the host and the imported configuration are
Claude's alone. Another agent gets its program, a state of its own for each project, its key if the host's environment
has one, and the same box.
"""

from __future__ import annotations

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts
from claudebox.features.claude import AGENT
from claudebox.host.programs import check_files, choose_agent, install_mounts, npm_install
from claudebox.model import RO, RW, Directory, EnvVar, Mount, Origin, Preparation, Program
from claudebox.paths import expand_home
from claudebox.record import Record
from claudebox.settings.table import AUTH, BROKER, ENV, PROGRAM

STATE = Origin.of_rule(AGENT, "conversations, settings and login of this project")
AWARENESS = Origin.of_rule(AGENT, "what the agent is told about the box")
KEY = Origin.of_rule(AGENT, "its key, passed on if the host has it")
VARIABLES = Origin.of_rule(AGENT, "so that it asks nothing and leaves its installation alone")
CLAUDES_KEY = "ANTHROPIC_API_KEY"
OPENCODE_MAY = '{"edit":"allow","bash":"allow","webfetch":"allow","external_directory":"allow"}'


class Agent(Record):
    """A coding agent, and what it needs in a box."""

    name: str
    package: str
    state: tuple[str, ...]  # what it keeps below the home; boxes of a project share it
    told: str  # a file below the first of these that it reads as the user's own instructions
    keys: tuple[str, ...]  # variables of the host with its key, or with the address of its API
    unattended: tuple[str, ...] = ()  # options: no questions, and no sandbox of its own, which cannot work in this one
    variables: tuple[tuple[str, str], ...] = ()
    install: str = ""  # a command to paste, if the package is not one of npm


AGENTS = {
    agent.name: agent
    for agent in (
        Agent(
            *("codex", "@openai/codex"),
            state=(".codex",),
            told=".codex/AGENTS.md",
            keys=("OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL"),
            unattended=("--dangerously-bypass-approvals-and-sandbox",),
        ),
        Agent(
            *("gemini", "@google/gemini-cli"),
            state=(".gemini",),
            told=".gemini/GEMINI.md",
            keys=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
            unattended=("--yolo", "--skip-trust"),
            variables=(("GEMINI_SANDBOX", "false"),),
        ),
        Agent(
            *("opencode", "opencode-ai"),
            state=(".config/opencode", ".local/share/opencode", ".local/state/opencode"),
            told=".config/opencode/AGENTS.md",
            keys=(CLAUDES_KEY, "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
            variables=(("OPENCODE_PERMISSION", OPENCODE_MAY), ("OPENCODE_DISABLE_AUTOUPDATE", "1")),
        ),
        Agent(
            *("aider", "aider-chat"),
            state=(".aider",),
            told=".aider/SANDBOX.md",
            keys=(CLAUDES_KEY, "OPENAI_API_KEY", "OPENAI_API_BASE", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
            unattended=(
                *("--yes-always", "--no-check-update", "--no-show-release-notes", "--analytics-disable"),
                *("--read", "~/.aider/SANDBOX.md"),
            ),
            install="uv tool install --python 3.12 aider-chat",
        ),
    )
}


def decide(facts: Facts, _: Draft) -> Contribution:
    agent = AGENTS[facts.settings[PROGRAM].text]
    if facts.settings[AUTH].text == BROKER:
        what = f"the broker knows only Claude's API, and {agent.name} has another one"
        raise Problem(what, "choose: --auth none, and --env NAME for a key that it needs")
    if facts.state is None:
        directory = facts.claude.all_projects.directory
        raise Problem(f"{directory} cannot be used, where the state of {agent.name} is kept", f"ls -ld {directory}")
    # What an agent could have written is not started, nor shown if it is secret.
    how_to_install = agent.install or npm_install(facts.host, agent.package)
    install = choose_agent(facts.host, agent.name, None, facts.reach, how_to_install)
    check_files(install, facts.host.person.homes, facts.places, how_to_install)
    # Every box gets Claude's key, for Claude, unless this agent uses it too or somebody asked for it.
    is_used = CLAUDES_KEY in (*agent.keys, *(wish.name for wish in facts.settings[ENV]))
    path = f"{facts.home}/.local/bin/{agent.name}"
    words = [expand_home(word, facts.home) for word in agent.unattended]
    return Contribution(
        mounts=(
            *install_mounts(install, path, facts.project, AGENT),
            *(Mount(RW, f"{facts.home}/{path}", STATE, source=kept(agent, path, facts)) for path in agent.state),
            Mount(RO, f"{facts.home}/{agent.told}", AWARENESS, source=facts.claude.instance.sandbox, is_dir=False),
        ),
        variables=(
            *(EnvVar(name, value, VARIABLES, is_ours=True) for name, value in agent.variables),
            *(EnvVar(name, facts.host.environ[name], KEY) for name in agent.keys if facts.host.environ.get(name)),
        ),
        kept_out=() if is_used else ((CLAUDES_KEY, f"is not for {agent.name}"),),
        path=(Directory(f"{facts.home}/.local/bin", Directory.CLAUDE),),
        preparations=tuple(state_preparations(agent, facts)),
        program=Program(agent.name, (path, *words, *facts.request.claude), facts.settings[PROGRAM].origin),
    )


def state_preparations(agent: Agent, facts: Facts) -> list[Preparation]:
    """Make the directories, and something to mount on where the agent can write."""
    instance = facts.claude.instance
    point = kept(agent, agent.state[0], facts) + agent.told.removeprefix(agent.state[0])
    return [
        Preparation(Preparation.DIRECTORY, instance.directory),
        *(Preparation(Preparation.DIRECTORY, kept(agent, path, facts)) for path in agent.state),
        Preparation(Preparation.EMPTY_FILE, point),
        Preparation(Preparation.SANDBOX, instance.sandbox),
    ]


def kept(agent: Agent, path: str, facts: Facts) -> str:
    """Where the project keeps what the agent has at this path of the home."""
    return f"{facts.claude.instance.agents}/{agent.name}/{path.removeprefix('.').replace('/', '-')}"
