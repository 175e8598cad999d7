"""The only reader of the machine. What it finds is read once and never changed."""

from __future__ import annotations

import os
import sys
import time

from claudebox.errors import Problem, suppress
from claudebox.host.tree import Tree
from claudebox.model import Person
from claudebox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from claudebox.host.network import Neighbourhood
    from claudebox.host.nix_daemon import Daemon


class Host(Record):
    """The machine as the features see it."""

    tree: Tree
    environ: dict[str, str]
    cwd: str
    person: Person
    hostname: str
    machine: str
    python: str
    own_source: str  # where claudebox itself is installed
    neighbourhood: Callable[[Tree], Neighbourhood]  # called only for a box with a network of its own
    ask_daemon: Callable[[], Daemon]  # asks the Nix daemon, only where there is one
    began: int = 0  # when claudebox began to look at it, in nanoseconds

    @property
    def search_path(self) -> str:
        """The directories in which programs are looked for."""
        return self.environ.get("PATH", os.defpath)

    def looked_at_anew(self) -> Host:
        """The same machine, without what is remembered about its files."""
        return self.replace(tree=Tree(self.tree.root))


def read_host() -> Host:
    """Read the real machine."""
    tree = Tree()
    environ = dict(os.environ)
    return Host(
        tree=tree,
        environ=environ,
        cwd=_working_directory(),
        person=find_person(tree, os.geteuid(), os.getegid(), environ.get("HOME", "")),
        hostname=os.uname().nodename,
        machine=os.uname().machine,
        python=tree.resolve(sys.executable) or "",
        own_source=_own_source(tree),
        neighbourhood=_read_neighbourhood,
        ask_daemon=_ask_daemon,
        began=time.time_ns(),
    )


def _own_source(tree: Tree) -> str:
    """The directory of the package, or the single file that it is in."""
    package = __file__.rpartition("/host/")[0]
    return tree.resolve(package) or tree.resolve(package.rpartition("/")[0]) or ""


def _read_neighbourhood(tree: Tree) -> Neighbourhood:
    from claudebox.host.network import read_neighbourhood

    return read_neighbourhood(tree)


def _ask_daemon() -> Daemon:
    from claudebox.host.nix_daemon import ask_daemon

    return ask_daemon()


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise Problem("the current directory no longer exists", "cd to your project and try again") from None


def find_person(tree: Tree, uid: int, gid: int, home: str) -> Person:
    """The account with this uid. `home` is what the environment says; it wins if it is an absolute path."""
    row = _row(tree, "/etc/passwd", uid)
    name, database_home = (row[0], row[5]) if len(row) > 6 else _account_elsewhere(tree, uid)
    home = home if home.startswith("/") else database_home
    if not home.startswith("/"):
        raise Problem("HOME is not set to an absolute path", "export HOME=/path/to/your/home")
    # The features compare paths with the home, so it has to be a real path.
    real = tree.resolve(home) or home
    account_home = tree.resolve(database_home) if database_home.startswith("/") else None
    return Person(
        uid=uid,
        gid=gid,
        name=name,
        group="".join(_row(tree, "/etc/group", gid)[:1]) or f"group{gid}",
        home=real,
        account_home=account_home if account_home not in (None, "/", real) else "",
    )


def account_name(tree: Tree, uid: int) -> str:
    """What /etc/passwd calls the account; "" if it does not know it."""
    return "".join(_row(tree, "/etc/passwd", uid)[:1])


def _row(tree: Tree, path: str, number: int) -> list[str]:
    """The fields of the account, or the group, with this number; none if the file does not have it."""
    rows = (line.split(":") for line in (tree.text(path) or "").splitlines())
    return next((fields for fields in rows if fields[2:3] == [str(number)]), [])


def _account_elsewhere(tree: Tree, uid: int) -> tuple[str, str]:
    """Name and home of an account from LDAP or systemd."""
    if not tree.root:
        import pwd

        with suppress(KeyError):
            entry = pwd.getpwuid(uid)
            return entry.pw_name, entry.pw_dir
    return f"user{uid}", ""
