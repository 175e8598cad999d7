"""The manual page, made from the table of settings, in the macros of man(7)."""

from __future__ import annotations

from claudebox import __version__
from claudebox.settings.table import BY_KEY, LIST, SETTINGS, Setting
from claudebox.view.help import EXIT_STATUSES, FILES
from claudebox.view.text import fill

HEAD = """\
.\\" Written by claudebox --man from the table of settings.
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
    offered = [setting for setting in SETTINGS if not setting.in_files_only]
    with_variable = [setting for setting in SETTINGS if setting.variable]
    return "".join(
        (
            HEAD.format(version=__version__),
            ".SH OPTIONS\n",
            *(_option(setting) for setting in offered),
            ".SH ENVIRONMENT\n",
            *(_entry(_bold(setting.variable), _of_variable(setting)) for setting in with_variable),
            _entry(_bold("NO_COLOR"), "if it is set, nothing is coloured"),
            ".SH FILES\n",
            *(_entry(_bold(path), text) for path, text in FILES),
            f".PP\n{FILES_TEXT}",
            ".SS Keys of these files\n",
            *(_key(setting) for setting in BY_KEY.values()),
            ".SH EXIT STATUS\n",
            *(_entry(_bold(status), text) for status, text in EXIT_STATUSES),
            TAIL,
        )
    )


def _option(setting: Setting) -> str:
    names = ", ".join(_bold(name) for name in (setting.short, setting.option) if name)
    metavar = f" {_italic(setting.metavar)}" if setting.metavar else ""
    return _entry(names + metavar, setting.help)


def _of_variable(setting: Setting) -> str:
    means = f"as the key {setting.key}" if setting.in_files_only else f"as {setting.option}"
    return f"{means}, with commas between several" if setting.kind == LIST else means


def _key(setting: Setting) -> str:
    written = " or ".join(f'"{choice}"' for choice in setting.choices) or setting.shape
    return _entry(_bold(setting.key), f"{setting.help_in_files or setting.help} ({written})")


def _entry(head: str, text: str) -> str:
    return f".TP\n{head}\n{_plain(text)}\n"


def _bold(text: str) -> str:
    return f"\\fB{_escape(text)}\\fR"


def _italic(text: str) -> str:
    return f"\\fI{_escape(text)}\\fR"


def _plain(text: str) -> str:
    lines = fill(_escape(text).split(), 2)
    # A line that begins with one of these is a request.
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)


def _escape(text: str) -> str:
    for character, code in (("\\", "\\e"), ("-", "\\-"), ("~", "\\(ti"), ("^", "\\(ha"), ("…", "...")):
        text = text.replace(character, code)
    return text
