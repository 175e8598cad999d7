"""Decides which program runs in the box, and what gives Ctrl-C back to it."""

from __future__ import annotations

import posixpath

from claudebox.contribution import Contribution, Draft
from claudebox.facts import Facts
from claudebox.host.system import NIX_STORE
from claudebox.host.tree import Tree
from claudebox.model import Finding, Origin, Plan, Program
from claudebox.paths import is_inside
from claudebox.problem import Problem
from claudebox.secret_values import secret_value


def decide(facts: Facts, _: Draft) -> Contribution:
    wrapper = signal_shim(facts.tree, facts.host.python)
    if facts.request.run is not None:
        program = Program("command", facts.request.run, Origin.of_option("--run"))
    elif facts.request.shell or (facts.install is None and not facts.starts_agent):
        program = Program("shell", (facts.system.shell,), Origin.of_option("--shell"))
    else:
        return Contribution(wrapper=wrapper)  # the feature of the agent decides how it is started
    return Contribution(wrapper=wrapper, decided=(("program", program),))


def complete(_: Facts, __: Draft, plan: Plan) -> Plan:
    """Warn of secret arguments: everybody on this host can read the arguments of a program, and so can the agent."""
    findings = [
        Finding(Finding.SECRET, f"argument {number}", f"looks secret ({reason})")
        for number, argument in enumerate(plan.program.argv)
        if (reason := secret_value(argument))
    ]
    return plan.replace(findings=(*plan.findings, *findings))


def signal_shim(tree: Tree, python: str) -> tuple[str, ...]:
    """The words before the program's own that give Ctrl-C back to it.

    bwrap would die of the first Ctrl-C, and take with it a program that wants to finish. So bwrap is started with
    SIGINT and SIGQUIT ignored, which the program inherits unless something in between undoes it.
    """
    env = tree.resolve("/usr/bin/env")
    if env is not None and _resets_signals(tree, env):
        return ("/usr/bin/env", "--default-signal=INT,QUIT")
    code = "import os,signal,sys;[signal.signal(s,signal.SIG_DFL) for s in(2,3)];os.execvp(sys.argv[1],sys.argv[1:])"
    if is_inside(python, "/usr") or is_inside(python, NIX_STORE):
        return (python, "-I", "-S", "-c", code)
    raise Problem("neither GNU env nor a system Python was found for the box", "install GNU coreutils or python3")


def _resets_signals(tree: Tree, env: str) -> bool:
    """Whether this `env` has --default-signal: GNU since 8.31, uutils since 0.6, busybox never."""
    if posixpath.basename(env) == "busybox":
        return False
    return not ("/cargo/" in env and 'VERSION_ID="25.10"' in (tree.text("/etc/os-release") or ""))
