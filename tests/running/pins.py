"""The versions to test with, which pyproject.toml names, and where they are kept."""

import os
import pwd
import tomllib
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parent.parent.parent


def read() -> dict[str, Any]:
    with open(CHECKOUT / "pyproject.toml", "rb") as file:
        return tomllib.load(file)


def _cache() -> Path:
    """Outside the checkout, and where the accounts that root tests as can read it."""
    if told := os.environ.get("CLAUDEBOX_TEST_CACHE"):
        return Path(told)
    if os.geteuid() == 0:
        return Path("/var/cache/claudebox-tests")
    home = os.environ.get("HOME") or pwd.getpwuid(os.geteuid()).pw_dir
    return Path(os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache") / "claudebox-tests"


_PINS = read()["tool"]["claudebox-tests"]
CACHE = _cache()
CLAUDE: str = _PINS["claude"]
OLD_CLAUDE: str = _PINS["old-claude"]
_AGENTS: dict[str, str] = _PINS["agents"]
_SUITES: dict[str, list[str]] = _PINS["suites"]
SUITES: tuple[str, ...] = tuple(_SUITES)


def claude(version: str = CLAUDE) -> str:
    """Where that version is, or will be."""
    return str(CACHE / f"claude-{version}" / "node_modules/.bin/claude")


def agent(name: str) -> str:
    """Where another agent is, or will be."""
    return str(CACHE / _AGENTS[name].replace("/", "-") / f"node_modules/.bin/{name}")


def agent_package(name: str) -> str:
    """Its package, with the version."""
    return _AGENTS[name]


def packages(program: str, suite: str) -> list[str]:
    """Those of the suite that are pinned, and that hold the program or come with it."""
    return [name for name in _SUITES[suite] if name.startswith("nix-bin=") == (program == "nix")]


def newer(program: str, suite: str) -> str:
    """A program of another release of Debian; see tools/newer-programs."""
    tree = f"{suite}-nix" if program == "nix" else suite
    for name in packages(program, suite)[:1]:
        tree += "-" + name.partition("=")[2]
    return str(CACHE / tree / ("usr/sbin/nft" if program == "nft" else f"usr/bin/{program}"))
