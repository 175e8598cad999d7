"""Asks before a start: whether a project gets what its file asks for, and whether a new box may start."""

from __future__ import annotations

import os

from claudebox.agreement import News
from claudebox.errors import Declined, Problem
from claudebox.features.table import SETTINGS
from claudebox.files import prepare
from claudebox.host import Host
from claudebox.model import Finding, Plan, Port
from claudebox.plan import make_plan
from claudebox.settings import PROJECT_FILE, EnvWish, MountWish, Statement, Value
from claudebox.settings.gather import Layers, gather
from claudebox.settings.words import Request
from claudebox.terminal import ask, can_ask, errors_height, errors_style, say, says_yes
from claudebox.text import BOLD, DIM, LEFT_OUT, Style, escape, table_row

SHOW_ALL = "?"
COLUMN = 25
OFFER = "(claudebox --setup offers a stricter box: login outside, listed hosts, review)"


def ask_about_project(host: Host, request: Request, layers: Layers) -> Layers:
    """Ask whether the project gets what its file asks for. Without an answer, it gets nothing."""
    project = layers.project
    if project is None or request.yes or not can_ask():
        return layers
    try:
        make_plan(host, request, gather(SETTINGS, host, request, project.replace(granted=True)).settings)
    except Problem as problem:
        # Nobody can say yes to that, so it counts as a no until the file changes.
        note = Finding(Finding.NOTE, PROJECT_FILE, f"asks for something impossible and gets nothing: {problem.message}")
        return layers.replace(settings=layers.settings.replace(findings=(note,)))
    from claudebox.settings.files import note_decision

    say(wishes_text(project.wishes, errors_style()))
    granted = says_yes("Let it have these, as long as the file stays as it is? [y/N] ")
    prepare(note_decision(host, project.content_id, granted=granted))
    return gather(SETTINGS, host, request, project.replace(granted=granted))


def wishes_text(wishes: tuple[Statement, ...], style: Style) -> str:
    lines = [style.paint("This project asks for more than it gets by itself:", BOLD)]
    for wish in wishes:
        words = [escape(_value_text(wish.value)), f"({escape(wish.value.origin.shown)})"]
        lines += table_row(f"+ {wish.setting.key}", words, COLUMN, style)
    return "\n".join(lines) + "\n"


def _value_text(value: Value) -> str:
    if isinstance(value, MountWish):
        place = f" as {value.destination}" if value.destination else ""
        return f"{value.source}{place}, {'writable' if value.access == 'rw' else 'read-only'}"
    if isinstance(value, EnvWish):
        return value.name if value.value is None else f"{value.name}={value.value}"
    if isinstance(value, Port):
        return str(value.host) if value.host == value.box else f"{value.host}:{value.box}"
    return value.text


def ask_to_start(plan: Plan, news: News, agreed: str, request: Request) -> None:
    """Show the box and ask, unless `--yes` says not to. Raises a Problem unless the answer is yes.

    `agreed` is one line about what was agreed to before; "" if nothing was.
    """
    asks = not request.yes and can_ask()
    style = errors_style()
    if request.quiet and not asks:
        # Nobody has seen these yet, and nobody will be asked.
        say("".join(f"claudebox: {escape(finding.subject)}: {escape(finding.text)}\n" for finding in news.flagged))
    elif agreed and request.yes and news.is_command_alone:
        # Who says yes in advance has just typed the command.
        say(f"{agreed.rstrip()}; another command (--audit)\n")
    elif agreed:
        from claudebox.view.audit import news_text
        from claudebox.view.first_screen import how_to_see_all

        hint = style.paint(how_to_see_all(style, asks=asks), DIM)
        say(f"{agreed}{news_text(plan, news, style)}{hint}\n")
    elif can_ask():
        from claudebox.view.first_screen import first_screen

        offer = style.paint(OFFER, DIM) + "\n" if asks and is_first_use(plan) else ""
        say(first_screen(plan, style, errors_height() - len(offer.splitlines()), asks=asks) + offer)
    else:
        from claudebox.view.audit import audit

        # All of it, although it is long: what entered is found in a log afterwards, where nobody can ask for the rest.
        say(audit(plan, style) + (f"({LEFT_OUT})\n" if request.yes else ""))
    if not request.yes:
        _require_yes(plan, news, style)


def is_first_use(plan: Plan) -> bool:
    """Whether nothing is kept yet for any project of this user: who has used it before has made their choice."""
    return plan.state is not None and not os.path.lexists(os.path.dirname(plan.state.directory))


def _require_yes(plan: Plan, news: News, style: Style) -> None:
    question = style.paint("Start? ", BOLD) + ("[y/N] " if news.is_grave else "[Y/n] ")
    while (answer := ask(question)) == SHOW_ALL:
        _show_all(plan, style)
    if answer not in (("y", "yes") if news.is_grave else ("y", "yes", "")):
        raise Declined("nothing was started")


def _show_all(plan: Plan, style: Style) -> None:
    """Show the whole audit, in the user's pager if the terminal is one that a pager can use."""
    from claudebox.terminal import page
    from claudebox.view.audit import audit

    text = audit(plan, style)
    try:
        if os.environ.get("TERM", "dumb") != "dumb":
            page(text.splitlines(), plan.person.home)
            return
    except OSError:
        pass  # the answer comes from standard input, and there is no terminal of ours for a pager
    say(text)
