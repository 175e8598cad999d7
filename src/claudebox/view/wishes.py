"""Shows what a project's file asks for, and which profiles exist."""

from __future__ import annotations

from claudebox.model import Port
from claudebox.settings.table import BY_NAME
from claudebox.settings.values import EnvWish, MountWish, Profile, Statement, Value
from claudebox.state import SHOWN
from claudebox.view.text import BOLD, Style, escape, table_row

COLUMN = 25
PLACE = 21
YOUR_OWN = f"Your own: {SHOWN.profiles}/NAME.toml (or .json); its keys: --help all"


def wishes_text(wishes: tuple[Statement, ...], style: Style) -> str:
    lines = [style.paint("This project asks for more than it gets by itself:", BOLD)]
    for wish in wishes:
        words = [escape(_value_text(wish.value)), f"({escape(wish.value.origin.shown)})"]
        lines += table_row(f"+ {BY_NAME[wish.name].key}", words, COLUMN, style)
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


def profiles_text(profiles: list[Profile], style: Style) -> str:
    lines: list[str] = []
    for profile in profiles:
        lines += table_row(
            profile.name, [*escape(profile.description).split(), f"({escape(profile.file)})"], PLACE, style
        )
    lines += ["", YOUR_OWN]
    return "\n".join(lines) + "\n"
