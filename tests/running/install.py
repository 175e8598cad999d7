"""Getting what the chosen tests need."""

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from running import needs, pins

INSTALL = pins.CHECKOUT / "tools" / "install"
NEWER = pins.CHECKOUT / "tools" / "newer-programs"
STAMP = "claudebox-tests"
PIP = ("-I", "-m", "pip", "--disable-pip-version-check", "--quiet")


def say(text: str) -> None:
    print(f"claudebox: {text}", file=sys.stderr, flush=True)


def command_to_install(programs: Sequence[str]) -> str:
    """What a person would type."""
    done = subprocess.run([INSTALL, "--show", *programs], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def install_tools(venv: Path) -> None:
    """pytest and the linters, as pyproject.toml names them, unless they are there."""
    groups = pins.read()["dependency-groups"]
    wanted = [*groups["test"], *groups["lint"], *groups["docs"], *groups["below"]]
    stamp = venv / STAMP
    text = "\n".join(wanted)
    if stamp.exists() and stamp.read_text() == text:
        return
    python = venv / "bin" / "python"
    if subprocess.run([sys.executable, "-I", "-c", "import ensurepip"], capture_output=True, check=False).returncode:
        subprocess.run([INSTALL, "ensurepip"], check=False)
    say("installing the test tools, as pyproject.toml names them, into .venv")
    if subprocess.run([python, *PIP, "--version"], capture_output=True, check=False).returncode:
        subprocess.run([python, "-I", "-m", "ensurepip"], stdout=subprocess.DEVNULL, check=True)
    subprocess.run([python, *PIP, "install", *wanted], check=True)
    stamp.write_text(text)


def install(names: Iterable[str]) -> None:
    """What can be had of these needs. What cannot is missing later, when the tests look."""
    wanted = needs.in_order(names)
    absent = [program for program in needs.programs_of(names) if not needs.find_program(program)]
    if absent:
        # All at once, and one by one if that fails: not every distribution has every program.
        subprocess.run([INSTALL, *absent], stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
        for program in absent:
            if not needs.find_program(program):
                subprocess.run([INSTALL, program], stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    for need in filter(needs.Need.missing, wanted):
        if need.provider == needs.CLAUDE:
            install_with_npm(pins.claude(need.argument), f"@anthropic-ai/claude-code@{need.argument}")
        elif need.provider == needs.AGENT:
            install_with_npm(pins.agent(need.argument), pins.agent_package(need.argument))
        elif need.provider == needs.DEBIAN:
            install_newer("nix" if need.name.endswith("_nix") else "bwrap", need.argument)


def install_with_npm(program: str, package: str) -> None:
    npm = needs.find_program("npm")
    if npm is None:
        return
    place = Path(program).parents[2]
    place.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(place)]
    say(f"  npm install --prefix {place} {package}")
    environ = {**os.environ, "PATH": needs.SYSTEM_PATH}
    done = subprocess.run(
        [*command, package],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        check=False,
    )
    if done.returncode:
        say("that failed")


def install_newer(program: str, suite: str) -> None:
    if needs.find_program("apt-get") is None:
        return
    environ = {**os.environ, "CLAUDEBOX_TEST_CACHE": str(pins.CACHE)}
    command = [str(NEWER), program, suite, *pins.packages(program, suite)]
    subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
