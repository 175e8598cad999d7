"""The flake: what it offers, and that its package is a working command.

nixpkgs and nix-index-database are stand-ins, made of this machine's programs: docs/nix.md says what that cannot show.
"""

import json
import re
from typing import Any

import pytest
from tools.shared_files import shared_files

from claudebox import __version__
from conftest import CHECKOUT
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


# flake.lock: it belongs to flake.nix, and says exactly which sources are meant.


LOCK = json.loads((CHECKOUT / "flake.lock").read_text())


def inputs_of(flake: Flake) -> Any:
    """The inputs as flake.nix has them."""
    done = flake.machine.nix("eval", "--impure", "--json", "--expr", f"(import {flake.checkout}/flake.nix).inputs")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.req("NIX-02")
def test_lock_has_the_inputs_and_no_others(flake: Flake) -> None:
    nodes = LOCK["nodes"]
    inputs = inputs_of(flake)
    assert (LOCK["version"], LOCK["root"], nodes["root"]) == (7, "root", {"inputs": {name: name for name in inputs}})
    assert nodes.keys() == {"root", *inputs}
    for name, declared in inputs.items():
        original = nodes[name]["original"]
        url = "/".join(original[part] for part in ("owner", "repo", "ref") if part in original)
        assert f"{original['type']}:{url}" == declared["url"]
        follows = {inner: [value["follows"]] for inner, value in declared.get("inputs", {}).items()}
        assert nodes[name].get("inputs", {}) == follows


@pytest.mark.req("NIX-02")
@pytest.mark.parametrize("name", sorted(LOCK["nodes"].keys() - {"root"}))
def test_source_is_pinned(name: str) -> None:
    locked, original = LOCK["nodes"][name]["locked"], LOCK["nodes"][name]["original"]
    assert {part: original[part] for part in ("type", "owner", "repo")}.items() <= locked.items()
    assert re.fullmatch(r"[0-9a-f]{40}", locked["rev"])
    assert re.fullmatch(r"sha256-[A-Za-z0-9+/]{43}=", locked["narHash"])
    assert isinstance(locked["lastModified"], int)


@pytest.mark.req("NIX-02")
def test_nix_finds_nothing_to_change(flake_of_each_nix: Flake) -> None:
    assert locks(flake_of_each_nix)


def locks(flake: Flake) -> bool:
    """Whether Nix takes the lock as it is. For any other it would have to fetch something, and cannot."""
    done = flake.machine.nix("flake", "metadata", "--offline", "--no-update-lock-file", flake.url)
    assert done.returncode == 0 or "error:" in done.stderr
    return done.returncode == 0


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("flake.nix", "nixpkgs/nixos-unstable", "nixpkgs/nixos-26.05"),
        ("flake.nix", 'inputs.nixpkgs.follows = "nixpkgs";', ""),
        ("flake.lock", '"nix-index-database": "nix-index-database",', ""),
        ("flake.lock", '"ref": "nixos-unstable",', ""),
        ("flake.lock", '"owner": "nix-community"', '"owner": "somebody"'),
    ],
)
def test_lock_of_other_inputs_is_found(flake: Flake, file: str, old: str, new: str) -> None:
    spoiled = flake.copy("spoiled")
    spoiled.replace(file, old, new)
    assert not locks(spoiled)


# Mistakes in the flake that somebody could make: each of them has to be found by `nix flake check`.


PACKAGE = "nix/package.nix"
# Everything of the source but one module that no start needs.
ALL_BUT_THE_DEMO = "\n".join(
    f"      ../{path.relative_to(CHECKOUT)}"
    for room in ("src/claudebox", "src/claudebox/commands")
    for path in sorted((CHECKOUT / room).iterdir())
    if path.name not in ("__pycache__", "commands", "demo.py")
)
MISTAKES = {
    "a tool missing from PATH": (PACKAGE, "    ripgrep\n", "", "not on PATH: ['rg']"),
    "comma missing from PATH": (PACKAGE, "    comma-with-db\n", "", "not on PATH: [',']"),
    "a package renamed": (PACKAGE, "bubblewrap", "bubble-wrap", "bubble-wrap"),
    "an input's package renamed": ("flake.nix", "comma-with-db", "comma-with-database", "comma-with-db"),
    "a program misspelt": (PACKAGE, '"pasta"', '"paste"', "not a program"),
    "a program forgotten": (PACKAGE, '    nft = lib.getExe\' nftables "nft";\n', "", "PROGRAMS: "),
    "certificates elsewhere": (PACKAGE, "ca-bundle.crt", "bundle.crt", "bundle.crt"),
    "a module left out": (PACKAGE, "      ../src\n", f"{ALL_BUT_THE_DEMO}\n", "not in the package: ['commands/demo"),
    "the command left out": (PACKAGE, "      ../bin\n", "", "bin/claudebox"),
    "another version": (PACKAGE, "inherit version;", 'version = "9.9.9";', "claudebox-9.9.9"),
    "nothing pinned": (PACKAGE, "cat ${pinned} > src/claudebox/host/pinned.py", "true", "PROGRAMS: {}"),
}


def test_flake_without_a_mistake_passes(flake: Flake) -> None:
    assert check(flake) == ""


@pytest.mark.req("NIX-02")
@pytest.mark.exhaustive("each mistake builds the flake once more")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_found(flake: Flake, mistake: str) -> None:
    file, old, new, complaint = MISTAKES[mistake]
    spoiled = flake.copy(mistake.replace(" ", "-").replace("'", ""))
    spoiled.replace(file, old, new)
    found = check(spoiled)
    assert found
    assert complaint in found


def check(flake: Flake) -> str:
    """What Nix complains about when it builds the check of the package."""
    done = flake.nix("build", "--no-link", "--print-build-logs", f"{flake.url}#checks.{SYSTEM}.package")
    return "" if done.returncode == 0 else done.stderr
