"""`~` and `$VAR` in the paths of files. On the command line the shell does it."""

from __future__ import annotations

from claudebox.host import Host
from claudebox.paths import expand_home
from claudebox.problem import Problem
from claudebox.settings import BY_NAME, MountWish, Named, Said


def expanded(said: Said, host: Host) -> Said:
    value = said.value
    if isinstance(value, MountWish):
        source = expand(value.source, value.origin.rule, host.environ)
        destination = expand(value.destination, value.origin.rule, host.environ)
        return said.replace(value=value.replace(source=source, destination=destination))
    is_program = BY_NAME[said.name].is_users
    if isinstance(value, Named) and (is_program or said.name in ("hide", "path")):
        path = expand(value.path, value.origin.rule, host.environ)
        return said.replace(value=value.replace(path=expand_home(path, host.person.home) if is_program else path))
    return said


def expand(text: str, rule: str, environ: dict[str, str]) -> str:
    """`$NAME` and `${NAME}`; `~` is left to whoever knows whose home it is."""
    before, dollar, rest = text.partition("$")
    if not dollar:
        return text
    if rest.startswith("{"):
        name, _, rest = rest[1:].partition("}")
    else:
        length = next((at for at, letter in enumerate(rest) if not (letter.isalnum() or letter == "_")), len(rest))
        name, rest = rest[:length], rest[length:]
    if name not in environ:
        raise Problem(f"{rule}: ${name} is not set", f"export {name}=…, or write the path out")
    return before + environ[name] + expand(rest, rule, environ)
