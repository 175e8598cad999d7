"""Gathers the settings from every place where they can be. Each layer overrides the one before it:

built-in ← ~/.claudebox/config.toml ← profiles ← the project's .claudebox.toml ← CLAUDEBOX_* variables ← options
"""

from __future__ import annotations

from claudebox.host import Host
from claudebox.host.tree import OTHERS_CAN_WRITE, Tree
from claudebox.model import Finding, Preparation
from claudebox.problem import Problem, quote
from claudebox.record import Record
from claudebox.settings.table import BY_NAME
from claudebox.settings.values import PROJECT_FILE, Settings, Statement, Word, from_options, from_variables, merge
from claudebox.settings.words import Request
from claudebox.state import find_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.settings.files.project import ProjectFile

DEFAULT_PROFILE = "default"


class Layers(Record):
    """The settings of all layers, and what the project asks for in addition."""

    settings: Settings
    project: ProjectFile | None


def gather(host: Host, request: Request, decided: ProjectFile | None = None) -> Layers:
    """`decided` is the project's file as the user was just asked about it. The one on disk may have changed since."""
    variables, options = from_variables(host.environ), from_options(request.said)
    own, to_keep = _own_files(host, variables, options)
    project = decided
    if project is None and host.tree.lstat(f"{host.cwd}/{PROJECT_FILE}") is not None:
        from claudebox.settings.files.project import read_project_file

        project = read_project_file(host, merge(own))
    if project is not None:
        own += _in_force(host, project)
    settings = merge([*own, *variables, *options])
    return Layers(settings.replace(findings=_findings(project), preparations=tuple(to_keep)), project)


def _findings(project: ProjectFile | None) -> tuple[Finding, ...]:
    if project is None or not project.wishes or project.granted:
        return ()
    names = ", ".join(dict.fromkeys(BY_NAME[wish.name].key or "mounts" for wish in project.wishes))
    why = "you said no (change the file to be asked again)" if project.granted is False else "nobody was asked yet"
    return (Finding(Finding.NOTE, PROJECT_FILE, f"asks for more ({names}) and does not get it: {why}"),)


def _in_force(host: Host, project: ProjectFile) -> list[Statement]:
    """What counts of the project's file, which may name profiles, too.

    Variables are replaced only in what the user granted. What counts without a yes must not depend on their values: the
    agent would see the difference.
    """
    from claudebox.settings.files.profiles import expanded, read_profiles

    granted = project.wishes if project.granted else ()
    named = [one.value for one in granted if one.name == "profile" and isinstance(one.value, Word)]
    rest = (expanded(one, host) for one in granted if one.name != "profile")
    return [*read_profiles(host, named), *project.tightening, *rest]


def _own_files(
    host: Host, variables: list[Statement], options: list[Statement]
) -> tuple[list[Statement], list[Preparation]]:
    """The settings in the user's own files. Most people have none: then nothing more is imported."""
    state = find_state(host)
    _refuse_open(host.tree, state.directory)
    named = [one for one in options if one.name == "profile"] or [one for one in variables if one.name == "profile"]
    has_files = bool(named) or any(host.tree.lstat(path) is not None for path in (state.config, state.profiles))
    if not has_files:
        return [], []
    from claudebox.settings.files.profiles import read_own_files

    return read_own_files(host, [one.value for one in named if isinstance(one.value, Word)])


def _refuse_open(tree: Tree, directory: str) -> None:
    """Refuse a directory of settings that other users can write."""
    status = tree.status(directory)
    if status is not None and tree.is_dir(directory) and status.st_mode & OTHERS_CAN_WRITE:
        what = f"others can write {directory}, where your settings are"
        raise Problem(what, f"see that all in it is yours, then: chmod o-w {quote(directory)}")
