"""Fail unless a built claudebox is whole: usage: check_package.py SITE-PACKAGES SOURCE.

Every file of the source is there, and so is every program that the package was given. Prints the paths of these.
"""

from __future__ import annotations

import os
import sys


def main(site_packages: str, source: str) -> None:
    missing = files_below(f"{source}/claudebox") - files_below(f"{site_packages}/claudebox")
    assert not missing, f"not in the package: {sorted(missing)}"
    sys.path.insert(0, site_packages)
    check_pinned()


def files_below(directory: str) -> set[str]:
    return {
        os.path.relpath(os.path.join(place, name), directory)
        for place, _, names in os.walk(directory)
        for name in names
        if not name.endswith(".pyc")
    }


def check_pinned() -> None:
    from claudebox.host import pinned
    from claudebox.host.system import NIX_TOOLS

    assert pinned.PROGRAMS.keys() == {"bwrap", "git", "nft", "nix", "pasta"}, f"PROGRAMS: {pinned.PROGRAMS}"
    strays = [path for path in pinned.PROGRAMS.values() if not is_program(path)]
    assert not strays, f"not a program: {strays}"
    absent = [tool for tool in NIX_TOOLS if not any(is_program(f"{place}/{tool}") for place in pinned.PATH)]
    assert not absent, f"not on PATH: {absent}"
    assert os.path.getsize(pinned.CERTIFICATES), f"no certificates: {pinned.CERTIFICATES}"
    print(*pinned.PROGRAMS.values(), *pinned.PATH, pinned.CERTIFICATES, sep="\n")


def is_program(path: str) -> bool:
    return os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK)


if __name__ == "__main__":
    main(*sys.argv[1:])
