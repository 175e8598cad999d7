"""Who is running claudebox."""

from __future__ import annotations

from claudebox.host.tree import Tree
from claudebox.model import Person
from claudebox.problem import Problem


def find_person(tree: Tree, uid: int, gid: int, home: str) -> Person:
    """The account with this uid. `home` is what the environment says; it wins if it is an absolute path."""
    name, database_home = _account(tree, uid)
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
        group=_group(tree, gid),
        home=real,
        account_home=account_home if account_home not in (None, "/", real) else "",
    )


def account_name(tree: Tree, uid: int) -> str:
    """What /etc/passwd calls the account; "" if it does not know it."""
    return next((fields[0] for fields in _database(tree, "/etc/passwd") if fields[2:3] == [str(uid)]), "")


def _account(tree: Tree, uid: int) -> tuple[str, str]:
    for fields in _database(tree, "/etc/passwd"):
        if len(fields) >= 7 and fields[2] == str(uid):
            return fields[0], fields[5]
    if not tree.root:
        import pwd  # imported late: it is only for accounts from LDAP or systemd

        try:
            entry = pwd.getpwuid(uid)
        except KeyError:
            pass
        else:
            return entry.pw_name, entry.pw_dir
    return f"user{uid}", ""


def _group(tree: Tree, gid: int) -> str:
    for fields in _database(tree, "/etc/group"):
        if len(fields) >= 3 and fields[2] == str(gid):
            return fields[0]
    return f"group{gid}"


def _database(tree: Tree, path: str) -> list[list[str]]:
    return [line.split(":") for line in (tree.text(path) or "").splitlines()]
