"""`./claudebox` from a checkout: what the first start does, and that every other one does nothing but start."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import CHECKOUT, Account
from running.needs import needed

HELP = re.compile(r"usage: claudebox ")
MANAGERS = {
    "apt-get": ["apt-get update", "apt-get install -y --no-install-recommends bubblewrap"],
    "dnf": ["dnf install -y bubblewrap"],
    "pacman": ["pacman -Sy --needed --noconfirm bubblewrap"],
    "zypper": ["zypper --non-interactive install bubblewrap"],
    "apk": ["apk add bubblewrap"],
}
# One of the places where system programs are looked for, and one that a test machine does not have.
SPARE_BIN = "/run/current-system/sw/bin"


def copy_checkout(to: Path, leave_out: str = "") -> Path:
    """What `./claudebox` consists of, as somebody with the usual umask has it.

    Compiled modules come along, because to compile them takes a second. Whoever tries that leaves out `__pycache__`.
    """
    to.mkdir(parents=True)
    shutil.copy2(CHECKOUT / "claudebox", to)
    for name in ("tools", "src"):
        shutil.copytree(CHECKOUT / name, to / name, ignore=shutil.ignore_patterns(leave_out))
    for path in (to, *to.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    return to


@pytest.fixture
@needed("box")
def checkout(user: Account) -> Path:
    """A fresh checkout of an ordinary user, in a directory with a space in its name."""
    copy = copy_checkout(user.home / "my code" / "claudebox")
    user.own(user.home / "my code")
    return copy


def starts(result: subprocess.CompletedProcess[str]) -> bool:
    """Did the real program run, with nothing else said?"""
    return (result.returncode, bool(HELP.match(result.stdout)), result.stderr) == (0, True, "")


def processes_of(account: Account, *command: str) -> dict[str, int]:
    """How often a command executed a program and how often it made a process."""
    trace = account.home / "trace"
    account.run("strace", "-f", "-o", str(trace), "-e", "trace=execve,clone,clone3,fork,vfork", *command)
    lines = trace.read_text().splitlines()
    return {
        "programs": sum(" execve(" in line and line.endswith("= 0") for line in lines),
        "processes": sum(bool(re.search(r" (clone3?|v?fork)\(", line)) for line in lines),
    }


@pytest.mark.shellcheck
@pytest.mark.parametrize(
    "script",
    [
        "claudebox",
        "bin/claudebox",
        "run-tests",
        "tools/install",
        "tools/set-up.sh",
        "tools/newer-programs",
        "tools/single_file.sh",
        ".ci/run",
    ],
)
def test_shell_scripts_have_no_known_mistake(script: str) -> None:
    checked = subprocess.run(["shellcheck", "-x", script], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


def test_first_start_makes_a_venv_that_developers_can_use(user: Account, checkout: Path) -> None:
    assert starts(user.run(str(checkout / "claudebox"), "--help"))
    assert starts(user.run(str(checkout / ".venv/bin/claudebox"), "--help"))
    where = user.run(str(checkout / ".venv/bin/python"), "-c", "import claudebox; print(claudebox.__file__)")
    assert where.stdout.strip() == str(checkout / "src/claudebox/__init__.py")


@pytest.mark.strace
def test_second_start_is_two_programs_and_one_process(user: Account, checkout: Path) -> None:
    command = str(checkout / "claudebox")
    assert processes_of(user, command, "--help")["processes"] > 0
    assert processes_of(user, command, "--help") == {"programs": 2, "processes": 0}


def test_links_and_any_directory_lead_to_the_checkout(user: Account, checkout: Path) -> None:
    links = user.home / "my links"
    links.mkdir()
    (links / "first").symlink_to("../my code/claudebox/claudebox")
    (links / "claudebox").symlink_to(links / "first")
    (user.home / "code").symlink_to("my code")
    user.own(links)
    for command, cwd in [
        (str(links / "claudebox"), Path("/")),
        ("./first", links),
        ("my links/claudebox", user.home),
        ("./claudebox", checkout),
        ("code/claudebox/claudebox", user.home),
    ]:
        assert starts(user.run("sh", "-c", '"$1" --help', "sh", command, cwd=cwd)), command
    found = user.run("sh", "-c", "claudebox --help", cwd="/", env={"PATH": f"{links}:{user.environ['PATH']}"})
    assert starts(found)
    assert starts(user.run("sh", "claudebox", "--help", cwd=checkout))


def test_arguments_arrive_as_they_were_typed(user: Account, checkout: Path) -> None:
    words = ["", "two words", "*", "$HOME", "-x", "new\nline", "--", "--yes"]
    (checkout / "src/claudebox/cli.py").write_text("import sys\ndef main(): print(sys.argv[1:])\n")
    for _ in ("first start", "second start"):
        assert user.run(str(checkout / "claudebox"), *words).stdout == f"{words}\n"


class Trap:
    """A project that plants what an interpreter or a careless script would pick up."""

    MODULES = ("os", "sys", "re", "site", "sitecustomize", "usercustomize", "claudebox", "fcntl", "venv")
    PROGRAMS = ("python3", "python3.11", "readlink", "id", "sudo", "apt-get", "env", "sh", "dirname", "sed", "cat")

    def __init__(self, account: Account) -> None:
        self.project = account.home / "hostile"
        self.sprung = self.project / "sprung"
        for name in self.MODULES:
            account.write(self.project / f"{name}.py", f"open({str(self.sprung)!r}, 'a').write({name!r})\n")
        account.write(self.project / "claudebox/__init__.py", f"open({str(self.sprung)!r}, 'a').write('package')\n")
        for name in self.PROGRAMS:
            account.write(self.project / name, f"#!/bin/sh\necho {name} >>'{self.sprung}'\nexit 1\n", mode=0o755)
            account.write(
                self.project / "bin" / name, f"#!/bin/sh\necho {name} >>'{self.sprung}'\nexit 1\n", mode=0o755
            )
        self.environ = {
            "PYTHONPATH": f":{self.project}",
            "PYTHONSTARTUP": str(self.project / "os.py"),
            "PATH": f".::bin:{self.project}/bin:{account.environ['PATH']}",
        }


@pytest.fixture
def trap(user: Account) -> Trap:
    made = Trap(user)
    # The trap works: a plain interpreter and a plain shell walk into it.
    user.run("/usr/bin/env", "python3", "-c", "pass", cwd=made.project, env=made.environ)
    assert made.sprung.exists()
    made.sprung.unlink()
    user.run("/usr/bin/python3", "-c", "import fcntl", cwd=made.project, env=made.environ)
    assert made.sprung.exists()
    made.sprung.unlink()
    return made


@pytest.mark.req("SAND-09")
def test_nothing_of_the_current_directory_runs_on_the_host(user: Account, checkout: Path, trap: Trap) -> None:
    link = user.home / "link"
    link.symlink_to(checkout / "claudebox")
    for _ in ("first start", "second start"):
        assert starts(user.run(str(link), "--help", cwd=trap.project, env=trap.environ))
    shutil.rmtree(checkout / ".venv")
    checkout.chmod(0o555)
    assert starts(user.run(str(link), "--help", cwd=trap.project, env=trap.environ))
    assert not trap.sprung.exists()


def test_modules_come_from_the_checkout_and_the_standard_library(user: Account, checkout: Path, trap: Trap) -> None:
    program = "import sys, fcntl, re, venv\ndef main(): print(*sys.path, sep='\\n')\n"
    (checkout / "src/claudebox/cli.py").write_text(program)
    for _ in ("first start", "second start"):
        result = user.run(str(checkout / "claudebox"), cwd=trap.project, env=trap.environ)
        source, *others = result.stdout.splitlines()
        assert source == str(checkout / "src")
        assert others
        assert all(re.search(r"/lib(64)?/python3", path) for path in others), others
    assert not trap.sprung.exists()


def test_moved_checkout_still_starts(user: Account, checkout: Path) -> None:
    user.run(str(checkout / "claudebox"), "--help")
    moved = checkout.rename(user.home / "elsewhere")
    assert starts(user.run(str(moved / "claudebox"), "--help"))
    assert starts(user.run(str(moved / ".venv/bin/claudebox"), "--help"))
    where = user.run(str(moved / ".venv/bin/python"), "-c", "import claudebox; print(claudebox.__file__)")
    assert where.stdout.strip() == str(moved / "src/claudebox/__init__.py")


def test_interpreter_that_went_away_is_replaced(user: Account, checkout: Path) -> None:
    user.run(str(checkout / "claudebox"), "--help")
    stamp = checkout / ".venv/claudebox-python"
    good = stamp.read_text()
    stamp.write_text("/usr/bin/python3.0\n")
    (checkout / ".venv/bin/python").unlink()
    (checkout / ".venv/bin/python").symlink_to("/usr/bin/python3.0")
    assert starts(user.run(str(checkout / "claudebox"), "--help"))
    assert stamp.read_text() == good
    assert user.run(str(checkout / ".venv/bin/python"), "-c", "import claudebox").returncode == 0


def test_tools_installed_in_the_venv_survive_a_new_set_up(user: Account, checkout: Path) -> None:
    user.run(str(checkout / "claudebox"), "--help")
    tool = user.write(checkout / ".venv/bin/pytest")
    (checkout / ".venv/claudebox-python").unlink()
    assert starts(user.run(str(checkout / "claudebox"), "--help"))
    assert tool.exists()


def test_checkout_that_cannot_be_written_starts_without_a_word(user: Account, checkout: Path) -> None:
    checkout.chmod(0o555)
    for _ in ("first start", "second start"):
        assert starts(user.run(str(checkout / "claudebox"), "--help"))
    assert not (checkout / ".venv").exists()


def test_several_first_starts_at_once_all_succeed(user: Account, checkout: Path) -> None:
    for compiled in list(checkout.rglob("__pycache__")):
        shutil.rmtree(compiled)
    script = 'for n in 1 2 3 4 5 6; do "$0" --help >"$HOME/out.$n" 2>&1 & done; wait'
    user.run("sh", "-c", script, str(checkout / "claudebox"))
    said = [(user.home / f"out.{n}").read_text() for n in range(1, 7)]
    assert said == [user.run(str(checkout / "claudebox"), "--help").stdout] * 6


@pytest.fixture
@needed("root")
def root_checkout(user: Account) -> Iterator[Path]:
    """A checkout that belongs to root, as in /opt."""
    path = copy_checkout(user.home / "opt" / "claudebox", leave_out="__pycache__")
    path.parent.chmod(0o755)
    yield path
    shutil.rmtree(path)


def run_as_root(command: Path) -> subprocess.CompletedProcess[str]:
    # A careful administrator's umask.
    script = 'umask 077; exec "$0" --help'
    return subprocess.run(["sh", "-c", script, command], capture_output=True, text=True, check=False)


@pytest.mark.strace
def test_what_root_set_up_starts_as_fast_for_others(user: Account, root_checkout: Path) -> None:
    assert starts(run_as_root(root_checkout / "claudebox"))
    assert processes_of(user, str(root_checkout / "claudebox"), "--help") == {"programs": 2, "processes": 0}
    compiled = {path.name.split(".")[0] for path in (root_checkout / "src/claudebox/__pycache__").iterdir()}
    assert {"cli", "model", "errors"} <= compiled


@pytest.mark.root
def test_root_leaves_nothing_of_its_own_in_somebody_elses_checkout(user: Account, checkout: Path) -> None:
    assert starts(run_as_root(checkout / "claudebox"))
    # What the interpreter compiles at start-up is not looked at: root ran it.
    owners = {path.lstat().st_uid for path in (checkout / ".venv").rglob("*")}
    assert owners == {user.uid}


def masks(*names: str) -> list[str]:
    """bwrap options that take programs away."""
    found = {
        os.path.realpath(path)
        for directory in ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/bin", "/sbin", "/usr/local/sbin")
        for path in [f"{directory}/{name}" for name in names]
        if os.path.exists(path)
    }
    return [word for path in sorted(found) for word in ("--ro-bind", "/dev/null", path)]


Machine = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
@needed("box")
def machine(user: Account, checkout: Path) -> Machine:
    """Start claudebox on a machine without bwrap and with the given package manager and authority, if any."""

    def run(
        manager: str | None,
        authority: str | None = None,
        *,
        root: bool = False,
        lacks: tuple[str, ...] = (),
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        fakes = user.home / "fakes"
        # It finds nothing on its standard input, and what it installs is a program called bwrap.
        script = f"""\
#!/bin/sh
echo "${{0##*/}} $*|$(cat)" >>'{user.home}/log'
echo noise
case $* in *bubblewrap*) printf '#!/bin/sh\\n' >/usr/local/bin/bwrap && chmod 755 /usr/local/bin/bwrap ;; esac
"""
        if manager:
            user.write(fakes / manager, script, mode=0o755)
        if authority:
            user.write(fakes / authority, f'#!/bin/sh\necho {authority} >>"{user.home}/log"\nexec "$@"\n', mode=0o755)
        fakes.mkdir(exist_ok=True)
        return user.run(
            str(shutil.which("bwrap")), "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev",
            "--bind", str(user.home), str(user.home),
            "--tmpfs", "/run", "--ro-bind", str(fakes), SPARE_BIN, "--tmpfs", "/usr/local/bin",
            *masks(*MANAGERS, "sudo", "doas", "bwrap", *lacks),
            *(("--unshare-user", "--uid", "0") if root else ()),
            "--", str(checkout / "claudebox"), "--help",
            input="a prompt for claude", cwd=cwd, env=env,
        )  # fmt: skip

    return run


@pytest.mark.req("FAIL-01")
@pytest.mark.parametrize("manager", [*MANAGERS, None])
def test_without_root_and_sudo_it_says_what_to_install(machine: Machine, user: Account, manager: str | None) -> None:
    result = machine(manager)
    hint = f"as root: {' && '.join(MANAGERS[manager])}" if manager else "install bubblewrap"
    assert (result.returncode, result.stdout, result.stderr) == (125, "", f"error: missing: bwrap\n\nhint: {hint}\n")
    assert not (user.home / "log").exists()


@pytest.mark.parametrize("manager", MANAGERS)
def test_root_installs_what_it_shows(machine: Machine, user: Account, manager: str) -> None:
    result = machine(manager, root=True)
    shown = "".join(f"claudebox:   {command}\nnoise\n" for command in MANAGERS[manager])
    assert (result.returncode, result.stderr) == (0, f"claudebox: installing bubblewrap:\n{shown}")
    assert HELP.match(result.stdout)
    assert "noise" not in result.stdout
    assert (user.home / "log").read_text().splitlines() == [f"{command}|" for command in MANAGERS[manager]]


def test_user_with_sudo_sees_sudo(machine: Machine, user: Account) -> None:
    result = machine("apt-get", "sudo")
    assert result.stderr.replace("noise\n", "").splitlines() == [
        "claudebox: installing bubblewrap:",
        "claudebox:   sudo apt-get update",
        "claudebox:   sudo apt-get install -y --no-install-recommends bubblewrap",
    ]
    assert (result.returncode, bool(HELP.match(result.stdout))) == (0, True)
    assert (user.home / "log").read_text().splitlines() == [
        "sudo",
        "apt-get update|",
        "sudo",
        "apt-get install -y --no-install-recommends bubblewrap|",
    ]


def test_git_comes_along_and_its_absence_stops_nothing(machine: Machine, user: Account) -> None:
    result = machine("apt-get", root=True, lacks=("git",))
    # The stand-in brings no git.
    assert (result.returncode, bool(HELP.match(result.stdout))) == (0, True)
    assert (user.home / "log").read_text().splitlines() == [
        "apt-get update|",
        "apt-get install -y --no-install-recommends bubblewrap|",
        "apt-get install -y --no-install-recommends git|",
    ]


def test_set_up_runs_nothing_of_the_current_directory(machine: Machine, user: Account, trap: Trap) -> None:
    result = machine("apt-get", "sudo", cwd=trap.project, env=trap.environ)
    assert (result.returncode, bool(HELP.match(result.stdout))) == (0, True)
    assert not trap.sprung.exists()
