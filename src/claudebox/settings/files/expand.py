"""`~` and `$VAR` in the paths of files. On the command line the shell does it."""

from __future__ import annotations

from claudebox.host import Host
from claudebox.paths import expand_home
from claudebox.problem import Problem
from claudebox.settings.table import BY_NAME
from claudebox.settings.values import (
    MountWish,
    Named,
    Said,
)


def expanded(said: Said, host: Host) -> Said:
    value = said.value
    if isinstance(value, MountWish):
        source = expand(value.source, value.origin.shown, host.environ)
        destination = expand(value.destination, value.origin.shown, host.environ)
        return said.replace(value=value.replace(source=source, destination=destination))
    is_program = BY_NAME[said.name].is_users
    if isinstance(value, Named) and (is_program or said.name in ("hide", "path")):
        path = expand(value.path, value.origin.shown, host.environ)
        return said.replace(value=value.replace(path=expand_home(path, host.person.home) if is_program else path))
    return said


def expand(text: str, rule: str, environ: dict[str, str]) -> str:
    """`$NAME` and `${NAME}`; `~` is left to whoever knows whose home it is."""
    first, *others = text.split("$")
    pieces = [first]
    for other in others:
        if other.startswith("{"):
            name, _, rest = other[1:].partition("}")
        else:
            end = next((at for at, letter in enumerate(other) if not (letter.isalnum() or letter == "_")), len(other))
            name, rest = other[:end], other[end:]
        if name not in environ:
            raise Problem(f"{rule}: ${name} is not set", f"export {name}=…, or write the path out")
        pieces += [environ[name], rest]
    return "".join(pieces)
