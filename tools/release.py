#!/usr/bin/env python3
"""Prepare and build a release. docs/releasing.md says what comes before and after.

    tools/release.py bump 0.2.0    write the version everywhere, and its heading into the changelog
    tools/release.py build         check the tree, build all packages into dist, write their checksums

Nothing is published, tagged or signed here: that takes a person's key.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import build as packages

ROOT = packages.ROOT
VERSION_FILE = "src/claudebox/__init__.py"
CHANGELOG = "CHANGELOG.md"
UNRELEASED = "## Unreleased\n"
# Where the version is part of what a screen shows. Elsewhere a version is history.
PAGES = ("README.md", "docs/working-day.md", "docs/profiles.md", "docs/pictures/first-screen.svg")
GOLDEN = ("tests/screens/golden", "tests/explain/golden")
SPELLED = ("claudebox {}", '"claudebox": "{}"')
FORM = re.compile(r"\d+\.\d+\.\d+")
CHECKSUMS = "SHA256SUMS"


def refuse(what: str, hint: str = "") -> None:
    sys.stderr.write(f"error: {what}\n" + (f"\nhint: {hint}\n" if hint else ""))
    sys.exit(125)


def bump(new: str) -> None:
    old = packages.version()
    if not FORM.fullmatch(new):
        refuse(f"`{new}` is not a version", "tools/release.py bump 0.2.0")
    if _numbers(new) <= _numbers(old):
        refuse(f"{new} is not later than {old}")
    changelog = (ROOT / CHANGELOG).read_text()
    if UNRELEASED not in changelog or not _section(changelog, "Unreleased").strip():
        refuse(f"{CHANGELOG} has nothing below `{UNRELEASED.strip()}`", "say what users notice")
    heading = f"{UNRELEASED}\n## {new} - {time.strftime('%Y-%m-%d', time.gmtime())}\n"
    _replace(CHANGELOG, UNRELEASED, heading)
    _replace(VERSION_FILE, f'__version__ = "{old}"', f'__version__ = "{new}"')
    golden = [str(path.relative_to(ROOT)) for place in GOLDEN for path in (ROOT / place).rglob("*") if path.is_file()]
    for name in (*PAGES, *golden):
        for spelled in SPELLED:
            _replace(name, spelled.format(old), spelled.format(new))
    print(f"{old} -> {new}; look at: git diff")


def _numbers(version: str) -> list[int]:
    """What is under development comes before what is released."""
    return [*(int(part) for part in version.split(".") if part.isdigit()), -1 if "dev" in version else 0]


def _replace(name: str, old: str, new: str) -> None:
    path = ROOT / name
    content = path.read_bytes()
    if old.encode() in content:
        path.write_bytes(content.replace(old.encode(), new.encode()))


def _section(changelog: str, title: str) -> str:
    """What the changelog says below a heading."""
    _, _, rest = changelog.partition(f"## {title}")
    return re.split(r"^## ", rest.partition("\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def check_tree() -> None:
    version = packages.version()
    changelog = (ROOT / CHANGELOG).read_text()
    if not re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        refuse(f"{CHANGELOG} has no heading for {version} with its date", f"tools/release.py bump {version}")
    if not _section(changelog, version).strip():
        refuse(f"{CHANGELOG} says nothing about {version}")
    if _section(changelog, "Unreleased").strip():
        refuse(f"{CHANGELOG} has something that is not released", "tools/release.py bump VERSION")
    changed = _git("status", "--porcelain")
    if changed:
        refuse(f"the tree is not clean:\n{changed}", "git commit")


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        refuse(done.stderr.strip())
    return done.stdout.rstrip()


def build() -> None:
    check_tree()
    directory = ROOT / "dist" / packages.version()
    if directory.exists():
        refuse(f"{directory} is there already", f"rm -r {directory}")
    directory.mkdir(parents=True)
    made = [make(directory) for make in packages.PACKAGES.values()]
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(made)]
    (directory / CHECKSUMS).write_text("".join(sums))
    for path in (*made, directory / CHECKSUMS):
        print(path)


def main() -> None:
    match sys.argv[1:]:
        case ["bump", new]:
            bump(new)
        case ["build"]:
            build()
        case _:
            sys.stderr.write(__doc__ or "")
            sys.exit(125)


if __name__ == "__main__":
    main()
