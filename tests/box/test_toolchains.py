"""Programs of toolchains in the home run in the box, at the version that the host's PATH has, as an ordinary user."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Box

pytestmark = pytest.mark.req("WORK-01", "SAND-10")

CANARY = "canary-5e2f81"
SYSTEM = "/usr/local/bin:/usr/bin:/bin"


def with_path(box: Box, *entries: Path) -> Box:
    path = ":".join([*map(str, entries), SYSTEM])
    return replace(box, account=replace(box.account, environ={**box.account.environ, "PATH": path}))


def environment(box: Box, where: Path) -> Path:
    """A real Python of its own, as pyenv, pipx and uv keep them: a directory with `bin` and `lib`."""
    where.parent.mkdir(parents=True, exist_ok=True)
    box.account.own(box.account.home)
    made = box.account.run("/usr/bin/python3", "-m", "venv", "--without-pip", str(where))
    assert made.returncode == 0, made.stderr
    return where


def same_on_both(box: Box, script: str) -> str:
    on_host = box.account.run("sh", "-c", script, cwd=box.project)
    in_box = box.inside("sh", "-c", script, options=("--quiet",))
    assert (in_box.returncode, in_box.stdout) == (0, on_host.stdout), in_box.stderr
    return in_box.stdout


@pytest.mark.npm
def test_node_of_nvm(shop: Box) -> None:
    version = shop.account.home / ".nvm" / "versions" / "node" / "v99.1.0"
    (version / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("node") or "", version / "bin" / "node")
    shop.account.write(version / "bin" / "tool", "#!/usr/bin/env node\nconsole.log(process.execPath)\n", 0o755)
    shop.account.write(version / "etc" / "npmrc", f"//registry.example/:_authToken={CANARY}\n")
    shop.account.own(shop.account.home)
    box = with_path(shop, version / "bin")
    assert same_on_both(box, "node --version && tool").splitlines()[1:] == [f"{version}/bin/node"]
    assert box.sh(f"cat {version}/etc/npmrc; touch {version}/bin/x 2>/dev/null || echo read-only") == "read-only\n"


def test_python_of_pyenv_at_the_version_of_the_project(shop: Box) -> None:
    root = shop.account.home / ".pyenv"
    for version in ("3.98.0", "3.99.1"):
        environment(shop, root / "versions" / version)
    shim = f'#!/bin/sh\nexec "{root}/versions/$(cat .python-version)/bin/${{0##*/}}" "$@"\n'
    shop.account.write(root / "shims" / "python3", shim, 0o755)
    shop.account.write(shop.project / ".python-version", "3.99.1\n")
    box = with_path(shop, root / "shims")
    assert same_on_both(box, "python3 -c 'import sys; print(sys.prefix)'") == f"{root}/versions/3.99.1\n"
    assert box.sh(f"ls {root}/versions") == "3.99.1\n"


def test_programs_of_pipx_and_uv_among_others(shop: Box) -> None:
    home = shop.account.home
    for kind in ("pipx/venvs", "uv/tools"):
        tree = environment(shop, home / ".local" / "share" / kind / "hello")
        name = kind.partition("/")[0]
        program = f"#!{tree}/bin/python3\nimport sys\nprint(sys.prefix)\n"
        shop.account.write(tree / "bin" / f"hello-{name}", program, 0o755)
        shop.account.write(tree / ("pipx_metadata.json" if name == "pipx" else "uv-receipt.toml"), CANARY)
        (home / ".local" / "bin").mkdir(exist_ok=True)
        (home / ".local" / "bin" / f"hello-{name}").symlink_to(tree / "bin" / f"hello-{name}")
    shutil.copy("/usr/bin/env", home / ".local" / "bin" / "just")  # a real program, with the name of one that is known
    shop.account.write(home / ".local" / "bin" / "deploy", f"#!/bin/sh\necho {CANARY}\n", 0o755)
    shop.account.own(home)
    box = with_path(shop, home / ".local" / "bin")
    same_on_both(box, "hello-pipx && hello-uv && just --version")
    assert box.sh("ls ~/.local/bin").split() == ["hello-pipx", "hello-uv", "just"]
    assert CANARY not in box.sh("grep -rs canary ~/.local; true")


def test_virtual_environment_of_the_project_finds_its_python(shop: Box) -> None:
    python = environment(shop, shop.account.home / ".local" / "share" / "uv" / "python" / "cpython-3.99")
    made = shop.account.run(
        f"{python}/bin/python3", "-m", "venv", "--without-pip", "--copies", ".venv", cwd=shop.project
    )
    assert made.returncode == 0, made.stderr
    shop.account.write(shop.project / ".venv" / "pyvenv.cfg", f"home = {python}/bin\n")
    box = with_path(shop, shop.account.home / ".bun" / "bin")
    assert box.sh(f"ls {python}/bin/python3") == f"{python}/bin/python3\n"


def test_off_leaves_all_of_it_outside(shop: Box) -> None:
    program = shop.account.write(shop.account.home / ".bun" / "bin" / "bun", "#!/bin/sh\necho bun\n", 0o755)
    box = with_path(shop, program.parent)
    assert same_on_both(box, "bun") == "bun\n"
    assert box.inside("bun", options=("--toolchains", "off")).returncode != 0
    assert not box.sh("ls -d ~/.bun/bin 2>/dev/null; true", ("--toolchains", "off"))
