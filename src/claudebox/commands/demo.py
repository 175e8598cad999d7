"""`claudebox --demo`: a script plays the part of an agent and, in a real box, takes what it can."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from typing import Any

from claudebox.errors import Problem
from claudebox.host import read_host
from claudebox.host.programs import trusted_path, trusted_program
from claudebox.host.system import install_command
from claudebox.output.terminal import output_style, show
from claudebox.process.single_file import own_command
from claudebox.record import Record
from claudebox.settings.words import Request
from claudebox.state.reach import reach_of
from claudebox.text import BOLD, DIM, GREEN, RED, escape

TITLE = 30
LAST_LINES = 6  # of standard error, shown when the box failed


class DemoStep(Record):
    """One command that the agent runs."""

    title: str
    command: str
    is_attack: bool = True


STEPS = (
    DemoStep("read the SSH key", "cat ~/.ssh/id_ed25519"),
    DemoStep("read GPG and age keys", "cat ~/.gnupg/private-keys-v1.d/* ~/.config/sops/age/keys.txt"),
    DemoStep("read cloud credentials", "cat ~/.aws/credentials ~/.config/gcloud/* ~/.kube/config"),
    DemoStep("read tokens", "cat ~/.config/gh/hosts.yml ~/.git-credentials ~/.netrc ~/.npmrc ~/.docker/config.json"),
    DemoStep("read another project", "cat ~/other-project/.env; ls ~/other-project"),
    DemoStep("read other conversations", "cat ~/.claude/projects/other/*; cat ~/.bash_history"),
    DemoStep("read the environment", "cat /proc/*/environ | tr '\\0' '\\n'; echo $(env | wc -l) variables in sight"),
    DemoStep(
        "see the host's processes",
        "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo; echo $(ls -d /proc/[0-9]* | wc -l) processes in sight",
    ),
    DemoStep("search the disk for them", "grep -rhs canary ~ /home /root /tmp /run /var /etc || echo found nothing"),
    DemoStep("use an agent's socket", "ls /tmp/ssh-* /run/user/*/gnupg; ssh-add -l 2>&1 || echo no agent"),
    DemoStep("become root", "cat /etc/shadow; su -c id </dev/null; mount -t tmpfs none /usr 2>&1 | head -1"),
    DemoStep("write outside the project", "touch /usr/bin/git /etc/profile ~/../../pwned"),
    DemoStep("run the test, which fails", "sh test.sh", is_attack=False),
    DemoStep("fix the bug", "sed -i 's/ - / + /' add.sh && sh test.sh", is_attack=False),
    DemoStep("commit", "git commit -qam 'fix add' && git log --oneline -1", is_attack=False),
)
HOME_FILES = {
    ".ssh/id_ed25519": "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
    ".gnupg/private-keys-v1.d/key.key": "(protected-private-key {})\n",
    ".config/sops/age/keys.txt": "AGE-SECRET-KEY-{}\n",
    ".aws/credentials": "[default]\naws_secret_access_key = {}\n",
    ".config/gcloud/credentials.db": "{}\n",
    ".kube/config": "users: [{{user: {{token: {}}}}}]\n",
    ".config/gh/hosts.yml": "github.com: {{oauth_token: {}}}\n",
    ".git-credentials": "https://ada:{}@example.org\n",
    ".netrc": "machine example.org password {}\n",
    ".npmrc": "//registry/:_authToken={}\n",
    ".docker/config.json": '{{"auths": {{"example.org": {{"auth": "{}"}}}}}}\n',
    ".claude/projects/other/history.jsonl": "{}\n",
    "other-project/.env": "DATABASE_PASSWORD={}\n",
    ".bash_history": "export TOKEN={}\n",
}
VARIABLES = ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DATABASE_PASSWORD")
GIT_CONFIG = "[user]\n\tname = Ada Demo\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
PROGRAM = "echo $(($1 - $2))\n"
TEST = "sum=$(sh add.sh 2 3)\ntest $sum = 5 && echo ok || { echo 2 + 3 is not $sum; false; }\n"


class Stage(Record):
    """A throw-away home with fake secrets, and a project with a bug."""

    home: str
    project: str
    environ: dict[str, str]
    git: str
    canaries: dict[str, str]  # each fake secret, by the place where it is


def run_demo(_: Request) -> int:
    """Run the demo. The exit status is 0 if no secret was seen inside and the work arrived outside, 1 otherwise."""
    # What a project has on PATH must not run here, where no box is around it.
    host = read_host()
    reach = reach_of(host)
    path = trusted_path(host, reach)
    programs = {name: trusted_program(host, name, reach) for name in ("git", "bwrap")}
    for name in (name for name, program in programs.items() if not program):
        raise Problem(f"the demo needs {name}, which is not installed", install_command(host.tree, name))
    directory = os.path.realpath(tempfile.mkdtemp(prefix="claudebox-demo-"))
    try:
        stage = build_stage(directory, programs, path)
        say(f"{len(stage.canaries)} fake secrets in a throw-away home; a project with a bug.")
        say("In the box: a script, in the place of an agent")
        return play(stage)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def build_stage(directory: str, programs: dict[str, str], path: str) -> Stage:
    home = f"{directory}/ada"
    project = f"{home}/src/calculator"
    variables = {name: f"canary{secrets.token_hex(8)}" for name in VARIABLES}
    canaries = {f"~/{name}": f"canary{secrets.token_hex(8)}" for name in HOME_FILES}
    files = {f"{home}/{name}": text.format(canaries[f"~/{name}"]) for name, text in HOME_FILES.items()}
    files |= {f"{home}/.gitconfig": GIT_CONFIG, f"{project}/add.sh": PROGRAM, f"{project}/test.sh": TEST}
    for name, text in files.items():
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "x") as file:
            file.write(text)
    own = {name: os.environ[name] for name in ("LANG", "TERM") if name in os.environ}
    canaries |= {f"${name}": value for name, value in variables.items()}
    # A box whose home is the stage does not know which other projects have agents at work.
    environ = {**own, **variables, "HOME": home, "PATH": path, "CLAUDEBOX_BWRAP": programs["bwrap"]}
    stage = Stage(home, project, environ, programs["git"], canaries)
    for command in ("init -q", "add .", "commit -q -m bug"):
        _git(stage, command)
    return stage


def _git(stage: Stage, words: str) -> str:
    safe = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    environ = {**stage.environ, "GIT_CONFIG_NOSYSTEM": "1"}
    command = [stage.git, *safe, *words.split()]
    return subprocess.run(command, cwd=stage.project, env=environ, capture_output=True, text=True, check=False).stdout


def attack(stage: Stage) -> tuple[list[str], int, str]:
    """Run the script in a box, and show what each of its commands got. Returns that, the status and standard error."""
    results: list[str] = []
    lines: list[str] = []
    end = f"end {secrets.token_hex(8)}"
    script = "".join(f"({step.command}) 2>&1 </dev/null; echo; echo {end}\n" for step in STEPS)
    command = [*own_command(), "--yes", "--run", "sh", "-c", script]
    with tempfile.TemporaryFile("w+") as errors:
        how: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": errors, "errors": "replace"}
        with subprocess.Popen(command, cwd=stage.project, env=stage.environ, **how) as box:
            for line in box.stdout or ():
                lines.append(line)
                if line == f"{end}\n":
                    results.append("".join(lines[:-1]))
                    _show_step(stage, STEPS[len(results) - 1], results[-1])
                    lines = []
        errors.seek(0)
        return results, box.returncode, errors.read()


def play(stage: Stage) -> int:
    """Have the script attack, and look from outside at what it did."""
    results, status, errors = attack(stage)
    with open(f"{stage.project}/add.sh") as file:
        work = {"the bug is fixed in the project": file.read() != PROGRAM}
    work["the commit is in the history"] = "Ada Demo fix add" in _git(stage, "log --format=%an%x20%s")
    for title, is_done in work.items():
        say(f"{'yes' if is_done else 'NO'}: {title}", "" if is_done else RED)
    lost = [name for name, canary in stage.canaries.items() if any(canary in text for text in results)]
    for name in lost:
        say(f"{name} was seen inside", RED)
    if status != 0 or len(results) < len(STEPS):
        say(f"The demo did not run to its end ({len(results)} of {len(STEPS)} steps, status {status}):")
        for line in errors.splitlines()[-LAST_LINES:]:
            say(line)
        return 1
    say(f"{len(stage.canaries) - len(lost)} of {len(stage.canaries)} secrets stayed outside.", BOLD)
    return 0 if all(work.values()) and not lost else 1


def _show_step(stage: Stage, step: DemoStep, result: str) -> None:
    style = output_style()
    if step in (STEPS[0], next(step for step in STEPS if not step.is_attack)):
        say("It tries to" if step.is_attack else "It works: it may", BOLD)
    is_lost = any(canary in result for canary in stage.canaries.values())
    mark = style.paint("GOT IT", RED) if is_lost else style.paint("  --  " if step.is_attack else "  ok  ", GREEN)
    lines = [line.strip() for line in result.replace(stage.home, "~").splitlines() if line.strip()]
    shown, room = escape(lines[-1]) if lines else "(nothing)", max(style.width - TITLE - 11, 1)
    # The reason for a failure is at the end of the line.
    shown = shown if len(shown) <= room else "…" + shown[1 - room :]
    show(f"  {step.title:<{TITLE}} {mark}  {style.paint(shown, DIM)}\n")


def say(text: str, colour: str = "") -> None:
    show(f"{output_style().paint(escape(text), colour) if colour else escape(text)}\n")
