"""Completion, in the shells that it is made for."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.shared_files import COMPLETIONS, completion

from claudebox.features.table import SETTINGS
from conftest import CHECKOUT, Account
from terminal.pseudoterminal import Terminal

OWN_PROFILE = 'description = "of the user"\n'
ZSHRC = "fpath=(~/functions $fpath); autoload -Uz compinit; compinit -D -u; PS1='ready> '\n"
FISHRC = """
function fish_prompt; echo -n 'ready> '; end
function fish_greeting; end
set -g fish_autosuggestion_enabled 0
"""
# What is typed, and what the last word becomes, in every shell.
UNIQUE = {
    "claudebox --netw": "--network",
    "claudebox --network in": "inet",
    "claudebox --network=in": "--network=inet",
    "claudebox --profile stag": "staging",
    "claudebox --allow @np": "@npm",
    "claudebox --instances g": "gc",
    "claudebox --review dis": "discard",
    "claudebox --mount-ro ./unus": "./unusual-file",
    "claudebox --run ./unus": "./unusual-file",
}


@pytest.mark.parametrize("shell", COMPLETIONS)
def test_completion_knows_every_option(shell: str) -> None:
    text = completion(shell)
    options = {setting.option for setting in SETTINGS if not setting.in_files_only}
    long = [f"-l {option[2:]}" if shell == "fish" else option for option in options if option.startswith("--")]
    assert [option for option in long if option not in text] == []


def test_completion_is_plain_text() -> None:
    """Else a shell in another locale would get escapes."""
    assert [shell for shell in COMPLETIONS if not completion(shell).isascii()] == []


@pytest.fixture
def project(user: Account) -> Path:
    """A project, with a command that lies in wait for whoever completes, beside what claudebox is on PATH."""
    command = f'#!/bin/sh\nexec {CHECKOUT}/claudebox "$@"\n'
    user.write(user.home / "bin/claudebox", command, mode=0o755)
    user.environ["PATH"] = f"{user.home}/bin:{user.environ['PATH']}"
    user.write(user.home / ".claudebox/profiles/staging.toml", OWN_PROFILE)
    place = user.home / "project"
    user.write(place / "claudebox", f"#!/bin/sh\necho sprung >>'{user.home}/sprung'\n", mode=0o755)
    user.write(place / "unusual-file", "", mode=0o755)
    return place


@pytest.fixture(params=COMPLETIONS)
def shell(request: pytest.FixtureRequest, user: Account, project: Path) -> Iterator[Terminal]:
    """A shell that finds the completion where shells look for it, or in its start-up file."""
    name: str = request.param
    places = {
        "bash": user.home / ".bashrc",
        "zsh": user.home / "functions/_claudebox",
        "fish": user.home / ".local/share/fish/vendor_completions.d/claudebox.fish",
    }
    user.write(places[name], completion(name) + ("PS1='ready> '\n" if name == "bash" else ""))
    user.write(user.home / ".zshrc", ZSHRC)
    user.write(user.home / ".config/fish/config.fish", FISHRC)
    words = {"bash": ("bash", "-i"), "zsh": ("zsh", "-i"), "fish": ("fish", "-i")}[name]
    environ = {"TERM": "dumb" if name != "fish" else "xterm", "SHELL": f"/bin/{name}"}
    terminal = Terminal(user, words, cwd=project, env=environ)
    terminal.read_until("ready> ")
    yield terminal
    terminal.close()


def completed(shell: Terminal, user: Account, typed: str) -> str:
    """The line after a tab: the shell is made to print it, at the end of a file."""
    shell.type(f"{typed}\t")
    shell.type("\x01echo \x05 >>~/lines; echo do''ne\r")
    shell.read_until("done")
    shell.read_until("ready> ")
    return (user.home / "lines").read_text().splitlines()[-1]


@pytest.mark.shells
def test_tab_completes(shell: Terminal, user: Account) -> None:
    for typed, expected in UNIQUE.items():
        before = typed.rpartition(" ")[0]
        assert completed(shell, user, typed) == f"{before} {expected}"
    assert not (user.home / "sprung").exists()


@pytest.mark.shells
def test_command_of_the_project_is_not_run_for_a_completion(shell: Terminal, user: Account) -> None:
    assert completed(shell, user, "./claudebox --profile stag").startswith("./claudebox --profile stag")
    assert not (user.home / "sprung").exists()


@pytest.mark.shells
@pytest.mark.parametrize("shell", COMPLETIONS)
def test_shell_reads_it_without_a_complaint(shell: str, tmp_path: Path) -> None:
    file = tmp_path / "completion"
    file.write_text(completion(shell))
    done = subprocess.run([shell, "-n", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
