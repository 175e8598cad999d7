"""The login of several projects and of the host, when all of them renew it: none is ever lost."""

import contextlib
import json
import os
import random
import threading
import time
from pathlib import Path

import pytest

from claudebox.model import Login
from claudebox.servers.login import SOONER_AT_MOST, copy_newer
from claudebox.state import State
from claudebox.state.login import Busy, storage_lock
from patience import PATIENCE

pytestmark = pytest.mark.req("AUTH-01")
HOUR = 3600 * 1000


def login_of(home: Path, project: str) -> Login:
    kept = State(str(home))
    claude, instance = home / ".claude", kept.instance(project)
    for directory in (claude, Path(instance.auth), Path(instance.claude)):
        directory.mkdir(parents=True, exist_ok=True)
    return Login(str(claude / ".credentials.json"), str(claude), kept, instance, "/run/auth")


def credentials(number: int) -> str:
    """The login with this number. A later one is good for longer."""
    moment = int(time.time() * 1000) + HOUR + number
    login = {"accessToken": f"a{number}", "refreshToken": f"r{number}", "expiresAt": moment}
    return json.dumps({"claudeAiOauth": login})


def number_in(path: str) -> int:
    """Which login a file holds; -1 if there is none."""
    try:
        return int(json.loads(Path(path).read_text())["claudeAiOauth"]["refreshToken"][1:])
    except (OSError, ValueError, KeyError):
        return -1


def store(path: str, text: str) -> None:
    """As Claude does: by a rename."""
    new = Path(f"{path}.{threading.get_ident()}")
    new.write_text(text)
    new.rename(path)


class Server:
    """Renews a login: each refresh token is good for one use."""

    def __init__(self) -> None:
        self.current = 0
        self.lock = threading.Lock()

    def renew(self, number: int) -> int:
        """The next login, or -1 if this one was used before."""
        with self.lock:
            if number != self.current:
                return -1
            self.current += 1
            return self.current


def renew(server: Server, file: str, locks: str) -> bool:
    """What Claude does with its file, in a box or on the host."""
    new = server.renew(number_in(file))
    if new < 0:
        return False
    with contextlib.suppress(Busy), storage_lock(locks, PATIENCE):
        store(file, credentials(new))
    return True


def test_login_goes_from_one_project_to_the_host_and_to_the_others(tmp_path: Path) -> None:
    logins = [login_of(tmp_path, f"/{name}") for name in "abc"]
    Path(logins[0].file).write_text(credentials(0))
    for login in logins:
        copy_newer(login)
    store(logins[1].instance.auth_login, credentials(1))
    for login in (logins[1], logins[0], logins[2]):
        copy_newer(login, may_switch=False)
    assert [number_in(path) for path in (logins[0].file, *(one.instance.auth_login for one in logins))] == [1] * 4


def test_projects_have_no_directory_in_common(tmp_path: Path) -> None:
    first, second = login_of(tmp_path, "/a"), login_of(tmp_path, "/b")
    assert not Path(first.instance.auth).is_relative_to(Path(second.instance.directory))
    assert first.instance.auth != second.instance.auth


@pytest.mark.slow("a storm of some seconds")
def test_storm_of_renewals_loses_none(tmp_path: Path) -> None:
    """Eight projects and the host renew as soon as they can, and all are kept in step meanwhile."""
    logins = [login_of(tmp_path, f"/project-{number}") for number in range(8)]
    server, over, enough = Server(), threading.Event(), 60
    Path(logins[0].file).write_text(credentials(0))
    for login in logins:
        copy_newer(login)

    def keep(login: Login) -> None:
        while not over.is_set():
            copy_newer(login, may_switch=False)
            over.wait(random.uniform(0, 0.01))

    def work(file: str, locks: str) -> None:
        while not over.is_set():
            renew(server, file, locks)
            over.wait(random.uniform(0, 0.02))

    threads = [threading.Thread(target=keep, args=(login,)) for login in logins]
    threads += [threading.Thread(target=work, args=(one.instance.auth_login, one.instance.auth)) for one in logins]
    threads.append(threading.Thread(target=work, args=(logins[0].file, logins[0].locks)))
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE
    while server.current < enough and time.monotonic() < deadline:
        time.sleep(0.05)
    over.set()
    for thread in threads:
        thread.join()
    for login in (*logins, *logins):
        copy_newer(login, may_switch=False)
    assert server.current >= enough  # nobody had the last one any more: it was lost on the way
    files = [logins[0].file, *(login.instance.auth_login for login in logins)]
    assert [number_in(path) for path in files] == [server.current] * len(files)


def test_project_that_was_refused_gets_what_another_has_got(tmp_path: Path) -> None:
    """Two renew in the same moment: one gets a login, the other is refused, and Claude blanks what it has stored."""
    winner, loser = login_of(tmp_path, "/a"), login_of(tmp_path, "/b")
    Path(winner.file).write_text(credentials(0))
    for login in (winner, loser):
        copy_newer(login)
    blank = {"accessToken": "", "refreshToken": "", "expiresAt": 0}
    store(loser.instance.auth_login, json.dumps({"claudeAiOauth": blank}))
    copy_newer(loser, may_switch=False)
    store(winner.instance.auth_login, credentials(1))
    for login in (winner, loser):
        copy_newer(login, may_switch=False)
    assert [number_in(path) for path in (winner.file, loser.instance.auth_login)] == [1, 1]


class Killed(BaseException):
    """What a process that is killed does not come back from."""


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("moment", range(5))
@pytest.mark.parametrize("changed", ["host", "box"])
def test_killed_at_any_moment_it_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, moment: int, *, after: bool
) -> None:
    """And the box goes on, and renews again before anybody looks."""
    login = login_of(tmp_path, "/shop")
    Path(login.file).write_text(credentials(0))
    copy_newer(login)
    store(login.file if changed == "host" else login.instance.auth_login, credentials(1))
    rename, left = os.rename, [moment]

    def killed(source: str, target: str, **names: int | None) -> None:
        left[0] -= 1
        if left[0] < 0 and not after:
            raise Killed
        rename(source, target, **names)
        if left[0] < 0:
            raise Killed

    with monkeypatch.context() as patch, contextlib.suppress(Killed):
        patch.setattr(os, "rename", killed)
        copy_newer(login, may_switch=False)
    if number_in(login.instance.auth_login) == 1:
        store(login.instance.auth_login, credentials(2))
    newest = max(number_in(login.instance.auth_login), number_in(login.file))
    copy_newer(login, may_switch=False)
    assert [number_in(path) for path in (login.file, login.instance.auth_login)] == [newest] * 2


def test_change_of_something_else_in_the_hosts_file_is_not_a_new_login(tmp_path: Path) -> None:
    """Claude stores the tokens of MCP servers there. A login that a box has just renewed must not be replaced."""
    login = login_of(tmp_path, "/shop")
    Path(login.file).write_text(credentials(0))
    copy_newer(login)
    store(login.instance.auth_login, credentials(1))
    store(login.file, json.dumps({**json.loads(Path(login.file).read_text()), "mcpOAuth": {"tea": {}}}))
    copy_newer(login, may_switch=False)
    assert [number_in(path) for path in (login.file, login.instance.auth_login)] == [1, 1]
    assert "mcpOAuth" in Path(login.file).read_text()
    assert "mcpOAuth" not in Path(login.instance.auth_login).read_text()


def test_login_that_somebody_stored_while_the_host_was_locked_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user logs in on the host in the very moment in which a box's login is about to be stored there."""
    login = login_of(tmp_path, "/shop")
    Path(login.file).write_text(credentials(0))
    copy_newer(login)
    store(login.instance.auth_login, credentials(2))

    def locked(directory: str, patience: float) -> object:
        if directory == login.locks:
            store(login.file, credentials(1))
        return storage_lock(directory, patience)

    with monkeypatch.context() as patch:
        patch.setattr("claudebox.state.login.storage_lock", locked)
        copy_newer(login, may_switch=False)
    assert number_in(login.file) == 1
    copy_newer(login, may_switch=False)
    assert [number_in(path) for path in (login.file, login.instance.auth_login)] == [1, 1]


def end_in(path: str) -> int:
    end: int = json.loads(Path(path).read_text())["claudeAiOauth"]["expiresAt"]
    return end


def test_projects_do_not_renew_in_the_same_moment(tmp_path: Path) -> None:
    """Their boxes do not see each other's locks, and the server takes a refresh token once."""
    logins = [login_of(tmp_path, f"/project/{number}") for number in range(20)]
    store(logins[0].file, credentials(7))
    for login in logins:
        copy_newer(login)
    ends = sorted(
        json.loads(Path(login.instance.auth_login).read_text())["claudeAiOauth"]["expiresAt"] for login in logins
    )
    assert len(set(ends)) == len(logins)
    assert ends[-1] - ends[0] > SOONER_AT_MOST / 2
    assert ends[-1] <= end_in(logins[0].file)


def test_login_that_is_there_is_not_stored_again(tmp_path: Path) -> None:
    login = login_of(tmp_path, "/project")
    store(login.file, credentials(7))
    copy_newer(login)
    before = os.stat(login.instance.auth_login)
    copy_newer(login)
    assert os.stat(login.instance.auth_login) == before
