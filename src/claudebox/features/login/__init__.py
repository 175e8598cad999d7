"""Claude's login in the box (`--auth passthrough`), in a directory that a process beside the box keeps up to date.

That process may die without any harm to the box.
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
# A login is good for all that the account may do, whatever Claude's settings switch off.
LEFT = tuple(
    "could write to your other sessions: off by settings that the box can change; impossible with --auth broker".split()
)


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
            # Not BESIDE: the process that keeps it in step may die without harm to the box.
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
        from claudebox.output.section import NETWORK, Row, Section

        login = plan.get(Login)
        if login is None:
            return (Section(key="login"),)
        enters = f"{shorten_home(login.file, plan.person.home)} enters: Claude can use it" if login.file else ""
        left = Section(title=NETWORK, lines=(("login", LEFT),) if login.file else ())
        return (Section(rows=(Row("login", words=enters),), key="login", value={"file": login.file or None}), left)

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
    from claudebox.servers import is_current

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
