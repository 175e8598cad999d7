"""Completion of options in shells, made from the table of settings. Other words are completed as files."""

from __future__ import annotations

from claudebox.problem import Problem
from claudebox.settings.table import COMMAND, LIST, MODE, SETTINGS, SWITCH, VALUE, Setting

TAKES_PATH = ("mount_ro", "mount_rw", "hide", "bwrap", "claude", "pasta", "nft")
SHELLS = ("bash", "zsh", "fish")


def completion(shell: str) -> str:
    if shell not in SHELLS:
        raise Problem(f"--completion: `{shell}` is not a known shell", "bash, zsh or fish")
    offered = [setting for setting in SETTINGS if not setting.in_files_only]
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](offered)


def _bash(settings: list[Setting]) -> str:
    options = " ".join(setting.option for setting in settings)
    cases = "".join(
        f"    {setting.option}) COMPREPLY=($(compgen -W '{' '.join(setting.choices)}' -- \"$word\")); return ;;\n"
        for setting in settings
        if setting.choices
    )
    return (
        '# Add to ~/.bashrc: eval "$(claudebox --completion bash)"\n'
        "_claudebox() {\n"
        "  local word=${COMP_WORDS[COMP_CWORD]}\n"
        "  case ${COMP_WORDS[COMP_CWORD - 1]} in\n"
        f"{cases}"
        "    --profile) COMPREPLY=($(compgen -W \"$(claudebox --profile 2>/dev/null | awk '/^  [^ ]/ { print $1 }')\" "
        '-- "$word")); return ;;\n'
        "  esac\n"
        f"  [[ $word == -* ]] && COMPREPLY=($(compgen -W '{options}' -- \"$word\"))\n"
        "}\n"
        "complete -o default -F _claudebox claudebox\n"
    )


def _zsh(settings: list[Setting]) -> str:
    rows = "".join(f"    {_zsh_row(setting)} \\\n" for setting in settings)
    return (
        "#compdef claudebox\n"
        "# Add to ~/.zshrc, after compinit: source <(claudebox --completion zsh)\n"
        "_claudebox() {\n"
        f"  _arguments -S \\\n{rows}    '*:word:_files'\n"
        "}\n"
        "compdef _claudebox claudebox\n"
    )


def _zsh_row(setting: Setting) -> str:
    text = setting.help.replace("'", "").replace("[", "(").replace("]", ")").replace(":", " -")
    again = "*" if setting.kind == LIST else ""
    if setting.kind in (SWITCH, MODE, COMMAND):
        return f"'{again}{setting.option}[{text}]'"
    action = f"({' '.join(setting.choices)})" if setting.choices else "_files" if setting.name in TAKES_PATH else ""
    return f"'{again}{setting.option}=[{text}]:{setting.name}:{action}'"


def _fish(settings: list[Setting]) -> str:
    lines = ["# Add to ~/.config/fish/config.fish: claudebox --completion fish | source"]
    for setting in settings:
        short = f" -s {setting.short[1:]}" if setting.short else ""
        value = " -r" if setting.kind in (VALUE, LIST) else ""
        value += f" -f -a '{' '.join(setting.choices)}'" if setting.choices else ""
        text = setting.help.replace("'", "\\'")
        lines.append(f"complete -c claudebox{short} -l {setting.option[2:]}{value} -d '{text}'")
    return "\n".join(lines) + "\n"
