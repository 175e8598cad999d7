"""What the user can set: the values, one by one, and all of them merged.

`types.py` says how a value is written; `table.py` has the settings of claudebox itself, and each feature has its own.
"""

from __future__ import annotations

from claudebox.model import Finding, Origin, Port
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from claudebox.settings.table import Setting

    T = TypeVar("T")

PROJECT_FILE = ".claudebox.toml"


class MountWish(Record):
    """A mount that somebody asked for, with the paths as they were written."""

    access: str
    source: str
    destination: str  # "" means the same path as on the host
    origin: Origin
    is_new: bool = False  # a file that will be made before the box starts
    is_optional: bool = False  # the source may be missing


class EnvWish(Record):
    """A variable that somebody asked for. Without a value, it has the host's."""

    name: str
    value: str | None
    origin: Origin


class Word(Record):
    """A word that somebody wrote: a program, a profile, a path to hide, one of the choices of a setting."""

    text: str
    origin: Origin


class Amount(Record):
    text: str  # as it was written
    number: int  # bytes, processes, microseconds in each second, or what the broker counts
    origin: Origin
    of: str = ""  # what the broker counts


Value = MountWish | EnvWish | Word | Amount | Port


class Statement(Record):
    """One value that somebody gave to a setting. The value knows where it was written."""

    setting: Setting[object]
    value: Value


class Settings(Record):
    """The settings of all layers, merged. `settings[MEMORY]` is the value of one; each knows its origin."""

    values: dict[str, Any] = {}  # noqa: RUF012  (by `Setting.field`; nobody changes it)
    findings: tuple[Finding, ...] = ()  # about the files with settings

    def __getitem__(self, setting: Setting[T]) -> T:
        value: T = self.values.get(setting.field, setting.type.default)
        return value

    def having(self, setting: Setting[T], value: T) -> Settings:
        """The same settings with another value of this one."""
        return self.replace(values={**self.values, setting.field: value})

    def without(self, *settings: Setting[object]) -> Settings:
        """The same settings as if nobody had said these."""
        fields = {setting.field for setting in settings}
        return self.replace(values={field: value for field, value in self.values.items() if field not in fields})
