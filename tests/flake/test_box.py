"""The built package at work: a real box on an ordinary machine with Nix, and where there is nothing but the store."""

import shlex
from pathlib import Path

import pytest

from claudebox.host.system import NIX_TOOLS, PLAIN_PATH
from flake.machine import Flake, Machine, NixOS, Package

ON_PATH = (
    *("bashInteractive", "coreutils", "git", "curl", "jq", "ripgrep", "fd", "nix", "comma-with-db", "gnugrep"),
    *("gnused", "gawk", "findutils", "gnutar", "gzip", "less", "which", "procps", "diffutils"),
)
LOOK_UP = "for tool in {tools}; do command -v $tool || echo missing: $tool; done"


@pytest.fixture(params=["plain", "nixos"])
def machine(request: pytest.FixtureRequest, package: Package) -> Machine:
    here = package.machine
    tools = {name: package.tool(name) for name in ("env", "sh")}
    return here if request.param == "plain" else NixOS(here.account, here.nix_program, tools)


@pytest.fixture
def project(flake: Flake) -> Path:
    account = flake.machine.account
    return account.write(account.home / "src/shop/README.md", "a shop\n").parent


def in_box(
    package: Package, machine: Machine, project: Path, script: str, env: dict[str, str] | None = None
) -> list[str]:
    """The lines that a script prints in the box."""
    done = machine.run(package.command, "--yes", "--run", "sh", "-c", script, cwd=project, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.req("NIX-02")
def test_paths_are_pinned(package: Package) -> None:
    names = {name: Path(path).parts[-3].partition("-")[2] for name, path in package.programs.items()}
    assert names == {"bwrap": "bubblewrap", "git": "git", "nft": "nftables", "nix": "nix", "pasta": "passt"}
    assert tuple(Path(path).parent.name.partition("-")[2] for path in package.search_path) == ON_PATH
    pinned = [*package.programs.values(), *package.search_path, package.certificates]
    assert [path for path in pinned if not package.machine.seen_from_here(path).exists()] == []
    assert all(path.startswith("/nix/store/") for path in pinned)


@pytest.mark.req("NIX-02")
def test_pinned_paths_are_kept_with_the_package(package: Package) -> None:
    """What a package refers to is not collected as garbage while the package is there."""
    done = package.machine.nix("path-info", "--offline", "--recursive", str(package.path))
    kept = set(done.stdout.split())
    pinned = [*package.programs.values(), *package.search_path, package.certificates]
    assert {"/".join(Path(path).parts[:4])[1:] for path in pinned} <= kept, done.stderr


@pytest.mark.req("SAND-10", "NIX-02")
def test_path_is_what_the_package_brings(package: Package, machine: Machine, project: Path) -> None:
    path = in_box(package, machine, project, 'echo "$PATH"', {"PATH": "/usr/games:/opt/bin"})[0].split(":")
    system = [] if isinstance(machine, NixOS) else [place for place in PLAIN_PATH if Path(place).is_dir()]
    assert path == [*package.search_path, *system]


@pytest.mark.req("SAND-10", "TOOL-01")
def test_tools_are_those_of_the_package(package: Package, machine: Machine, project: Path) -> None:
    found = in_box(package, machine, project, LOOK_UP.format(tools=shlex.join(NIX_TOOLS)))
    assert found == [package.tool(name) for name in NIX_TOOLS]


@pytest.mark.req("SAND-11", "TOOL-01")
def test_tools_run(package: Package, machine: Machine, project: Path) -> None:
    script = "git --version | cut -d ' ' -f 1,2; echo one | sed s/one/two/; , hello; printf '%s' \"$0\" | wc -c"
    assert in_box(package, machine, project, script)[:3] == ["git version", "two", ", of the stub"]


@pytest.mark.req("SAND-13")
def test_certificates_are_there(package: Package, machine: Machine, project: Path) -> None:
    script = 'grep -c "BEGIN CERTIFICATE" "$SSL_CERT_FILE"; echo "$SSL_CERT_FILE"'
    count, path = in_box(package, machine, project, script)
    assert int(count) > 0
    if isinstance(machine, NixOS):
        assert path == package.certificates


@pytest.mark.req("SAND-06")
def test_store_is_there_and_read_only(package: Package, machine: Machine, project: Path) -> None:
    script = f"test -x {package.command} && ! touch /nix/store/x 2>/dev/null && echo read-only"
    assert in_box(package, machine, project, script) == ["read-only"]


@pytest.mark.req("NIX-02")
def test_programs_are_the_pinned_ones(package: Package, machine: Machine, project: Path) -> None:
    """Whatever PATH says: a project can set that, with direnv for one."""
    trap = machine.account.home / "trap"
    for name in ("bwrap", "pasta", "nft", "git", "nix"):
        machine.account.write(trap / name, f"#!/bin/sh\ntouch {trap}/sprung\n", mode=0o755)
    env = {"PATH": str(trap)}
    shown = machine.run(package.command, "--check", cwd=project, env=env)
    told = "".join(shown.stdout.split())  # long paths are wrapped
    assert [name for name in ("bwrap", "pasta", "nft") if package.programs[name] not in told] == []
    assert in_box(package, machine, project, "echo inside", env) == ["inside"]
    assert not (trap / "sprung").exists()


def test_modules_are_those_of_the_package(package: Package, machine: Machine, project: Path) -> None:
    sprung = project / "sprung"
    for name in ("claudebox/__init__", "sitecustomize", "gc"):
        machine.account.write(project / f"{name}.py", f"open({str(sprung)!r}, 'a').write({name!r})\n")
    assert in_box(package, machine, project, "echo inside", {"PYTHONPATH": str(project)}) == ["inside"]
    assert not sprung.exists()
