"""Shows a box that nobody has agreed to yet, and asks whether to start it."""

from __future__ import annotations

import os

from claudebox.agreement import News
from claudebox.model import Plan
from claudebox.problem import Problem
from claudebox.settings.words import Request
from claudebox.terminal import ask, can_ask, errors_height, errors_style, say
from claudebox.view.text import BOLD, DIM, LEFT_OUT, Style, escape

SHOW_ALL = "?"
OFFER = "(claudebox --setup offers a stricter box: login outside, listed hosts, review)"


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

        say(agreed + news_text(plan, news, style) + _how_to_see_all(style, asks=asks))
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


def _how_to_see_all(style: Style, *, asks: bool) -> str:
    from claudebox.view.first_screen import how_to_see_all

    return style.paint(how_to_see_all(style, asks=asks), DIM) + "\n"


def _require_yes(plan: Plan, news: News, style: Style) -> None:
    question = style.paint("Start? ", BOLD) + ("[y/N] " if news.is_grave else "[Y/n] ")
    while (answer := ask(question)) == SHOW_ALL:
        _show_all(plan, style)
    if answer not in (("y", "yes") if news.is_grave else ("y", "yes", "")):
        raise Problem("not started")


def _show_all(plan: Plan, style: Style) -> None:
    """Show the whole audit, in the user's pager if the terminal is one that a pager can use."""
    from claudebox.features.review.show import page
    from claudebox.view.audit import audit

    text = audit(plan, style)
    try:
        if os.environ.get("TERM", "dumb") != "dumb":
            page(text.splitlines(), plan.person.home)
            return
    except OSError:
        pass  # the answer comes from standard input, and there is no terminal of ours for a pager
    say(text)
