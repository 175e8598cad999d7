"""The wheel: what is in it, and that pip and uv make a working command of it."""

import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudebox import __version__
from conftest import CHECKOUT, Account, make_account

pytestmark = pytest.mark.slow("makes environments for pip and uv")

# Not the one of this virtual environment, and one that every user can run.
PYTHON = str(Path(sys.executable).resolve())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    (built,) = directory.iterdir()
    return built


@pytest.fixture(scope="module")
def somebody() -> Iterator[Account]:
    yield from make_account("user")


@pytest.fixture(scope="module", params=["pip", "pip --user", "pip --editable", "uv", "single file"])
def installed(request: pytest.FixtureRequest, wheel: Path, somebody: Account) -> Path:
    """The command as an ordinary user got it from the wheel."""
    installer: str = request.param
    home = somebody.home / installer
    copy = somebody.write(home / wheel.name)
    copy.write_bytes(wheel.read_bytes())
    if installer == "uv":
        uv = Path(sys.executable).with_name("uv")
        install = [[str(uv), "tool", "install", "--offline", "--no-config", "--python", PYTHON, str(copy)]]
        command = home / "bin/claudebox"
    elif installer == "single file":
        build = [sys.executable, str(CHECKOUT / "tools/build.py"), "--directory", str(wheel.parent / "single")]
        built = subprocess.run([*build, "single-file"], check=True, capture_output=True, text=True).stdout.strip()
        command = somebody.own(Path(shutil.copy(built, home / "claudebox")))
        install = []
    elif installer == "pip --user":
        # As on a system whose pip allows it. There is no interpreter beside the command then.
        pip = [sys.executable, "-I", "-m", "pip", "install", "--no-index", "--break-system-packages"]
        install = [[*pip, "--prefix", str(home / "local"), "--no-deps", str(copy)]]
        command = home / "local/bin/claudebox"
    else:
        chosen = copy if installer == "pip" else editable(wheel.parent, home)
        # With the pip of the tests: to unpack one more takes ten seconds.
        pip = [sys.executable, "-I", "-m", "pip", "--python", str(home / "venv"), "install", "--no-index"]
        install = [[PYTHON, "-m", "venv", "--without-pip", str(home / "venv")], [*pip, str(chosen)]]
        command = home / "venv/bin/claudebox"
    places = {"UV_TOOL_DIR": f"{home}/tools", "UV_TOOL_BIN_DIR": f"{home}/bin", "UV_CACHE_DIR": f"{home}/cache"}
    for step in install:
        result = somebody.run(*step, env=places)
        assert result.returncode == 0, result.stderr
    return command


def editable(directory: Path, home: Path) -> Path:
    """The wheel that `pip install --editable` makes of a checkout before it installs it."""
    build = f"from hatchling.build import build_editable; print(build_editable({str(directory / 'editable')!r}))"
    (directory / "editable").mkdir()
    done = subprocess.run([sys.executable, "-c", build], cwd=CHECKOUT, check=True, capture_output=True, text=True)
    made = directory / "editable" / done.stdout.strip()
    return Path(shutil.copy(made, home / made.name))


def test_wheel_holds_the_package_its_command_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = CHECKOUT / "src/claudebox"
    files = [*package.rglob("*.py"), *package.rglob("*.toml"), *package.rglob("*.sh"), package / "py.typed"]
    sources = {path.relative_to(CHECKOUT / "src").as_posix() for path in files}
    about, shared = f"claudebox_cli-{__version__}.dist-info", f"claudebox_cli-{__version__}.data/data/share"
    assert names == sources | {
        f"claudebox_cli-{__version__}.data/scripts/claudebox",
        f"{shared}/bash-completion/completions/claudebox",
        f"{shared}/claudebox/config.schema.json",
        f"{shared}/claudebox/project.schema.json",
        f"{shared}/fish/vendor_completions.d/claudebox.fish",
        f"{shared}/man/man1/claudebox.1",
        f"{shared}/zsh/site-functions/_claudebox",
        f"{about}/METADATA",
        f"{about}/RECORD",
        f"{about}/WHEEL",
        f"{about}/licenses/LICENSE",
    }


@pytest.mark.req("PKG-01")
def test_wheel_has_its_own_name_and_needs_nothing(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"claudebox_cli-{__version__}.dist-info/METADATA").decode()
    assert re.findall(r"^(Name|Version|Requires-Dist|Requires-Python): (.*)$", metadata, re.MULTILINE) == [
        ("Name", "claudebox-cli"),
        ("Version", __version__),
        ("Requires-Python", ">=3.11"),
    ]


@pytest.mark.req("PKG-01", "SAND-01")
def test_installed_command_runs(installed: Path, somebody: Account) -> None:
    shown = somebody.run(str(installed), "--help")
    assert (shown.returncode, shown.stdout.split("\n")[0].split()[:2], shown.stderr) == (0, ["usage:", "claudebox"], "")
    version = somebody.run(str(installed), "--version")
    assert (version.returncode, version.stdout.splitlines()[0]) == (0, f"claudebox {__version__}")


@pytest.mark.req("PKG-01", "WORK-01")
def test_installed_command_has_its_scripts(installed: Path, somebody: Account) -> None:
    """They are no modules: however it was installed, they are there."""
    project = somebody.home / "project"
    for name in ("HEAD", "config", "objects/x", "refs/x"):
        somebody.write(project / ".git" / name)
    bwrap = somebody.write(somebody.home / "bwrap", "#!/bin/sh\n", 0o755)
    words, environ = ("--audit", "--run", "true"), {"CLAUDEBOX_BWRAP": str(bwrap)}
    assert "/etc/claudebox/bin/git" in somebody.run(str(installed), *words, cwd=project, env=environ).stdout


def test_installed_command_loads_nothing_that_a_generated_script_would(installed: Path, somebody: Account) -> None:
    def loaded(*command: str) -> set[str]:
        listing = somebody.run(command[0], "-X", "importtime", *command[1:]).stderr
        return {line.split("|")[-1].strip() for line in listing.splitlines()}

    # The measure sees it where it is.
    assert "re" in loaded(PYTHON, "-c", "import re")
    last_step = somebody.run("bash", "-x", str(installed), "--help").stderr.splitlines()[-1]
    _, execute, *started = shlex.split(last_step)
    modules = loaded(*started)
    assert (execute, "claudebox.cli" in modules) == ("exec", True)
    assert not modules & {"re", "site", "importlib.metadata"}


TRAPS = ("sitecustomize", "usercustomize", "claudebox", "claudebox/__init__", "claudebox/cli", "re", "gc", "fcntl")
WAYS = {
    "nothing": {},
    "an empty entry": {"PYTHONPATH": ":"},
    "a relative entry": {"PYTHONPATH": "."},
    "the project": {"PYTHONPATH": "{project}"},
    "an empty entry between others": {"PYTHONPATH": "/usr/share::{project}"},
    "a user's site": {"PYTHONUSERBASE": "{project}/base"},
    "a home": {"PYTHONHOME": "{project}/base"},
    "a place for compiled files": {"PYTHONPYCACHEPREFIX": "{project}/base"},
    "an entry of PATH": {"PATH": ".::bin:{project}:/usr/bin:/bin"},
}


@pytest.mark.req("SAND-09")
def test_nothing_of_the_current_directory_runs_on_the_host(installed: Path, somebody: Account) -> None:
    """Not even `sitecustomize.py`, which Python runs before the first line of any script."""
    project = somebody.home / "hostile"
    sprung = project / "sprung"
    trap = f"open({str(sprung)!r}, 'a').write('sprung')\n"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name in TRAPS:
        somebody.write(project / f"{name}.py", trap)
    somebody.write(project / f"base/lib/{version}/site-packages/trap.pth", f"import os; {trap}")
    for name in (version, "python3", "python", "readlink", "printf"):
        somebody.write(project / name, f"#!/bin/sh\necho sprung >>'{sprung}'\n", mode=0o755)
    for way, variables in WAYS.items():
        environ = {name: value.format(project=project) for name, value in variables.items()}
        shown = somebody.run(str(installed), "--help", cwd=project, env=environ)
        assert (shown.returncode, shown.stdout.split()[:2], sprung.exists()) == (0, ["usage:", "claudebox"], False), way
        # The trap works: an interpreter that looks there walks into it.
        command = ("python3",) if "PATH" in environ else (PYTHON, "-c", "import claudebox")
        somebody.run("/bin/sh", "-c", '"$@"', "sh", *command, cwd=project, env=environ)
        assert sprung.exists() or "PYTHONHOME" in environ  # no interpreter starts with that
        sprung.unlink(missing_ok=True)


def test_command_whose_interpreter_is_gone_says_so(wheel: Path, somebody: Account) -> None:
    command = somebody.write(somebody.home / "gone/bin/claudebox", (CHECKOUT / "bin/claudebox").read_text(), mode=0o755)
    said = somebody.run(str(command), "--help")
    assert (said.returncode, said.stdout, said.stderr.split(":")[0]) == (125, "", "error")
