"""Mistakes in the flake that somebody could make: each of them has to be found by `nix flake check`."""

from __future__ import annotations

import pytest

from conftest import CHECKOUT
from flake.machine import SYSTEM, Flake

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
