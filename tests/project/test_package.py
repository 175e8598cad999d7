"""The wheel: what is in it, and that pip and uv make a working command of it."""

from __future__ import annotations

import re
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


@pytest.fixture(scope="module", params=["pip", "uv"])
def installed(request: pytest.FixtureRequest, wheel: Path, somebody: Account) -> Path:
    """The command as an ordinary user got it from the wheel."""
    installer: str = request.param
    home = somebody.home / installer
    copy = somebody.write(home / wheel.name)
    copy.write_bytes(wheel.read_bytes())
    if installer == "pip":
        install = [
            [PYTHON, "-m", "venv", str(home / "venv")],
            [str(home / "venv/bin/pip"), "install", "--no-index", str(copy)],
        ]
        command = home / "venv/bin/claudebox"
    else:
        uv = Path(sys.executable).with_name("uv")
        install = [[str(uv), "tool", "install", "--offline", "--no-config", "--python", PYTHON, str(copy)]]
        command = home / "bin/claudebox"
    places = {"UV_TOOL_DIR": f"{home}/tools", "UV_TOOL_BIN_DIR": f"{home}/bin", "UV_CACHE_DIR": f"{home}/cache"}
    for step in install:
        result = somebody.run(*step, env=places)
        assert result.returncode == 0, result.stderr
    return command


def test_wheel_holds_the_package_its_command_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = CHECKOUT / "src/claudebox"
    files = [*package.rglob("*.py"), *package.rglob("*.toml"), package / "py.typed"]
    sources = {path.relative_to(CHECKOUT / "src").as_posix() for path in files}
    about = f"claudebox_cli-{__version__}.dist-info"
    assert names == sources | {
        f"claudebox_cli-{__version__}.data/scripts/claudebox",
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


def test_installed_command_loads_nothing_that_a_generated_script_would(installed: Path, somebody: Account) -> None:
    def loaded(*command: str) -> set[str]:
        listing = somebody.run(*command, env={"PYTHONPROFILEIMPORTTIME": "1"}).stderr
        return {line.split("|")[-1].strip() for line in listing.splitlines()}

    # The measure sees it where it is.
    assert "re" in loaded(PYTHON, "-c", "import re")
    modules = loaded(str(installed), "--help")
    assert "claudebox.cli" in modules
    assert not modules & {"re", "importlib.metadata"}


@pytest.mark.parametrize("path", ["", ":", ".", "{project}", "/usr/share::{project}"])
def test_module_of_the_current_directory_is_not_loaded(installed: Path, somebody: Account, path: str) -> None:
    project = somebody.home / "hostile"
    sprung = project / "sprung"
    for name in ("claudebox", "claudebox/__init__", "claudebox/cli", "re", "fcntl", "array", "resource"):
        somebody.write(project / f"{name}.py", f"open({str(sprung)!r}, 'a').write({name!r})\n")
    environ = {"PYTHONPATH": path.format(project=project)} if path else {}
    shown = somebody.run(str(installed), "--help", cwd=project, env=environ)
    assert (shown.returncode, shown.stdout.split()[:2], sprung.exists()) == (0, ["usage:", "claudebox"], False)
    # The trap works: an interpreter that looks there walks into it.
    somebody.run(PYTHON, "-c", "import claudebox", cwd=project, env=environ)
    assert sprung.exists()
    sprung.unlink()
