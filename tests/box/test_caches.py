"""What package managers download is kept for the project: the second installation needs no download."""

import base64
import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

import pytest

from broker.standin import Asked, Pieces, Server, reply
from conftest import CLAUDEBOX, Box, git, make_repository
from samples import wheel

pytestmark = pytest.mark.req("WORK-01")

PATIENCE = 120  # seconds
KEEP = ("--cache", "project")
NPM = "npm ci --no-audit --no-fund --fetch-retries=0 --registry"
PIP = (
    "pip3 install -q --disable-pip-version-check --break-system-packages --no-deps --target installed --upgrade "
    "--trusted-host 127.0.0.1 -i"
)


def tarball() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in (("package.json", '{"name": "greeting", "version": "1.0.0"}'), ("index.js", "")):
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return file.getvalue()


FILES = {"/greeting-1.0.0.tgz": tarball(), "/greeting-1.0-py3-none-any.whl": wheel("greeting")}


def registry(asked: Asked) -> Pieces:
    """Packages of npm and of pip, on loopback."""
    page = b'<a href="/greeting-1.0-py3-none-any.whl">greeting-1.0-py3-none-any.whl</a>'
    kind = "application/octet-stream" if asked.path in FILES else "text/html"
    age = "max-age=31536000, immutable" if asked.path in FILES else "max-age=0"
    headers = f"Content-Type: {kind}\r\nCache-Control: {age}\r\nDate: {formatdate(usegmt=True)}\r\n"
    yield reply(FILES.get(asked.path, page), headers=headers)


@contextmanager
def started(box: Box, options: tuple[str, ...], script: str) -> Iterator[subprocess.Popen[str]]:
    """A box that has said that it is ready, and then waits for the end of its input."""
    words = (CLAUDEBOX, "--yes", *options, "--run", "sh", "-c", script)
    with box.account.running(*words, cwd=box.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


def lock(box: Box, url: str) -> None:
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(FILES["/greeting-1.0.0.tgz"]).digest()).decode()
    needs = {"greeting": "1.0.0"}
    package = {"version": "1.0.0", "resolved": f"{url}/greeting-1.0.0.tgz", "integrity": integrity}
    packages = {"": {"name": "shop", "dependencies": needs}, "node_modules/greeting": package}
    whole = {"name": "shop", "lockfileVersion": 3, "requires": True, "packages": packages}
    box.account.write(box.project / "package.json", json.dumps({"name": "shop", "dependencies": needs}))
    box.account.write(box.project / "package-lock.json", json.dumps(whole))


@pytest.mark.npm
def test_second_npm_ci_needs_no_registry(shop: Box) -> None:
    with Server(registry) as server:
        url = f"http://127.0.0.1:{server.port}"
        lock(shop, url)
        shop.sh(f"{NPM} {url} && ls node_modules/greeting/index.js && rm -rf node_modules", KEEP, timeout=PATIENCE)
    script = f"{NPM} {url} && ls node_modules/greeting"
    assert shop.sh(script, KEEP, timeout=PATIENCE).split()[-2:] == ["index.js", "package.json"]
    cold = shop.inside("sh", "-c", f"rm -rf node_modules; {script}", options=("--cache", "none"), timeout=PATIENCE)
    assert cold.returncode != 0


@pytest.mark.clients
def test_second_pip_install_downloads_nothing(shop: Box) -> None:
    with Server(registry) as server:
        url = f"http://127.0.0.1:{server.port}"
        for _ in range(2):
            shop.sh(f"{PIP} {url}/simple greeting && ls installed/greeting.py", KEEP, timeout=PATIENCE)
        assert [one.path for one in server.asked if one.path in FILES] == ["/greeting-1.0-py3-none-any.whl"]
        shop.sh(f"{PIP} {url}/simple greeting", ("--cache", "none"), timeout=PATIENCE)
        assert len([one for one in server.asked if one.path in FILES]) == 2


@pytest.mark.req("INST-01")
def test_no_other_project_sees_it(shop: Box) -> None:
    shop.sh("echo mine >~/.cache/x; echo mine >~/.cargo/registry/x", KEEP)
    other = Box(shop.account, shop.account.write(shop.account.home / "src" / "other" / "a").parent)
    assert other.sh("cat ~/.cache/x ~/.cargo/registry/x 2>/dev/null; ls -A ~/.cache", KEEP) == ""
    assert shop.sh("cat ~/.cache/x ~/.cargo/registry/x", KEEP) == "mine\nmine\n"


@pytest.mark.git
def test_worktree_has_the_cache_of_its_repository(shop: Box) -> None:
    make_repository(shop.account, shop.project)
    git(shop.account, shop.project, "worktree", "add", "-q", "../tree")
    shop.sh("echo shared >~/.npm/x", KEEP)
    assert Box(shop.account, shop.project.parent / "tree").sh("cat ~/.npm/x", KEEP) == "shared\n"


@pytest.mark.req("SAND-09")
def test_tokens_beside_the_caches_stay_outside(shop: Box) -> None:
    tokens = (".npmrc", ".cargo/credentials.toml", ".m2/settings.xml", ".gradle/gradle.properties")
    for name in (*tokens, ".nuget/NuGet/NuGet.Config", ".hex/hex.config", ".bundle/config"):
        shop.account.write(shop.account.home / name, "canary-1c7a")
    assert shop.sh("grep -rs canary ~ /var/cache; true", KEEP) == ""


def test_two_boxes_of_a_project_share_it_at_once(shop: Box) -> None:
    with started(shop, KEEP, "echo one >~/.cache/one; echo ready; cat; cat ~/.cache/two") as first:
        assert shop.sh("cat ~/.cache/one; echo two >~/.cache/two", KEEP) == "one\n"
        assert first.communicate("", timeout=PATIENCE)[0] == "two\n"


def test_emptied_home_leaves_the_places_usable(shop: Box) -> None:
    """Agents do that when a disk is full. A link to nowhere would make every tool fail."""
    for script in ("rm -rf ~/.cache ~/.npm/", "true"):
        assert shop.sh(f"{script}; mkdir -p ~/.cache/pip ~/.npm/_cacache && echo fine", KEEP) == "fine\n"


def state_of(box: Box) -> Path:
    (state,) = (box.account.home / ".claudebox" / "instances").iterdir()
    return state


def test_cache_is_not_dropped_while_a_box_runs(shop: Box) -> None:
    shop.sh("echo x >~/.npm/file; head -c 3000000 /dev/urandom >~/.npm/large", KEEP)
    with started(shop, KEEP, "echo ready; cat; cat ~/.npm/file") as first:
        dropped = shop.claudebox("--instances", "drop-cache", "--yes")
        assert "a box is running" in dropped.stderr
        assert first.communicate("", timeout=PATIENCE)[0] == "x\n", dropped.stderr


@pytest.mark.req("INST-03")
def test_cache_is_listed_and_dropped_while_the_rest_stays(shop: Box) -> None:
    shop.sh("head -c 3000000 /dev/urandom >~/.npm/large; mkdir -p ~/.cache/a/b && chmod 0 ~/.cache/a", KEEP)
    assert "of that 3M+ cache (to remove it: --instances drop-cache)" in shop.claudebox("--instances").stdout
    assert shop.claudebox("--instances", "drop-cache").returncode == 125  # nobody said yes
    assert (state_of(shop) / "cache" / "npm" / "large").exists()
    assert shop.claudebox("--instances", "drop-cache", "--yes").returncode == 0
    assert ((state_of(shop) / "cache").exists(), (state_of(shop) / "project").exists()) == (False, True)
    assert "cache" not in shop.claudebox("--instances").stdout


@pytest.mark.req("INST-03")
def test_links_that_a_box_has_left_are_never_followed(shop: Box) -> None:
    """Neither the size nor the removal leaves the cache, and a deep tree ends neither."""
    victim = shop.account.write(shop.account.home / "victim" / "file", "x" * 2_000_000)
    shop.sh(f"head -c 1500000 /dev/zero >~/.npm/a; ln -s {victim.parent} ~/.npm/link; ln -s {victim} ~/.npm/file", KEEP)
    shop.sh("cd ~/.cache && d=$(printf %0200d 0); for i in $(seq 40); do mkdir $d && cd -P $d; done; mkfifo pipe", KEEP)
    listed = shop.claudebox("--instances")
    assert "of that 1M+ cache" in listed.stdout, listed.stdout
    assert shop.claudebox("--instances", "drop-cache", "--yes").returncode == 0
    assert victim.stat().st_size == 2_000_000
    assert not (state_of(shop) / "cache").exists()


@pytest.mark.req("INST-03")
@pytest.mark.parametrize("closed", ["/var/cache/claudebox/npm", "/var/cache/claudebox"])
def test_closed_cache_is_dropped_all_the_same_and_keeps_no_box_from_starting(shop: Box, closed: str) -> None:
    """An agent can fill the disk where nobody may look, and take the way in from the next box."""
    shop.sh(f"head -c 3000000 /dev/zero >~/.npm/large; chmod 0 {closed}", KEEP)
    listed = shop.claudebox("--instances")
    assert "+ cache (to remove it: --instances drop-cache)" in listed.stdout, listed.stdout
    assert shop.sh("echo started", KEEP).strip() == "started"
    shop.sh(f"chmod 0 {closed}", KEEP)
    assert shop.claudebox("--instances", "drop-cache", "--yes").returncode == 0
    assert not (state_of(shop) / "cache").exists()
    assert shop.sh("ls ~/.npm", KEEP) == ""
