"""The help text, made from the table of settings."""

from __future__ import annotations

from claudebox.settings.table import BY_KEY, SETTINGS, Setting
from claudebox.view.text import fill

COLUMN = 30
INDENT = 2
HEAD = """\
usage: claudebox [OPTIONS] [anything for claude]

Starts Claude Code in a box around the current directory. The box has this
project, the system's programs and claude; no keys, tokens or other projects.
"""
TAIL = """\
Everything else goes to claude unchanged, as does everything after `--`:
  claudebox -p "fix the failing test"
  claudebox --continue
  claudebox mcp list

Environment:
  CLAUDEBOX_EXTRA_ENV=A,B     pass these variables too
{variables}

Files with settings, in TOML; for a single value, the last one counts:
{files}
Their keys:
{keys}
For example:
  network = "inet"
  extra_env_passthrough = ["PGUSER", "PGPASSWORD"]
  mounts = [{{ host = "~/notes", mode = "ro" }}]
  env = {{ PGHOST = "localhost" }}

{statuses}
"""
FILES = (
    ("~/.claudebox/config.toml", "for every box"),
    ("~/.claudebox/profiles/NAME.toml", "for --profile NAME; or NAME.json"),
    (".claudebox.toml", "of the project; what it adds needs your yes"),
)
# Of a box. A mode that only looks, such as --check, says 0 for all well and 1 for something that is not.
EXIT_STATUSES = (
    ("0 to 124", "claude's own, or that of the program after --run"),
    ("125", "claudebox failed or refused"),
    ("126", "claude cannot be executed"),
    ("127", "claude was not found"),
    ("128+n", "ended by signal n"),
)


def help_text() -> str:
    rows = "".join(_row(setting) for setting in SETTINGS if not setting.in_files_only)
    variables = [f"{setting.variable}," for setting in SETTINGS if setting.variable]
    keys = [f"{key}," for key in BY_KEY]
    width = max(len(path) for path, _ in FILES)
    statuses = "; ".join(f"{status} {meaning}" for status, meaning in EXIT_STATUSES[1:])
    tail = TAIL.format(
        variables=_lines([*variables, "NO_COLOR"]),
        files="\n".join(f"  {path:<{width}}  {meaning}" for path, meaning in FILES),
        keys=_lines([*keys[:-1], keys[-1].rstrip(",")]),
        statuses="\n".join(fill(f"Exit status: claude's own; {statuses}.".split(), 0)),
    )
    return f"{HEAD}\nOptions:\n{rows}\n{tail}"


def _lines(words: list[str]) -> str:
    return "\n".join(f"  {line}" for line in fill(words, INDENT))


def _row(setting: Setting) -> str:
    names = f"{setting.short}, {setting.option}" if setting.short else setting.option
    left = f"  {names} {setting.metavar}".rstrip()
    lines = fill(setting.help.split(), COLUMN)
    head = f"{left:<{COLUMN}}{lines[0]}\n" if len(left) < COLUMN else f"{left}\n{' ' * COLUMN}{lines[0]}\n"
    return head + "".join(f"{' ' * COLUMN}{line}\n" for line in lines[1:])
