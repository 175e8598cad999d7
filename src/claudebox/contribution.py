"""What a feature gives to the box, and the draft that collects what all of them give."""

from __future__ import annotations

from claudebox.model import Directory, EnvVar, Finding, Mount, Preparation, Question, SecretPlace, Step
from claudebox.record import Record
from claudebox.settings.values import MountWish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Contribution(Record):
    """What one feature gives to the box. Every field may be empty."""

    mounts: tuple[Mount, ...] = ()
    hides: tuple[Mount, ...] = ()  # they beat every mount
    wishes: tuple[MountWish, ...] = ()  # mounts that are judged as if the user had asked for them
    wished: tuple[Mount, ...] = ()  # those of the mounts that somebody asked for
    pins: tuple[str, ...] = ()  # paths in the box whose directories must stay where they are
    variables: tuple[EnvVar, ...] = ()
    kept_out: tuple[tuple[str, str], ...] = ()  # variables that may not enter, whoever asks, each with the reason
    path: tuple[Directory, ...] = ()
    wrapper: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    told: tuple[str, ...] = ()  # sentences for the agent
    preparations: tuple[Preparation, ...] = ()
    shown_places: tuple[str, ...] = ()  # secret places that the feature shows on purpose
    steps: tuple[Step, ...] = ()
    unknown: tuple[Question, ...] = ()
    decided: tuple[tuple[str, Any], ...] = ()  # fields of the Plan that this feature alone decides


class Draft:
    """What the features have given so far. Each one sees what those before it in the table gave."""

    def __init__(self) -> None:
        self.mounts: list[Mount] = []
        self.hides: list[Mount] = []
        self.wishes: list[MountWish] = []
        self.wished: list[Mount] = []
        self.pins: list[str] = []
        self.variables: list[EnvVar] = []
        self.kept_out: list[tuple[str, str]] = []
        self.path: list[Directory] = []
        self.wrapper: list[str] = []
        self.findings: list[Finding] = []
        self.told: list[str] = []
        self.preparations: list[Preparation] = []
        self.shown_places: list[str] = []
        self.steps: list[Step] = []
        self.unknown: list[Question] = []
        self.decided: list[tuple[str, Any]] = []

    def add(self, contribution: Contribution) -> None:
        for name, values in contribution.__dict__.items():
            if values:
                getattr(self, name).extend(values)

    @property
    def search_path(self) -> tuple[str, ...]:
        """The directories in which the box looks for programs, in order."""
        in_order = sorted(self.path, key=lambda directory: directory.rank)
        return tuple(dict.fromkeys(directory.path for directory in in_order))

    def hidden_places(self, places: tuple[SecretPlace, ...]) -> tuple[SecretPlace, ...]:
        """The secret places, without those that a feature shows on purpose."""
        return tuple(place for place in places if place.path not in self.shown_places)
