"""The project's own file, .claudebox.toml.

The agent can write it, so by itself it may only take something away. What it would add needs the user's yes, which is
valid only for this content in this project.
"""

from __future__ import annotations

from claudebox.errors import Problem, quote
from claudebox.host import Host
from claudebox.host.tree import sha256
from claudebox.model import Preparation
from claudebox.record import Record
from claudebox.settings.contents import said_in
from claudebox.settings.documents import parse
from claudebox.settings.table import BY_NAME, VALUE
from claudebox.settings.values import PROJECT_FILE, Settings, Statement, Word
from claudebox.state import find_state, memory
from claudebox.state.memory import Form

FORM = Form("What you said about settings of projects. Remove this file to be asked again.")
GRANTED, REFUSED = "yes", "no"
MOST_DECISIONS = 1000  # older ones are forgotten, and the user is asked again
MOST_SETTINGS = 500  # more would keep the launch busy, and nobody would read them


class ProjectFile(Record):
    """What the project's file says, and which part of it counts."""

    tightening: tuple[Statement, ...]
    wishes: tuple[Statement, ...]
    content_id: str  # names this content in this project
    granted: bool | None  # None: nobody was asked yet

    @property
    def is_undecided(self) -> bool:
        return bool(self.wishes) and self.granted is None


def read_project_file(host: Host, below: Settings) -> ProjectFile:
    """Read the project's file. `below` has the user's own settings, which the project may lower."""
    path = f"{host.cwd}/{PROJECT_FILE}"
    content = host.tree.read_plain(path)
    if content is None:
        raise Problem(
            f"{path} is not a plain file that can be read",
            f"a symlink is not followed there: use a copy; or, if an agent left it:\n      rm -r {quote(path)}",
        )
    said = said_in(parse(content, PROJECT_FILE, is_json=False, is_project=True))
    if len(said) > MOST_SETTINGS:
        raise Problem(
            f"{path} asks for {len(said)} things", f"no more than {MOST_SETTINGS}: hide directories, not files"
        )
    tightening = tuple(one for one in said if _tightens(one, below))
    for one in tightening:
        if isinstance(one.value, Word) and "$" in one.value.text:
            raise Problem(f"{one.value.origin.shown}: a project's file hides nothing by variable", "write the path out")
    wishes = tuple(one for one in said if not _tightens(one, below))
    content_id = sha256(host.cwd.encode(errors="surrogateescape") + b"\0" + content)
    granted = decisions(host).get(content_id) if wishes else None
    return ProjectFile(tightening, wishes, content_id, granted)


def _tightens(said: Statement, below: Settings) -> bool:
    setting = BY_NAME[said.name]
    known = getattr(below, setting.key) if setting.kind == VALUE else None
    return bool(setting.tightens or setting.choices) and setting.type.lowers(said.value, known)


def decisions(host: Host) -> dict[str, bool]:
    """What the user decided about such files, by `content_id`. If the memory is damaged, nothing was decided."""
    recalled = memory.recall(host.tree, find_state(host).decisions, FORM, host.person.uid)
    words = [line.partition(" ") for line in recalled.lines]
    return {content_id: said == GRANTED for said, _, content_id in words if said in (GRANTED, REFUSED)}


def note_decision(host: Host, content_id: str, *, granted: bool) -> tuple[Preparation, ...]:
    """The preparations that note a decision, beside those about other files."""
    others = {name: value for name, value in decisions(host).items() if name != content_id}
    latest = list({**others, content_id: granted}.items())[-MOST_DECISIONS:]
    lines = [f"{GRANTED if value else REFUSED} {name}" for name, value in latest]
    return memory.note_with_directory(find_state(host).decisions, FORM, lines)
