"""The help text, made from the table of settings; and the version."""

from __future__ import annotations

from claudebox import __version__
from claudebox.features.table import SETTINGS
from claudebox.output.terminal import show
from claudebox.settings.table import GROUPS, Setting
from claudebox.settings.words import Request
from claudebox.text import fill

COLUMN = 30
COLUMN_OF_SHORT = 26
INDENT = 2
USAGE = "usage: claudebox [OPTIONS] [anything for claude]\n"
# It has to fit a screen of 24 lines, of which the shell needs one.
SHORT = """\
Claude Code in a box: this project, the system's programs, no keys or tokens.

{options}
All else goes to claude, and all after `--`. More: claudebox --help all
"""
WHOLE = """
Starts Claude Code in a box around the current directory. The box has this
project, the system's programs and claude; no keys, tokens or other projects.

{options}
Everything else goes to claude unchanged, as does everything after `--`:
  claudebox -p "fix the failing test"
  claudebox --continue
  claudebox mcp list
After a first word that may be a command of claude, such as `mcp`, an option of
claudebox is refused: put it first, or `--` if it is claude's.
  claudebox --network none mcp list
  claudebox -- mcp add shop --env PORT=8080 ./server

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


def show_help(request: Request) -> int:
    show(whole_help() if request.said else short_help())
    return 0


def show_version(request: Request) -> int:
    text = f"claudebox {__version__}\n"
    if request.json:
        from claudebox.output.as_json import dump

        text = dump({"version": __version__})
    show(text)
    return 0


def short_help() -> str:
    """The options that are used daily."""
    return USAGE + SHORT.format(options=_groups([one for one in SETTINGS if one.is_daily], is_short=True))


def whole_help() -> str:
    """Everything there is."""
    variables = [f"{variable}," for variable in SETTINGS.by_variable]
    keys = [f"{key}," for key in SETTINGS.by_key]
    width = max(len(path) for path, _ in FILES)
    statuses = "; ".join(f"{status} {meaning}" for status, meaning in EXIT_STATUSES[1:])
    return USAGE + WHOLE.format(
        options=_groups([one for one in SETTINGS if not one.in_files_only], is_short=False),
        variables=_lines([*variables, "NO_COLOR"]),
        files="\n".join(f"  {path:<{width}}  {meaning}" for path, meaning in FILES),
        keys=_lines([*keys[:-1], keys[-1].rstrip(",")]),
        statuses="\n".join(fill(f"Exit status: claude's own; {statuses}.".split(), 0)),
    )


def _groups(settings: list[Setting[object]], *, is_short: bool) -> str:
    """The options below what they are about."""
    rows = {group: [_row(one, is_short=is_short) for one in settings if one.group == group] for group in GROUPS}
    return ("" if is_short else "\n").join(f"{group}:\n{''.join(found)}" for group, found in rows.items() if found)


def _lines(words: list[str]) -> str:
    return "\n".join(f"  {line}" for line in fill(words, INDENT))


def _row(setting: Setting[object], *, is_short: bool) -> str:
    column = COLUMN_OF_SHORT if is_short else COLUMN
    names = f"{setting.short}, {setting.option}" if setting.short else setting.option
    left = f"  {names} {setting.metavar}".rstrip()
    lines = fill((setting.help.partition(";")[0] if is_short else setting.help).split(), column)
    head = f"{left:<{column}}{lines[0]}\n" if len(left) < column else f"{left}\n{' ' * column}{lines[0]}\n"
    return head + "".join(f"{' ' * column}{line}\n" for line in lines[1:])
