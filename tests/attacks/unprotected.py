"""A box that lacks one protection, to show that the attack has success then."""

import os
import shutil
import sys
from dataclasses import replace

from conftest import CHECKOUT, Box

BWRAP = shutil.which("bwrap") or "/usr/bin/bwrap"
FILTER = "--seccomp"
NO_NAMESPACES = "--disable-userns"
VALUES = {FILTER: 1, NO_NAMESPACES: 0}
# Passes everything on to bwrap but some options with their values.
LEAVES_OUT = """#!/bin/bash
declare -A values=({values})
words=() skip=0
for word; do
    if [ $skip -gt 0 ]; then skip=$((skip - 1)); continue; fi
    if [ "${{values[$word]+known}}" ]; then skip=${{values[$word]}}; continue; fi
    words+=("$word")
done
exec {bwrap} "${{words[@]}}"
"""


def without(box: Box, *options: str) -> Box:
    """The same box, made without these options of bwrap."""
    values = " ".join(f"[{option}]={VALUES[option]}" for option in options)
    script = LEAVES_OUT.format(values=values, bwrap=BWRAP)
    path = box.account.write(box.account.home / "standins" / "bwrap", script, 0o755)
    environ = {**box.account.environ, "CLAUDEBOX_BWRAP": str(path)}
    return replace(box, account=replace(box.account, environ=environ))


# claudebox that gives the box the user's terminal.
SHARES_THE_TERMINAL = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from claudebox import cli
from claudebox.sandbox import launch
launch.open_users_terminal = lambda: -1
cli.main()
"""
ON_THE_USERS_TERMINAL = (os.path.realpath(sys.executable), "-I", "-c", SHARES_THE_TERMINAL, str(CHECKOUT / "src"))
