"""Claude's login in the box (`--auth passthrough`), in a directory with which the host's copy is kept in step.

The process that does so runs beside the box, not above it: it may die without any harm to the box.
"""

from __future__ import annotations

import os

from claudebox.errors import Problem
from claudebox.facts import Contribution, Draft, Facts, find_login
from claudebox.features import Feature
from claudebox.model import RW, EnvVar, Grant, Launch, Login, Mount, Origin, Plan, Preparation, Step
from claudebox.paths import shorten_home
from claudebox.settings.table import AUTH, PASSTHROUGH
from claudebox.state import LOGIN_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claudebox.output.section import Section

SHARED = Origin.of_option("--auth", "Claude's login, shared by the boxes of this project")
VARIABLE = Origin.of_rule("claude", "so that Claude finds its home and leaves its installation alone")


class LoginFeature(Feature):
    def applies(self, facts: Facts) -> bool:
        return facts.install is not None and facts.settings[AUTH].text == PASSTHROUGH

    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        # The login has a directory of its own: Claude replaces the file by rename, which no mount of a file survives.
        login = find_login(facts)
        directory = EnvVar("CLAUDE_SECURESTORAGE_CONFIG_DIR", facts.claude.auth_place, VARIABLE, is_ours=True)
        return Contribution(
            mounts=(Mount(RW, facts.claude.auth_place, SHARED, source=facts.claude.instance.auth),),
            variables=(directory,),
            steps=(Step(Step.BEFORE, self),),
            grants=grants(login, facts.home),
            records=(login,),
        )

    def complete(self, facts: Facts, draft: Draft, plan: Plan) -> Plan:
        """Prepare the login after Claude's own home, in which the link lies."""
        home = facts.claude
        directory = Preparation(Preparation.DIRECTORY, home.instance.auth)
        # For a Claude that does not know the variable, and for people who look where the file usually is.
        link = Preparation(Preparation.LINK, home.instance.own_login, f"{home.auth_place}/{LOGIN_FILE}".encode())
        return plan.replace(preparations=(*plan.preparations, directory, link))

    def show(self, plan: Plan) -> tuple[Section, ...]:
        from claudebox.output.section import Row, Section

        login = plan.get(Login)
        if login is None:
            return (Section(key="login"),)
        enters = f"{shorten_home(login.file, plan.person.home)} enters: Claude can use it" if login.file else ""
        return (Section(rows=(Row("login", words=enters),), key="login", value={"file": login.file or None}),)

    def before(self, launch: Launch) -> None:
        login = launch.get(Login)
        if login.file:
            start_copying(login)
        else:
            forget_if_gone(login)


LOGIN = LoginFeature()


def grants(login: Login, home: str) -> tuple[Grant, ...]:
    return (Grant((("login", login.file),), "login", (shorten_home(login.file, home),)),) if login.file else ()


def start_copying(login: Login) -> None:
    from claudebox.process.companion import start_beside, watch_own_end

    if not is_current(login):
        from claudebox.features.login.copying import copy_newer

        try:
            copy_newer(login)
        except OSError as error:
            raise Problem(f"cannot hand over Claude's login: {error.strerror}", "without it: --auth none") from None
    watch = watch_own_end("to keep Claude's login up to date", "--auth none")

    def keep(_: int) -> None:
        from claudebox.features.login.copying import copy_until_end

        copy_until_end(login, watch)

    os.close(start_beside(keep, (watch,)))


def forget_if_gone(login: Login) -> None:
    """Log the boxes out if the file that their login came from is no longer there: the user logged out."""
    kept = login.instance
    for path in (kept.auth_login, kept.auth_note) if os.path.exists(kept.auth_note) else ():
        try:
            os.unlink(path)
        except OSError:
            pass


def is_current(login: Login) -> bool:
    """Whether the boxes' copy was made from, or into, the file as it is now. Most launches find it so."""
    kept = login.instance
    return os.path.islink(kept.own_login) and stamp(kept.auth_login) != "" and noted(login)[:1] == [stamp(login.file)]


def noted(login: Login) -> list[str]:
    """The stamp of the host's file when it was last in step, and which logins it held then or was about to hold."""
    try:
        with open(login.instance.auth_note) as note:
            return note.read().split("\n")
    except (OSError, ValueError):
        return []


def stamp(path: str) -> str:
    """What changes whenever a file does; "" if there is no file."""
    try:
        status = os.lstat(path)
    except OSError:
        return ""
    return f"{path} {status.st_ino} {status.st_mtime_ns} {status.st_size}"
