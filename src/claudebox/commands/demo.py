"""`claudebox --demo`: a script plays the part of an agent and, in a real box, takes what it can."""

from __future__ import annotations

import os
import secrets
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


# What it does, and the command for it.
ATTACKS = (
    ("read the SSH key", "cat ~/.ssh/id_ed25519"),
    ("read GPG and age keys", "cat ~/.gnupg/private-keys-v1.d/* ~/.config/sops/age/keys.txt"),
    ("read cloud credentials", "cat ~/.aws/credentials ~/.config/gcloud/* ~/.kube/config"),
    ("read tokens", "cat ~/.config/gh/hosts.yml ~/.git-credentials ~/.netrc ~/.npmrc ~/.docker/config.json"),
    ("read another project", "cat ~/other-project/.env; ls ~/other-project"),
    ("read other conversations", "cat ~/.claude/projects/other/*; cat ~/.bash_history"),
    ("read the environment", "cat /proc/*/environ | tr '\\0' '\\n'; echo $(env | wc -l) variables in sight"),
    (
        "see the host's processes",
        "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo; echo $(ls -d /proc/[0-9]* | wc -l) processes in sight",
    ),
    ("search the disk for them", "grep -rhs canary ~ /home /root /tmp /run /var /etc || echo found nothing"),
    ("use an agent's socket", "ls /tmp/ssh-* /run/user/*/gnupg; ssh-add -l 2>&1 || echo no agent"),
    ("become root", "cat /etc/shadow; su -c id </dev/null; mount -t tmpfs none /usr 2>&1 | head -1"),
    ("write outside the project", "touch /usr/bin/git /etc/profile ~/../../pwned"),
)
WORK = (
    ("run the test, which fails", "sh test.sh"),
    ("fix the bug", "sed -i 's/ - / + /' add.sh && sh test.sh"),
    ("commit", "git commit -qam 'fix add' && git log --oneline -1"),
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
    programs = {name: trusted_program(host, name, reach) for name in ("git", "bwrap")}
    for name in (name for name, program in programs.items() if not program):
        raise Problem(f"the demo needs {name}, which is not installed", install_command(host.tree, name))
    with tempfile.TemporaryDirectory(prefix="claudebox-demo-", ignore_cleanup_errors=True) as directory:
        stage = build_stage(os.path.realpath(directory), programs, trusted_path(host, reach))
        say(f"{len(stage.canaries)} fake secrets in a throw-away home; a project with a bug.")
        say("In the box: a script, in the place of an agent")
        return play(stage)


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


def play(stage: Stage) -> int:
    """Run the script in a box, show what each of its commands got, and look from outside at what it did."""
    end = f"end {secrets.token_hex(8)}\n"
    script = "".join(f"({command}) 2>&1 </dev/null; echo; echo {end}" for _, command in (*ATTACKS, *WORK))
    words = [*own_command(), "--yes", "--run", "sh", "-c", script]
    how: Any = {"stdin": subprocess.DEVNULL, "capture_output": True, "errors": "replace", "check": False}
    done = subprocess.run(words, cwd=stage.project, env=stage.environ, **how)
    results = done.stdout.split(f"\n{end}")[:-1]  # on a line of its own: the script itself is seen in /proc
    say("It tries to", BOLD)
    for (title, _), result in zip(ATTACKS, results, strict=False):
        _show_step(stage, title, result, "  --  ")
    say("It works: it may", BOLD)
    for (title, _), result in zip(WORK, results[len(ATTACKS) :], strict=False):
        _show_step(stage, title, result, "  ok  ")
    with open(f"{stage.project}/add.sh") as file:
        work = {"the bug is fixed in the project": file.read() != PROGRAM}
    work["the commit is in the history"] = "Ada Demo fix add" in _git(stage, "log --format=%an%x20%s")
    for title, is_done in work.items():
        say(f"{'yes' if is_done else 'NO'}: {title}", "" if is_done else RED)
    lost = [name for name, canary in stage.canaries.items() if canary in done.stdout]
    for name in lost:
        say(f"{name} was seen inside", RED)
    if done.returncode != 0 or len(results) < len(ATTACKS) + len(WORK):
        say(f"The demo did not run to its end (step {len(results)}, status {done.returncode}):")
        for line in done.stderr.splitlines()[-LAST_LINES:]:
            say(line)
        return 1
    say(f"{len(stage.canaries) - len(lost)} of {len(stage.canaries)} secrets stayed outside.", BOLD)
    return 0 if all(work.values()) and not lost else 1


def _show_step(stage: Stage, title: str, result: str, mark: str) -> None:
    style = output_style()
    is_lost = any(canary in result for canary in stage.canaries.values())
    shown_mark = style.paint("GOT IT", RED) if is_lost else style.paint(mark, GREEN)
    lines = [line.strip() for line in result.replace(stage.home, "~").splitlines() if line.strip()]
    shown, room = escape(lines[-1]) if lines else "(nothing)", max(style.width - TITLE - 11, 1)
    # The reason for a failure is at the end of the line.
    shown = shown if len(shown) <= room else "…" + shown[1 - room :]
    show(f"  {title:<{TITLE}} {shown_mark}  {style.paint(shown, DIM)}\n")


def say(text: str, colour: str = "") -> None:
    show(f"{output_style().paint(escape(text), colour) if colour else escape(text)}\n")
