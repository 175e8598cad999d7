#!/usr/bin/env python3
"""Make what a package installs besides the program, from the table of settings, below a directory:

    tools/shared_files.py ~/.local

These are the manual page, completions for bash, zsh and fish, and JSON Schemas of the files with settings, for editors.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from claudebox import __version__
from claudebox.commands.help import EXIT_STATUSES, FILES
from claudebox.features.allowlist import ALLOW
from claudebox.features.allowlist.rules import GROUPS
from claudebox.features.table import SETTINGS
from claudebox.settings import PROJECT_FILE, types
from claudebox.settings.files import DESCRIPTION, NAME
from claudebox.settings.table import PROFILE, REVIEW, Setting
from claudebox.settings.types import COMMAND, LIST, OPERAND
from claudebox.settings.words import REVIEW_DEEDS
from claudebox.text import fill

# Where man and the shells look, below a prefix.
MANUAL = "share/man/man1/claudebox.1"
COMPLETIONS = {
    "bash": "share/bash-completion/completions/claudebox",
    "zsh": "share/zsh/site-functions/_claudebox",
    "fish": "share/fish/vendor_completions.d/claudebox.fish",
}
CONFIG_SCHEMA = "share/claudebox/config.schema.json"
PROJECT_SCHEMA = "share/claudebox/project.schema.json"

VARIABLES, PROFILES, PATHS, PROGRAMS = "variables", "profiles", "paths", "programs"
OFFERED = [setting for setting in SETTINGS if not setting.in_files_only]


def shared_files() -> dict[str, str]:
    """The files, by their path below a prefix."""
    return {
        MANUAL: manual_page(),
        **{place: completion(shell) for shell, place in COMPLETIONS.items()},
        CONFIG_SCHEMA: json.dumps(schema(is_project=False), indent=2) + "\n",
        PROJECT_SCHEMA: json.dumps(schema(is_project=True), indent=2) + "\n",
    }


# The manual page, in the macros of man(7)

HEAD = """\
.\\" Made by tools/shared_files.py from the table of settings.
.TH CLAUDEBOX 1 "" "claudebox {version}" "User Commands"
.SH NAME
claudebox \\- Claude Code in a bubblewrap box
.SH SYNOPSIS
.B claudebox
.RI [ options ]
.RI [ "anything for claude" ]
.br
.B claudebox
.RI [ options ]
.B \\-\\-run
.I command
.RI [ argument ...]
.SH DESCRIPTION
Starts Claude Code in a box around the current directory.
The box has this project, the system's programs and claude;
no keys, tokens or other projects.
.PP
The first time, and whenever something new would enter, it is shown, and you
are asked.
.PP
What is no option of claudebox goes to claude unchanged, as does everything
after
.BR \\-\\- .
"""
FILES_TEXT = """\
Of a single value the last one counts, in the order: config.toml, profiles, the
file of the project, variables, options.
Lists add up.
.BR hide " and " drop_env
are never outvoted.
"""
TAIL = """\
.SH EXAMPLES
.nf
claudebox \\-p "fix the failing test"
claudebox \\-\\-continue
claudebox \\-\\-network none \\-\\-run make test
claudebox \\-\\-audit
.fi
.SH SEE ALSO
.BR bwrap (1),
.BR pasta (1),
.BR nft (8)
"""


def manual_page() -> str:
    return "".join(
        (
            HEAD.format(version=__version__),
            ".SH OPTIONS\n",
            *(_option(setting) for setting in OFFERED),
            ".SH ENVIRONMENT\n",
            *(_entry(_bold(setting.variable), _of_variable(setting)) for setting in SETTINGS if setting.variable),
            _entry(_bold("NO_COLOR"), "if it is set, nothing is coloured"),
            ".SH FILES\n",
            *(_entry(_bold(path), text) for path, text in FILES),
            f".PP\n{FILES_TEXT}",
            ".SS Keys of these files\n",
            *(_key(setting) for setting in SETTINGS.by_key.values()),
            ".SH EXIT STATUS\n",
            *(_entry(_bold(status), text) for status, text in EXIT_STATUSES),
            TAIL,
        )
    )


def _option(setting: Setting[object]) -> str:
    names = ", ".join(_bold(name) for name in (setting.short, setting.option) if name)
    metavar = f" \\fI{_escape(setting.metavar)}\\fR" if setting.metavar else ""
    return _entry(names + metavar, setting.help)


def _of_variable(setting: Setting[object]) -> str:
    means = f"as the key {setting.key}" if setting.in_files_only else f"as {setting.option}"
    return f"{means}, with commas between several" if setting.kind == LIST else means


def _key(setting: Setting[object]) -> str:
    written = " or ".join(f'"{choice}"' for choice in setting.choices) or setting.type.shape
    return _entry(_bold(setting.key), f"{setting.help_in_files or setting.help} ({written})")


def _entry(head: str, text: str) -> str:
    lines = fill(_escape(text).split(), 2)
    # A line that begins with one of these is a request.
    plain = "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)
    return f".TP\n{head}\n{plain}\n"


def _bold(text: str) -> str:
    return f"\\fB{_escape(text)}\\fR"


def _escape(text: str) -> str:
    for character, code in (("\\", "\\e"), ("-", "\\-"), ("~", "\\(ti"), ("^", "\\(ha"), ("…", "...")):
        text = text.replace(character, code)
    return text


# Completions. Profiles are asked for when they are needed: `claudebox --profile` reads nothing of the project. It is
# the command of that name on PATH, not the one that is being typed, which may be a file that the project brought.


def completion(shell: str) -> str:
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()


def words_after(setting: Setting[object]) -> tuple[str, ...]:
    """The words that can follow an option."""
    groups = tuple(f"@{name}" for name in GROUPS) if setting is ALLOW else ()
    return (*setting.type.words, *groups, *(REVIEW_DEEDS if setting is REVIEW else ()))


def what_follows(setting: Setting[object]) -> str:
    """What a shell offers after an option, if it has no words of its own."""
    kind = getattr(setting.type, "element", setting.type)
    if isinstance(kind, types.Variable | types.VariableName):
        return VARIABLES
    if isinstance(kind, types.Path | types.ProjectPath | types.Program | types.Mounted) or setting.name == "explain":
        return PATHS
    if setting.kind in (COMMAND, OPERAND):
        return PROGRAMS
    return PROFILES if setting is PROFILE else ""


def needs_value(setting: Setting[object]) -> bool:
    return bool(setting.metavar) and not setting.metavar.startswith("[") and setting.kind != COMMAND


def _bash() -> str:
    options = " ".join(name for setting in OFFERED for name in (setting.short, setting.option) if name)
    cases = "".join(_bash_case(setting) for setting in OFFERED if setting.kind != COMMAND)
    return f"""\
# Completion of claudebox for bash.
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
    COMPREPLY=($(compgen -W '{options}' -- "$word"))
  fi
}}
complete -o default -F _claudebox claudebox
"""


def _bash_case(setting: Setting[object]) -> str:
    """What to offer after an option. A `return` without an offer leaves it to bash, which offers files."""
    words = words_after(setting)
    if what_follows(setting) == PROFILES:
        names = "claudebox --profile 2>/dev/null | sed -n 's/^  \\([^ ][^ ]*\\).*/\\1/p'"
        offer = f'COMPREPLY=($(compgen -W "$({names})" -- "$word")); compopt +o default; return'
    elif words:
        offer = f"COMPREPLY=($(compgen -W '{' '.join(words)}' -- \"$word\"))"
        offer += "; compopt -o nospace" if words[0].endswith("=") else ""
        offer += "; compopt +o default; return"
        offer = offer if needs_value(setting) else f"[[ $word == -* ]] || {{ {offer}; }}"
    elif what_follows(setting) == VARIABLES:
        offer = 'COMPREPLY=($(compgen -e -- "$word")); return'
    elif what_follows(setting) == PROGRAMS:
        offer = 'COMPREPLY=($(compgen -c -- "$word")); return'
    elif needs_value(setting):
        offer = "return"
    else:
        return ""
    return f"    {setting.option}) {offer} ;;\n"


def _zsh() -> str:
    listed = "".join(f"    {row} \\\n" for setting in OFFERED for row in _zsh_rows(setting))
    return f"""\
#compdef claudebox
# Completion of claudebox for zsh.
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


def _zsh_rows(setting: Setting[object]) -> list[str]:
    text = setting.help.replace("'", "'\\''").replace("[", "(").replace("]", ")").replace(":", " -")
    again = "*" if setting.kind == LIST else ""
    if setting.kind == COMMAND:
        return [f"'{setting.option}[{text}]:*:::command: _normal'"]
    if needs_value(setting):
        return [f"'{again}{setting.option}=[{text}]:{setting.name}:{_zsh_action(setting)}'"]
    words = words_after(setting)
    # Such a word is optional: zsh offers files as well.
    following = f"::{setting.name}:({' '.join(words)})" if words else ""
    return [f"'{name}[{text}]{following}'" for name in (setting.option, setting.short) if name]


def _zsh_action(setting: Setting[object]) -> str:
    if words := words_after(setting):
        return f"({' '.join(words)})"
    actions = {
        PROFILES: "_claudebox_profiles",
        VARIABLES: '_parameters -g "*export*"',
        PROGRAMS: "_command_names -e",
        PATHS: "_files",
    }
    return actions.get(what_follows(setting), "")


def _fish() -> str:
    rows = "\n".join(_fish_row(setting) for setting in OFFERED)
    return f"# Completion of claudebox for fish.\n{rows}\n"


def _fish_row(setting: Setting[object]) -> str:
    words = words_after(setting)
    offers = {
        PROFILES: '(claudebox --profile 2>/dev/null | string replace -rf "^  (\\S+).*" "\\$1")',
        VARIABLES: "(set --names --export)",
        PROGRAMS: "(__fish_complete_command)",
    }
    offered = " ".join(words) or offers.get(what_follows(setting), "")
    value = f" -x -a '{offered}'" if offered else " -r"
    letter = f" -s {setting.short[1:]}" if setting.short else ""
    text = setting.help.replace("'", "\\'")
    has_value = needs_value(setting) or setting.kind == COMMAND
    row = f"complete -c claudebox{letter} -l {setting.option[2:]}{value if has_value else ''} -d '{text}'"
    if words and not has_value:
        seen = f"contains -- {setting.option} (commandline -opc)[-1]"
        row += f"\ncomplete -c claudebox -n '{seen}' -f -a '{' '.join(words)}'"
    return row


# JSON Schemas, draft 7, which Taplo understands (the language server for TOML, in Even Better TOML and others).
# They know keys, types and choices. The form of a text, such as an amount or a name, is left to the program.

Schema = dict[str, Any]

DRAFT = "http://json-schema.org/draft-07/schema#"
TEXT = {"type": "string"}
TITLES = {
    NAME: "what you call it; a profile is asked for by the name of its file",
    DESCRIPTION: "what the file is for, on one line",
}
MOUNT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["host"],
    "properties": {
        "host": {"type": "string", "description": "the path on this host; ~ and $NAME are understood"},
        "sandbox": {"type": "string", "description": "the path in the box, if it differs"},
        "mode": {"type": "string", "enum": ["ro", "rw"], "description": "ro: read-only, the default; rw: writable"},
        "optional": {"type": "boolean", "description": "true: no error if the path is missing"},
    },
}


def schema(*, is_project: bool) -> Schema:
    """The schema of the user's own files, or of a project's, which cannot say everything."""
    settings = [setting for setting in SETTINGS.by_key.values() if not (is_project and setting.is_users)]
    title = PROJECT_FILE if is_project else "your own config.toml and profiles"
    titles = {key: {"description": text, **TEXT} for key, text in TITLES.items()}
    return {
        "$schema": DRAFT,
        "title": f"claudebox: {title}",
        "type": "object",
        "additionalProperties": False,
        "properties": titles | {setting.key: _property(setting) for setting in settings},
    }


def _property(setting: Setting[object]) -> Schema:
    return {"description": setting.help_in_files or setting.help, **_value(setting.type)}


def _value(kind: types.Type[Any]) -> Schema:
    match kind:
        case types.List(element=types.Variable()):
            return {"type": "object", "additionalProperties": TEXT}
        case types.List():
            return {"type": "array", "items": _value(kind.element)}
        case types.Choice():
            return {"type": "string", "enum": list(kind.choices)}
        case types.PortNumber():
            number = {"type": "integer", "minimum": 1, "maximum": types.LAST_PORT}
            return {"anyOf": [number, TEXT]} if kind.is_pair else number
        case types.Mounted():
            return MOUNT
    return TEXT


def write(prefix: Path) -> list[Path]:
    """Write the files, and return their paths."""
    written = []
    for place, text in shared_files().items():
        file = prefix / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        written.append(file)
    return written


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.stderr.write(__doc__ or "")
        sys.exit(125)
    for path in write(Path(sys.argv[1])):
        print(path)


if __name__ == "__main__":
    main()
