"""Shares Claude's login with the boxes of a project: in a directory that a process beside the box keeps up to date.

That process may die without any harm to the box.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts, find_login
from claudebox.features.login import LOGIN
from claudebox.model import RW, EnvVar, Grant, Launch, Login, Mount, Origin, Plan, Preparation, Step
from claudebox.paths import shorten_home
from claudebox.process.companion import start_beside, watch_own_end
from claudebox.servers import is_current
from claudebox.state import LOGIN_FILE

AUTH = Origin.of_option("--auth", "Claude's login, shared by the boxes of this project")
VARIABLE = Origin.of_rule("claude", "so that Claude finds its home and leaves its installation alone")


def decide(facts: Facts, _: Draft) -> Contribution:
    # The login has a directory of its own: Claude replaces the file by rename, which no mount of a file survives.
    login = find_login(facts)
    directory = EnvVar("CLAUDE_SECURESTORAGE_CONFIG_DIR", facts.claude.auth_place, VARIABLE, is_ours=True)
    return Contribution(
        mounts=(Mount(RW, facts.claude.auth_place, AUTH, source=facts.claude.instance.auth),),
        variables=(directory,),
        # Not BESIDE: the process that keeps it in step may die without harm to the box.
        steps=(Step(Step.BEFORE, LOGIN),),
        grants=grants(login, facts.home),
        records=(login,),
    )


def grants(login: Login, home: str) -> tuple[Grant, ...]:
    return (Grant((("login", login.file),), "login", (shorten_home(login.file, home),)),) if login.file else ()


def complete(facts: Facts, plan: Plan) -> Plan:
    """Prepare the login after Claude's own home, in which the link lies."""
    home = facts.claude
    directory = Preparation(Preparation.DIRECTORY, home.instance.auth)
    # For a Claude that does not know the variable, and for people who look where the file usually is.
    link = Preparation(Preparation.LINK, home.instance.own_login, f"{home.auth_place}/{LOGIN_FILE}".encode())
    return plan.replace(preparations=(*plan.preparations, directory, link))


def before(launch: Launch) -> None:
    login = launch.get(Login)
    if login.file:
        start_copying(login)
    else:
        forget_if_gone(login)


def start_copying(login: Login) -> None:
    if not is_current(login):
        from claudebox.servers.login import copy_newer

        try:
            copy_newer(login)
        except OSError as error:
            raise Problem(f"cannot hand over Claude's login: {error.strerror}", "without it: --auth none") from None
    end = watch_own_end("to keep Claude's login up to date", "--auth none")

    def copy(_: int) -> None:
        from claudebox.servers.login import run

        run(login, end)

    os.close(start_beside(copy, (end,)))


def forget_if_gone(login: Login) -> None:
    """Log the boxes out if the file that their login came from is no longer there: the user logged out."""
    kept = login.instance
    for path in (kept.auth_login, kept.auth_note) if os.path.exists(kept.auth_note) else ():
        try:
            os.unlink(path)
        except OSError:
            pass
