"""`--import-history`: copies the conversations that Claude had in this project outside of boxes into its state.

The copy goes where agents write, so nothing there is followed or replaced: a conversation that a box has already, and
may have gone on with, stays as it is.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem, suppress
from claudebox.facts import find_claude_home, find_claudes_own_place
from claudebox.features.system import box_person
from claudebox.files import NO_REPLACE, Open, Replacement, copy_content, open_below, open_directory, open_file, prepare
from claudebox.files import rename as rename_file
from claudebox.host import read_host
from claudebox.host.secrets import check_project, secret_places
from claudebox.model import Preparation
from claudebox.output.terminal import show
from claudebox.paths import shorten_home
from claudebox.state import Instance, check_state, find_state
from claudebox.state.conversations import PROJECTS, conversations, directories
from claudebox.state.memory import path_note
from claudebox.state.reach import own_instance, reach_of
from claudebox.text import counted, escape


def import_history() -> int:
    host = read_host()
    tree, person, all_projects, instance = host.tree, host.person, find_state(host), own_instance(host)
    check_project(host.cwd, person.homes, secret_places(tree, person.homes, host.environ, host.cwd))
    check_state(tree, all_projects, instance, person.uid)
    claude = find_claude_home(all_projects, instance, box_person(person), host.environ)
    users = find_claudes_own_place(tree, claude, host.cwd).path
    if reach_of(host).leads_through(f"{users}/{PROJECTS}"):
        raise Problem(f"an agent can have written what is in {users}/{PROJECTS}", "keep it where no agent works")
    found = {
        f"{place}/{name}": name
        for place in directories(tree, users, host.cwd)
        for name in conversations(tree, place, host.cwd)
    }
    if found:
        prepare((Preparation(Preparation.DIRECTORY, instance.claude), path_note(instance.project, instance.root)))
    copied = sum(_copy(path, instance) for path in found)
    show(_said(len(found), copied, escape(shorten_home(f"{users}/{PROJECTS}", person.home))))
    return 0


def _said(found: int, copied: int, place: str) -> str:
    if not found:
        return f"There is no conversation of this project in {place}: nothing was copied.\n"
    if not copied:
        return f"Boxes of this project have {counted(found, 'conversation')} of {place} already: nothing was copied.\n"
    already = f", beside {found - copied} that they had already" if copied < found else ""
    return (
        f"{counted(copied, 'conversation')} copied: boxes of this project have them now{already}.\n"
        "To choose one:\nclaudebox --resume\n"
    )


def _copy(path: str, instance: Instance) -> bool:
    """Copy one conversation, with its time, by which Claude sorts them. Returns whether it was not there yet."""
    directory, name = os.path.split(path)
    below = f"{PROJECTS}/{os.path.basename(directory)}"
    try:
        with (
            Open(open_directory(directory)) as here,
            Open(open_file(here, name)) as source,
            Open(open_directory(instance.claude)) as state,
            Open(open_below(state, below, makes=True)) as there,
        ):
            status = os.fstat(source)
            with suppress(FileExistsError), Replacement(name, there) as new:
                copy_content(source, new.descriptor, status.st_size)
                os.utime(new.descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))
                rename_file(there, new.temporary, there, name, NO_REPLACE)
                return True
            return False
    except OSError as error:
        hint = "see whether the disk is full, and whose the state is:\n      claudebox --instances"
        raise Problem(f"cannot copy {path}: {error.strerror}", hint) from None
