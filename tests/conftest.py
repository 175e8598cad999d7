"""Accounts to test as, and a way to run claudebox as one of them.

Started as root, every test of the box runs twice: as root and as an ordinary user, each worker's own. Started as an
ordinary user, the half that needs root is skipped, which CI does not accept.
"""

import contextlib
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hosts.machine import Machine, debian
from running import pins
from running.machine import ACCOUNT, ACCOUNTS
from running.needs import SYSTEM_PATH, needed

pytest_plugins = ("golden", "running.plugin", "pytester")

CHECKOUT = Path(__file__).parent.parent
CLAUDEBOX = str(CHECKOUT / "claudebox")
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
NUMBERS = itertools.count()
SETPRIV = shutil.which("setpriv", path=SYSTEM_PATH) or "setpriv"
ORDINARY_USER = ACCOUNT.format(WORKER % ACCOUNTS)
# Options of git for a repository that was there before the box.
AS_SOMEBODY = (
    *("-c", "user.name=Old", "-c", "user.email=old@host"),
    *("-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"),
)


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new directory. That of pytest looks through all earlier ones for its number."""
    return tmp_path_factory.mktemp(str(next(NUMBERS)), numbered=False)


@dataclass
class Account:
    """Somebody who runs claudebox, with a home made for one test."""

    name: str
    uid: int
    gid: int
    home: Path
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def is_root(self) -> bool:
        return self.uid == 0

    def own(self, path: Path) -> Path:
        """Hand a path, and everything below it, to this account."""
        if os.geteuid() == 0:
            for directory, names, files in os.walk(path):
                for name in (".", *names, *files):
                    os.lchown(os.path.join(directory, name), self.uid, self.gid)
            os.lchown(path, self.uid, self.gid)
        return path

    def write(self, path: Path, text: str = "", mode: int = 0o644) -> Path:
        """A file that this account owns, with its directories."""
        missing = [parent for parent in path.parents if not parent.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        for made in (*missing, path):
            os.lchown(made, self.uid, self.gid)
        return path

    def becoming(self, *command: str) -> tuple[str, ...]:
        """The words that start a program as this account.

        `subprocess` can do it as well, but then it copies all memory of the tests for each start, which takes several
        times as long as the start itself.
        """
        if os.geteuid() != 0:
            return command
        return (SETPRIV, f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups", "--", *command)

    def run(
        self,
        *command: str,
        cwd: Path | str | None = None,
        env: dict[str, str] | None = None,
        input: str | None = None,
        timeout: float = 60,
        pass_fds: tuple[int, ...] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on the host as this account, without a terminal."""
        return subprocess.run(
            self.becoming(*command),
            cwd=cwd or self.home,
            env={**self.environ, **(env or {})},
            input=input if input is not None else "",
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=timeout,
            pass_fds=pass_fds,
            start_new_session=True,
            check=False,
        )

    def start(self, *command: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """A program that runs on while the test does something else; its output is piped."""
        return subprocess.Popen(
            self.becoming(*command),
            cwd=cwd or self.home,
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @contextlib.contextmanager
    def running(
        self,
        *command: str,
        cwd: Path | str | None = None,
        env: dict[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
    ) -> Iterator[subprocess.Popen[str]]:
        """A program on the host as this account, beside the test."""
        with subprocess.Popen(
            self.becoming(*command),
            cwd=cwd or self.home,
            env={**self.environ, **(env or {})},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def git(account: Account, where: Path, *arguments: str) -> str:
    result = account.run("git", *AS_SOMEBODY, *arguments, cwd=where)
    assert result.returncode == 0, result.stderr
    return result.stdout


def make_repository(account: Account, where: Path, message: str = "first") -> Path:
    """With one commit, of all that is there."""
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "--allow-empty", "-m", message)):
        git(account, where, *words)
    return where


def keepers_of(pid: int) -> tuple[int, int]:
    """Of a claudebox, the process that judges what is masked, and the one below it that mounts."""

    def children(one: int) -> list[int]:
        return list(map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split()))

    with_children = (one for one in children(pid) if children(one))
    judge = next(one for one in with_children if "bwrap" not in Path(f"/proc/{one}/comm").read_text())
    return judge, children(judge)[0]


@dataclass
class Box:
    """claudebox in one project of one account."""

    account: Account
    project: Path
    options: tuple[str, ...] = ()

    def claudebox(self, *arguments: str, **how: object) -> subprocess.CompletedProcess[str]:
        """The command as the user would type it."""
        how.setdefault("cwd", self.project)
        return self.account.run(CLAUDEBOX, *self.options, *arguments, **how)  # type: ignore[arg-type]

    def inside(self, *command: str, options: tuple[str, ...] = (), **how: object) -> subprocess.CompletedProcess[str]:
        """Run a command in the box, without the question."""
        return self.claudebox("--yes", *options, "--run", *command, **how)

    def sh(self, script: str, options: tuple[str, ...] = (), **how: object) -> str:
        """Output of a shell script that has to succeed in the box."""
        result = self.inside("sh", "-c", script, options=options, **how)
        assert result.returncode == 0, result.stderr
        return result.stdout


@pytest.fixture(params=["user", pytest.param("root", marks=pytest.mark.root)])
def account(request: pytest.FixtureRequest) -> Iterator[Account]:
    yield from make_account(request.param)


@pytest.fixture
def user() -> Iterator[Account]:
    """Just the ordinary user, where root would show nothing more."""
    yield from make_account("user")


def make_account(kind: str) -> Iterator[Account]:
    is_made = os.geteuid() == 0 and kind == "user"
    entry = pwd.getpwnam(ORDINARY_USER) if is_made else pwd.getpwuid(os.geteuid())
    # Not below pytest's own directory: that is private to who started the tests.
    home = Path(tempfile.mkdtemp(prefix="claudebox-home-", dir="/var/tmp")).resolve()
    home.chmod(0o755)
    os.chown(home, entry.pw_uid, entry.pw_gid)
    environ = {"HOME": str(home), "PATH": SYSTEM_PATH, "TERM": "xterm", "LANG": "C.UTF-8", "USER": entry.pw_name}
    yield Account(entry.pw_name, entry.pw_uid, entry.pw_gid, home, environ)
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def project(account: Account) -> Path:
    path = account.home / "src" / "shop"
    account.write(path / "README.md", "a shop\n")
    return path


@pytest.fixture
@needed("box")
def box(request: pytest.FixtureRequest, account: Account, project: Path) -> Box:
    """With another bwrap if the test has `@each_bwrap`."""
    if hasattr(request, "param"):
        account.environ["CLAUDEBOX_BWRAP"] = request.param
    return Box(account, project)


@pytest.fixture
@needed("box")
def shop(user: Account) -> Box:
    """A box of the ordinary user, where root would show nothing more."""
    return Box(user, user.write(user.home / "src" / "shop" / "README.md", "a shop\n").parent)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """One that does not exist, with Debian."""
    return debian(tmp_path)


@pytest.fixture
@needed("claude")
def claude() -> str:
    """The real Claude Code."""
    return pins.claude()


@pytest.fixture
@needed("old_claude")
def old_claude() -> str:
    """One that knows less."""
    return pins.claude(pins.OLD_CLAUDE)
