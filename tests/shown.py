"""What is shown of a Plan, with the sections of all features."""

from claudebox.model import Plan
from claudebox.output import as_json, shell
from claudebox.output import audit as whole
from claudebox.output import first_screen as screen
from claudebox.output import sandbox_md as markdown
from claudebox.plan import sections_of
from claudebox.text import Style


def audit(plan: Plan, style: Style) -> str:
    return whole.audit(plan, sections_of(plan), style)


def first_screen(plan: Plan, style: Style, height: int, *, asks: bool) -> str:
    return screen.first_screen(plan, sections_of(plan), style, height, asks=asks)


def audit_json(plan: Plan) -> str:
    return as_json.audit_json(plan, sections_of(plan))


def dry_run_json(plan: Plan) -> str:
    return as_json.dry_run_json(plan, sections_of(plan))


def sandbox_md(plan: Plan) -> str:
    return markdown.sandbox_md(plan, sections_of(plan))


def shell_command(plan: Plan) -> str:
    return shell.shell_command(plan, sections_of(plan))
