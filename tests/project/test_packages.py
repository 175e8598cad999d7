"""Every package: built twice alike, installed where nothing of claudebox is, used, updated, removed."""

import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from tools.shared_files import shared_files

from claudebox import __version__
from conftest import CHECKOUT, Account
from patience import comes_true
from running.needs import needed

pytestmark = [pytest.mark.slow("builds packages"), pytest.mark.xdist_group("packages")]

BEFORE = "0.0.9"  # the version before this one, for what an update does
PACKAGES = ("wheel", "sdist", "single-file", "deb", "shared")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "dist", "build")


def copy_checkout(to: Path, version: str = __version__) -> Path:
    shutil.copytree(CHECKOUT, to, ignore=LEFT_OUT)
    file = to / "src/claudebox/__init__.py"
    file.write_text(file.read_text().replace(f'__version__ = "{__version__}"', f'__version__ = "{version}"'))
    return to


def build(checkout: Path, to: Path, *packages: str, umask: int = 0o022, **environ: str) -> dict[str, Path]:
    """The packages of a checkout, by their kinds."""
    command = [sys.executable, str(checkout / "tools/build.py"), "--directory", str(to), *packages]
    environ = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "PYTHONDONTWRITEBYTECODE": "1", **environ}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, umask=umask)
    assert done.returncode == 0, done.stderr
    return dict(zip(packages, map(Path, done.stdout.splitlines()), strict=True))


@pytest.fixture(scope="module")
def now(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("packages")
    # A copy: what a checkout has besides its files must not get into a package.
    return build(copy_checkout(place / "checkout"), place / "now", *PACKAGES)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("packages")
    return build(copy_checkout(place / "checkout", BEFORE), place / "before", "wheel", "single-file", "deb")


def given(user: Account, package: Path, name: str = "") -> Path:
    """The user's own copy of a package."""
    place = user.home / "given" / (name or package.name)
    place.parent.mkdir(exist_ok=True)
    shutil.copy(package, place)
    return user.own(place.parent) / place.name


@pytest.mark.exhaustive("builds all packages again")
def test_packages_built_twice_are_equal(now: dict[str, Path], tmp_path: Path) -> None:
    """At another time, in another place, with another umask, time zone and language."""
    elsewhere = copy_checkout(tmp_path / "another place")
    for path in elsewhere.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(path.stat().st_mode & 0o700)
    again = build(elsewhere, tmp_path / "again", *PACKAGES, umask=0o077, TZ="Asia/Tokyo", LC_ALL="C")
    differing = [name for name in PACKAGES if now[name].read_bytes() != again[name].read_bytes()]
    assert differing == []
    # The comparison sees a difference where there is one.
    later = build(elsewhere, tmp_path / "later", "deb", SOURCE_DATE_EPOCH="1700000060")
    assert now["deb"].read_bytes() != later["deb"].read_bytes()


def test_sdist_builds_the_same_wheel(now: dict[str, Path], tmp_path: Path) -> None:
    subprocess.run(["tar", "-xf", now["sdist"], "-C", tmp_path], check=True)
    (source,) = tmp_path.iterdir()
    assert build(source, tmp_path / "built", "wheel")["wheel"].read_bytes() == now["wheel"].read_bytes()


IN_BOX = ("--network", "full", "--run", "sh", "-c", "echo inside; exit 7")


def check_use(user: Account, command: str, version: str = __version__) -> None:
    """The version, the check of the machine, a real box."""
    shown = user.run(command, "--version")
    assert (shown.returncode, shown.stdout.splitlines()[:1]) == (0, [f"claudebox {version}"]), shown.stderr
    checked = user.run(command, "--check")
    assert ("ok    bwrap " in checked.stdout, checked.stderr) == (True, ""), checked.stdout
    project = user.write(user.home / "shop/README.md").parent
    box = user.run(command, "--yes", "--profile", "aws-readonly", *IN_BOX, cwd=project)
    assert (box.returncode, box.stdout) == (7, "inside\n"), box.stderr


@pytest.fixture
@needed("box")
def empty(user: Account) -> Account:
    """Somebody who never had claudebox, and whose machine cannot reach a package index."""
    return user


@pytest.mark.req("PKG-01")
def test_wheel_is_installed_used_updated_and_removed(
    empty: Account, before: dict[str, Path], now: dict[str, Path]
) -> None:
    venv, python = empty.home / "venv", str(Path(sys.executable).resolve())
    assert empty.run(python, "-m", "venv", str(venv)).returncode == 0
    untouched = set(venv.rglob("*"))
    pip = [str(venv / "bin/pip"), "--disable-pip-version-check"]
    for package, version in ((before, BEFORE), (now, __version__)):
        done = empty.run(*pip, "install", "--no-index", str(given(empty, package["wheel"])))
        assert done.returncode == 0, done.stderr
        check_use(empty, str(venv / "bin/claudebox"), version)
    assert {place: (venv / place).read_text() for place in shared_files()} == shared_files()
    done = empty.run(*pip, "uninstall", "--yes", "claudebox-cli")
    assert done.returncode == 0, done.stderr
    left = {path for path in set(venv.rglob("*")) - untouched if path.is_file() and "__pycache__" not in path.parts}
    assert left == set()


@pytest.mark.exhaustive("the default run has tried it with the wheel")
@pytest.mark.req("PKG-01")
def test_single_file_is_used_updated_and_removed(empty: Account, before: dict[str, Path], now: dict[str, Path]) -> None:
    for package, version in ((before, BEFORE), (now, __version__)):
        command = given(empty, package["single-file"], "claudebox")
        check_use(empty, str(command), version)
    # Nothing was unpacked anywhere.
    assert {path.name for path in empty.home.iterdir()} <= {"given", "shop", ".claudebox"}
    assert not any(path.suffix in (".py", ".pyc", ".pyz") for path in empty.home.rglob("*"))


@pytest.mark.exhaustive("attacks and shows that the default run has tried with a checkout")
@pytest.mark.parametrize("mode", ["--prove", "--demo", "--profile"])
def test_single_file_does_what_needs_more_than_modules(empty: Account, now: dict[str, Path], mode: str) -> None:
    project = empty.write(empty.home / "shop/README.md").parent
    done = empty.run(str(given(empty, now["single-file"])), mode, cwd=project, timeout=300)
    expected = {
        "--prove": r"\d+ of \d+ attacks held",
        "--demo": r"(\d+) of \1 secrets stayed",
        "--profile": "  strict  ",
    }
    assert re.search(expected[mode], done.stdout), done.stdout + done.stderr


@pytest.mark.exhaustive("other versions of Python, where there are any")
def test_single_file_runs_on_every_python_that_is_new_enough(now: dict[str, Path]) -> None:
    places = (Path("/usr/bin"), Path("/usr/local/bin"))
    pythons = [path for place in places for path in place.glob("python3.[1-9][0-9]")]
    for python in {Path(sys.executable).resolve(), *pythons}:
        # Not isolated, as somebody would type it.
        done = subprocess.run([python, now["single-file"], "--version"], capture_output=True, text=True, check=False)
        if int(python.name.rpartition(".")[2]) >= 11:
            assert (done.stderr, done.stdout.splitlines()[:1]) == ("", [f"claudebox {__version__}"]), python
        else:
            assert (done.returncode, "needs Python 3.11 or later" in done.stderr) == (125, True), python


def test_single_file_that_is_updated_meanwhile_ends_its_box_as_it_began(
    empty: Account, before: dict[str, Path], now: dict[str, Path]
) -> None:
    """Modules that are needed at the end are those of the version that started the box."""
    command = given(empty, before["single-file"], "claudebox")
    project = empty.write(empty.home / "shop/README.md").parent
    script = "touch started; until test -e go-on; do sleep 0.05; done; mkdir .vscode; echo '{}' >.vscode/tasks.json"
    box = subprocess.Popen(
        empty.becoming(str(command), "--yes", "--run", "sh", "-c", script),
        cwd=project,
        env=empty.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert comes_true((project / "started").exists)
    command.write_bytes(now["single-file"].read_bytes()[:1000])  # in its place, and not even whole
    (project / "go-on").touch()
    _, said = box.communicate(timeout=60)
    assert (box.returncode, "  1 new     .vscode/tasks.json" in said) == (0, True), said


# Debian

# A mount namespace in which the system's files can be changed without a trace.
OVERLAY = """
set -eu
mount -t tmpfs none "$0"
for place in /usr /etc /var/lib/dpkg /var/log /var/cache; do
    mkdir -p "$0/upper$place" "$0/work$place"
    mount -t overlay -o "lowerdir=$place,upperdir=$0/upper$place,workdir=$0/work$place" none "$place"
done
as_user() {
    setpriv --reuid="$USER_ID" --regid="$GROUP_ID" --clear-groups \\
        env -i HOME="$USER_HOME" PATH=/usr/bin:/bin LANG=C.UTF-8 "$@"
}
"""


def on_a_debian(user: Account, place: Path, script: str, **files: Path) -> subprocess.CompletedProcess[str]:
    place.mkdir()
    environ = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8", "USER_HOME": str(user.home)}
    environ |= {
        "USER_ID": str(user.uid),
        "GROUP_ID": str(user.gid),
        **{name: str(path) for name, path in files.items()},
    }
    command = ["unshare", "--mount", "sh", "-c", OVERLAY + script, str(place)]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, cwd="/")


USE = """
files() { find /usr /etc -path '*claudebox*' | sort; }
files >"$0/first"
dpkg --no-triggers -i "$before" >/dev/null
as_user claudebox --version | head -n 1
dpkg --no-triggers -i "$now" >/dev/null
as_user claudebox --version | head -n 1
mkdir -p "$USER_HOME/shop"; chown "$USER_ID" "$USER_HOME/shop"; cd "$USER_HOME/shop"
as_user claudebox --check | grep '^ok    bwrap '
as_user claudebox --yes --run sh -c 'echo inside' 2>/dev/null
as_user man -w claudebox
find /usr/share/claudebox -name 'cli.*.pyc' | wc -l
dpkg --no-triggers -r claudebox >/dev/null
files | diff "$0/first" - && echo nothing
"""


@pytest.mark.exhaustive("the default run has tried it with the wheel")
@pytest.mark.root
@pytest.mark.dpkg
@pytest.mark.req("PKG-01")
def test_debian_package_is_installed_used_updated_and_removed(
    empty: Account, before: dict[str, Path], now: dict[str, Path], tmp_path: Path
) -> None:
    done = on_a_debian(empty, tmp_path / "changes", USE, before=before["deb"], now=now["deb"])
    shown = re.sub(r"(ok    bwrap).*", r"\1", done.stdout).splitlines()
    assert (done.returncode, shown) == (
        0,
        [
            f"claudebox {BEFORE}",
            f"claudebox {__version__}",
            "ok    bwrap",
            "inside",
            "/usr/share/man/man1/claudebox.1.gz",
            "1",
            "nothing",
        ],
    ), done.stderr


@pytest.mark.root
@pytest.mark.dpkg
def test_debian_package_is_not_installed_without_bubblewrap(
    empty: Account, now: dict[str, Path], tmp_path: Path
) -> None:
    script = 'dpkg --no-triggers --force-depends -r bubblewrap >/dev/null 2>&1; dpkg --no-triggers -i "$now"'
    done = on_a_debian(empty, tmp_path / "changes", script, now=now["deb"])
    assert done.returncode != 0
    assert "claudebox depends on bubblewrap" in done.stderr


def files_in(deb: Path, member: str) -> dict[str, bytes]:
    """Read as dpkg reads it: an ar archive with tar archives in it."""
    content = deb.read_bytes()
    assert content.startswith(b"!<arch>\ndebian-binary   ")
    at = content.index(f"{member:<16}".encode())
    size = int(content[at + 48 : at + 58])
    with tarfile.open(fileobj=io.BytesIO(content[at + 60 : at + 60 + size])) as opened:
        return {one.name: file.read() for one in opened if (file := opened.extractfile(one)) is not None}


def test_debian_package_recommends_what_the_network_needs(now: dict[str, Path]) -> None:
    control = files_in(now["deb"], "control.tar.gz")["./control"].decode()
    fields = dict(line.split(": ", 1) for line in control.splitlines() if ": " in line)
    assert (fields["Depends"], fields["Recommends"]) == (
        "python3 (>= 3.11), bubblewrap (>= 0.8.0)",
        "git, nftables, passt",
    )


def test_debian_package_has_the_shared_files_where_debian_looks(now: dict[str, Path]) -> None:
    files = files_in(now["deb"], "data.tar.gz")
    for place, text in shared_files().items():
        there = f"./usr/{place}".replace("site-functions", "vendor-completions")
        content = gzip.decompress(files[f"{there}.gz"]) if "/man/" in place else files[there]
        assert content.decode() == text


def test_shared_files_are_unpacked_below_a_prefix(now: dict[str, Path], tmp_path: Path) -> None:
    prefix = tmp_path / "local"
    prefix.mkdir(mode=0o700)
    subprocess.run(["tar", "-xzf", now["shared"], "-C", prefix], check=True)
    assert {place: (prefix / place).read_text() for place in shared_files()} == shared_files()
    assert prefix.stat().st_mode & 0o777 == 0o700


def test_build_says_what_it_cannot_build() -> None:
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "tools/build.py"), "rpm"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "there is no package `rpm`" in done.stderr) == (2, True)
