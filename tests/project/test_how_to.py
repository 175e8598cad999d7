"""What README, how-to pages and tutorial show is what happens: each command is run, and its output compared."""

import re
import subprocess
from pathlib import Path

import pytest

from conftest import CHECKOUT, Account
from running.needs import needed

PAGES = sorted([*(CHECKOUT / "docs/how-to").glob("*.md"), CHECKOUT / "docs/tutorial.md", CHECKOUT / "README.md"])
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SET_UP = re.compile(r"^<!-- set up for the test:\n(.*?)^-->$", re.DOTALL | re.MULTILINE)
MARK = "=== "


def steps(page: Path) -> list[tuple[str, str]]:
    """Commands of a page, each with what it is said to print."""
    found = []
    for block in BLOCK.findall(page.read_text()):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = step.partition("\n")
            found.append((command, output))
    return found


def as_pattern(output: str) -> str:
    """`…` stands for anything, also for several lines if it is alone on one."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + "\n" for line in output.splitlines()
    ]
    return "".join(lines)


@pytest.fixture
@needed("box", "git")
def reader(user: Account) -> Account:
    """Somebody who follows a page."""
    user.write(user.home / "bin/claudebox", f'#!/bin/sh\nexec {CHECKOUT}/claudebox "$@"\n', mode=0o755)
    user.environ["PATH"] = f"{user.home}/bin:{user.environ['PATH']}"
    return user


@pytest.mark.parametrize("page", [page for page in PAGES if steps(page)], ids=lambda page: page.stem)
def test_commands_do_what_the_page_says(reader: Account, page: Path) -> None:
    project = reader.write(reader.home / "src/shop/.keep").parent
    set_up = SET_UP.search(page.read_text())
    script = "set -u\n" + (set_up[1] if set_up else "")
    commands = steps(page)
    for number, (command, _) in enumerate(commands):
        script += f"\necho '{MARK}{number}'\n{command}\n"
    done: subprocess.CompletedProcess[str] = reader.run("bash", "-c", f"exec 2>&1\n{script}", cwd=project, timeout=300)
    shown = re.split(rf"^{MARK}\d+\n", done.stdout, flags=re.MULTILINE)
    assert len(shown) == len(commands) + 1, done.stdout
    for (command, expected), printed in zip(commands, shown[1:], strict=True):
        heard = re.sub(r"^(?:claudebox: |· ).*\n(?: .*\n)*", "", printed, flags=re.MULTILINE)
        pattern = as_pattern(expected.replace("/home/maya", str(reader.home)))
        assert re.fullmatch(pattern, heard) or re.fullmatch(pattern, printed), f"{page.name}: $ {command}\n{printed}"


def test_most_pages_have_commands_that_are_run() -> None:
    without = [page.stem for page in PAGES if not steps(page)]
    assert without == ["database", "editor", "nixos", "ubuntu-apparmor", "wsl"]


@pytest.mark.parametrize("page", [page for page in PAGES if not steps(page)], ids=lambda page: page.stem)
def test_page_without_them_says_what_was_tried(page: Path) -> None:
    # The schema of editor.md is held by tests/layers/test_editor_schema.py, the ports by tests/network/test_ports.py.
    assert page.stem in ("editor", "database") or re.search(r"not tried|not at hand", page.read_text())
