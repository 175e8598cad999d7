"""Completion in shells, made from the table of settings: our options and their values.

Each text can be evaluated by a shell's start-up file, and can be a file where the shell looks for completions.
Profiles are asked for when they are needed: `claudebox --profile` reads nothing of the project. It is the command of
that name on PATH, not the one that is being typed, which may be a file that the project brought.
"""

from __future__ import annotations

from claudebox.features.names.groups import GROUPS
from claudebox.problem import Problem
from claudebox.settings.parsing import LIMITED
from claudebox.settings.table import COMMAND, LIST, OPERAND, SETTINGS, VALUE, Setting
from claudebox.settings.words import MAY_FOLLOW, REVIEW, REVIEW_DEEDS

SHELLS = ("bash", "zsh", "fish")
TAKES_PATH = ("mount_ro", "mount_rw", "hide", "reveal", "writable", "explain")
TAKES_VARIABLE = ("env", "drop_env")
TAKES_COMMAND = ("against",)
PROFILE = "profile"
# Words that a value can be, where the table has no choices.
WORDS = {
    "allow": tuple(f"@{name}" for name in GROUPS),
    "auth_limit": tuple(f"{name}=" for name in LIMITED),
}


def completion(shell: str) -> str:
    if shell not in SHELLS:
        raise Problem(f"--completion: `{shell}` is not a known shell", "bash, zsh or fish")
    offered = [setting for setting in SETTINGS if not setting.in_files_only]
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](offered)


def words_after(setting: Setting) -> tuple[str, ...]:
    """The words that can follow an option."""
    if setting.name == REVIEW:
        return (*setting.choices, *REVIEW_DEEDS)
    if setting.name in MAY_FOLLOW:
        return MAY_FOLLOW[setting.name]
    return setting.choices or WORDS.get(setting.name, ())


def needs_value(setting: Setting) -> bool:
    return setting.name == "explain" or (setting.kind in (VALUE, LIST, OPERAND) and setting.name != REVIEW)


def _bash(settings: list[Setting]) -> str:
    options = [name for setting in settings for name in (setting.short, setting.option) if name]
    cases = "".join(_bash_case(setting) for setting in settings)
    return f"""\
# Completion of claudebox for bash. Without a package that installs it, add to ~/.bashrc:
#   eval "$(claudebox --completion bash)"
_claudebox() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} at
  # bash splits words at `=` and at `@`, of which the latter belongs to what is replaced.
  if [[ $word == = ]]; then
    word=
  elif [[ ($before == = || $before == @) && COMP_CWORD -gt 2 ]]; then
    [[ $before == = ]] || word=@$word
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  COMPREPLY=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    case ${{COMP_WORDS[at]}} in
      --) return ;;
      --run) # the rest is another command
        if declare -F _comp_command_offset >/dev/null; then
          _comp_command_offset $((at + 1))
        elif declare -F _command_offset >/dev/null; then
          _command_offset $((at + 1))
        elif ((at + 1 == COMP_CWORD)); then
          COMPREPLY=($(compgen -c -- "$word"))
        fi
        return ;;
    esac
  done
  case $before in
{cases}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W '{" ".join(options)}' -- "$word"))
  fi
}}
complete -o default -F _claudebox claudebox
"""


def _bash_case(setting: Setting) -> str:
    """What to offer after an option. A `return` without an offer leaves it to bash, which offers files."""
    words = words_after(setting)
    if setting.name == PROFILE:
        names = "claudebox --profile 2>/dev/null | sed -n 's/^  \\([^ ][^ ]*\\).*/\\1/p'"
        offer = f'COMPREPLY=($(compgen -W "$({names})" -- "$word")); compopt +o default; return'
    elif words:
        offer = f"COMPREPLY=($(compgen -W '{' '.join(words)}' -- \"$word\"))"
        offer += "; compopt -o nospace" if words[0].endswith("=") else ""
        offer += "; compopt +o default; return"
        offer = offer if needs_value(setting) else f"[[ $word == -* ]] || {{ {offer}; }}"
    elif setting.name in TAKES_VARIABLE:
        offer = 'COMPREPLY=($(compgen -e -- "$word")); return'
    elif setting.name in TAKES_COMMAND:
        offer = 'COMPREPLY=($(compgen -c -- "$word")); return'
    elif needs_value(setting):
        offer = "return"
    else:
        return ""
    return f"    {setting.option}) {offer} ;;\n"


def _zsh(settings: list[Setting]) -> str:
    rows = [row for setting in settings for row in _zsh_rows(setting)]
    listed = "".join(f"    {row} \\\n" for row in rows)
    return f"""\
#compdef claudebox
# Completion of claudebox for zsh. Without a package that installs it, add to ~/.zshrc, after compinit:
#   source <(claudebox --completion zsh)
_claudebox_profiles() {{
  local -a names
  names=(${{(f)"$(claudebox --profile 2>/dev/null | sed -n 's/^  \\([^ ][^ ]*\\).*/\\1/p')"}})
  compadd -a names
}}
_claudebox() {{
  _arguments -S \\
{listed}    '*:word:_files'
}}
if [[ ${{funcstack[1]}} == _claudebox ]]; then
  _claudebox "$@"
else
  compdef _claudebox claudebox
fi
"""


def _zsh_rows(setting: Setting) -> list[str]:
    text = setting.help.replace("'", "'\\''").replace("[", "(").replace("]", ")").replace(":", " -")
    again = "*" if setting.kind == LIST else ""
    if setting.kind == COMMAND:
        return [f"'{setting.option}[{text}]:*:::command: _normal'"]
    if needs_value(setting):
        return [f"'{again}{setting.option}=[{text}]:{setting.name}:{_zsh_action(setting)}'"]
    if words := words_after(setting):
        # Where the word is optional, zsh offers files as well.
        optional = ":" if setting.name == REVIEW else ""
        return [f"'{setting.option}[{text}]{optional}:{setting.name}:({' '.join(words)})'"]
    rows = [f"'{setting.option}[{text}]'"]
    return [*rows, f"'{setting.short}[{text}]'"] if setting.short else rows


def _zsh_action(setting: Setting) -> str:
    if setting.name == PROFILE:
        return "_claudebox_profiles"
    if words := words_after(setting):
        return f"({' '.join(words)})"
    if setting.name in TAKES_VARIABLE:
        return "_parameters -g '*export*'".replace("'", '"')
    if setting.name in TAKES_COMMAND:
        return "_command_names -e"
    return "_files" if setting.name in TAKES_PATH else ""


def _fish(settings: list[Setting]) -> str:
    lines = [
        "# Completion of claudebox for fish. Without a package that installs it, add to ~/.config/fish/config.fish:",
        "#   claudebox --completion fish | source",
    ]
    lines += [_fish_row(setting) for setting in settings]
    return "\n".join(lines) + "\n"


def _fish_row(setting: Setting) -> str:
    value = " -r" if needs_value(setting) else ""
    words = words_after(setting)
    if setting.name == PROFILE:
        value = ' -x -a \'(claudebox --profile 2>/dev/null | string replace -rf "^  (\\S+).*" "\\$1")\''
    elif setting.kind == COMMAND:
        value = " -x -a '(__fish_complete_command)'"
    elif words and needs_value(setting):
        value = f" -x -a '{' '.join(words)}'"
    elif words:
        value = ""
    elif setting.name in TAKES_VARIABLE:
        value = " -x -a '(set --names --export)'"
    elif setting.name in TAKES_COMMAND:
        value = " -x -a '(__fish_complete_command)'"
    row = _fish_option(setting.option, setting.help, value, setting.short)
    if words and not needs_value(setting):
        seen = f"contains -- {setting.option} (commandline -opc)[-1]"
        row += f"\ncomplete -c claudebox -n '{seen}' -f -a '{' '.join(words)}'"
    return row


def _fish_option(option: str, text: str, value: str, short: str = "") -> str:
    letter = f" -s {short[1:]}" if short else ""
    name = f" -l {option[2:]}" if option.startswith("--") else f" -s {option[1:]}"
    shown = text.replace("'", "\\'")
    return f"complete -c claudebox{letter}{name}{value} -d '{shown}'"
