"""The flake: what it offers, and that its package is a working command.

nixpkgs and nix-index-database are stand-ins, made of this machine's programs: docs/nix.md says what that cannot show.
"""

from __future__ import annotations

import json
import re

import pytest
from tools.shared_files import shared_files

from claudebox import __version__
from flake.machine import SYSTEM, Flake, Package
from running.needs import NEEDS, programs_of

SYSTEMS = ["aarch64-linux", "x86_64-linux"]
# A system's configuration, as docs/nix.md has it, which takes the package from the overlay.
CONFIGURATION = """\
{
  inputs = {
    nixpkgs.url = "path:STUBS/stub-nixpkgs";
    nix-index-database.url = "path:STUBS/stub-nix-index-database";
    nix-index-database.inputs.nixpkgs.follows = "nixpkgs";
    claudebox.url = "FLAKE";
    claudebox.inputs.nixpkgs.follows = "nixpkgs";
    claudebox.inputs.nix-index-database.follows = "nix-index-database";
  };
  outputs = { self, nixpkgs, nix-index-database, claudebox }:
    let
      before = nixpkgs.legacyPackages.SYSTEM;
      after = before // claudebox.overlays.default after before;
    in
    { packages.SYSTEM.default = after.claudebox; };
}
"""


def says_its_version(output: str) -> bool:
    return output.splitlines()[:1] == [f"claudebox {__version__}"]


@pytest.mark.req("NIX-01")
def test_outputs(flake_of_each_nix: Flake) -> None:
    shown = json.loads(flake_of_each_nix.ask("flake show", "--json", flake_of_each_nix.url))
    assert {name: sorted(shown[name]) for name in shown} == {
        "apps": SYSTEMS,
        "checks": SYSTEMS,
        "devShells": SYSTEMS,
        "overlays": ["default"],
        "packages": SYSTEMS,
    }


@pytest.mark.req("NIX-01")
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("output", ["packages.{}.default", "checks.{}.package", "devShells.{}.default"])
def test_output_evaluates_for_both_systems(flake_of_each_nix: Flake, output: str, system: str) -> None:
    flake = flake_of_each_nix
    assert flake.ask("eval", "--raw", f"{flake.url}#{output.format(system)}.drvPath").endswith(".drv")


@pytest.mark.req("NIX-01")
def test_outputs_are_what_nix_expects(flake_of_each_nix: Flake) -> None:
    flake_of_each_nix.ask("flake check", "--no-build", flake_of_each_nix.url)


@pytest.mark.req("NIX-01", "NIX-02")
def test_check_of_the_package_passes(flake: Flake) -> None:
    flake.ask("build", "--no-link", f"{flake.url}#checks.{SYSTEM}.package")


@pytest.mark.req("NIX-01", "NIX-02")
@pytest.mark.exhaustive("tests of the quick run once more, in a build of Nix")
def test_checks_pass(flake: Flake) -> None:
    flake.ask("flake check", flake.url)


@pytest.mark.req("NIX-01", "SAND-01")
def test_package_is_named_after_the_program_and_its_version(package: Package) -> None:
    assert package.path.name.partition("-")[2] == f"claudebox-{__version__}"


@pytest.mark.req("NIX-01")
def test_package_has_the_shared_files(package: Package) -> None:
    prefix = package.machine.seen_from_here(package.path)
    # The manual page may be compressed.
    assert [place for place in shared_files() if not list(prefix.glob(f"{place}*"))] == []


@pytest.mark.req("NIX-03", "SAND-01")
def test_nix_run_gives_the_command(flake_of_each_nix: Flake) -> None:
    assert says_its_version(flake_of_each_nix.ask("run", flake_of_each_nix.url, "--", "--version"))


@pytest.mark.req("NIX-03", "SAND-01")
def test_nix_profile_install_gives_the_command(flake_of_each_nix: Flake) -> None:
    flake = flake_of_each_nix
    profile = flake.machine.directory / "profile"
    flake.ask("profile install", "--profile", str(profile), flake.url)
    done = flake.machine.run(f"{profile}/bin/claudebox", "--version")
    assert says_its_version(done.stdout), done.stderr


@pytest.mark.req("NIX-03")
def test_overlay_gives_the_package(flake: Flake) -> None:
    directory = flake.machine.directory / "configuration"
    values = {"STUBS": str(flake.stubs), "FLAKE": flake.url, "SYSTEM": SYSTEM}
    text = re.sub("|".join(values), lambda found: values[found[0]], CONFIGURATION)
    flake.machine.account.write(directory / "flake.nix", text)
    done = flake.machine.nix("run", "--offline", f"path:{directory}", "--", "--version")
    assert says_its_version(done.stdout), done.stderr


def test_development_shell_has_what_the_tests_need(flake: Flake) -> None:
    shell = flake.build(f"devShells.{SYSTEM}.default")
    there = {path.name for path in (flake.machine.seen_from_here(shell) / "bin").iterdir()}
    assert {*programs_of(NEEDS), "python3"} <= there
