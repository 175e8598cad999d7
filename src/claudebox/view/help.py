"""The help text, from the table of settings."""

from __future__ import annotations

from claudebox.settings import SETTINGS, Setting
from claudebox.view.text import fill

COLUMN = 30
INDENT = 2
HEAD = """\
usage: claudebox [OPTIONS] [anything for claude]

Starts Claude Code in a box around the current directory. The box has this
project, the system's programs and claude; no keys, tokens, other projects.
"""
TAIL = """\
Everything else goes to claude unchanged, and all after `--`:
  claudebox -p "fix the failing test"
  claudebox --continue
  claudebox mcp list

Environment:
  CLAUDEBOX_EXTRA_ENV=A,B     pass these variables too
{variables}

Exit status: claude's own; 125 claudebox failed or refused; 126 claude cannot
be executed; 127 claude was not found; 128+n ended by signal n.
"""


def help_text() -> str:
    rows = "".join(_row(setting) for setting in SETTINGS if not setting.in_files_only)
    variables = [f"{setting.variable}," for setting in SETTINGS if setting.variable]
    tail = TAIL.format(variables="\n".join(f"  {line}" for line in fill([*variables, "NO_COLOR"], INDENT)))
    return f"{HEAD}\nOptions:\n{rows}\n{tail}"


def _row(setting: Setting) -> str:
    names = f"{setting.short}, {setting.option}" if setting.short else setting.option
    left = f"  {names} {setting.metavar}".rstrip()
    lines = fill(setting.help.split(), COLUMN)
    head = f"{left:<{COLUMN}}{lines[0]}\n" if len(left) < COLUMN else f"{left}\n{' ' * COLUMN}{lines[0]}\n"
    return head + "".join(f"{' ' * COLUMN}{line}\n" for line in lines[1:])
