"""Compares a file with what it was before the box: what in it would run something, and was not there."""

from __future__ import annotations

from claudebox.features.guard.git import is_include, runs_program, writes_elsewhere
from claudebox.host.git import config as gitconfig
from claudebox.model import Trace

RUN_BY_THEMSELVES = "preinstall install postinstall prepare preprepare postprepare prepublish dependencies".split()
TOO_LARGE = ("too large to be looked at",)


def added_pairs(old: Trace | None, new: Trace) -> list[tuple[str, str]]:
    """All that git's configuration says now and did not say before."""
    before = set(_pairs(old))
    return [pair for pair in _pairs(new) if pair not in before]


def _pairs(trace: Trace | None) -> list[tuple[str, str]]:
    content = (trace.content or b"") if trace is not None else b""
    return gitconfig.parse(content.decode(errors="surrogateescape"))


def running_pairs(old: Trace | None, new: Trace) -> tuple[str, ...] | None:
    if new.content is None:
        return TOO_LARGE
    return tuple(f"{name} = {value}" for name, value in added_pairs(old, new) if _runs(name, value)) or None


def _runs(name: str, value: str) -> bool:
    is_obeyed = is_include(name) or name == "core.hookspath"
    return is_obeyed or runs_program(name, value) or writes_elsewhere(name, value)


def commands(new: Trace) -> tuple[str, ...] | None:
    if new.content is None:
        return TOO_LARGE
    lines = new.content.decode(errors="replace").splitlines()
    return tuple(line.strip() for line in lines if line.split()[:1] in (["exec"], ["x"])) or None


def scripts(old: Trace | None, new: Trace) -> tuple[str, ...] | None:
    """The scripts of a package that changed. In a new package, only those count that run without being named."""
    if new.content is None:
        return TOO_LARGE
    before, after = _table(old, "scripts"), _table(new, "scripts")
    changed = [name for name, script in after.items() if before.get(name) != script]
    changed = changed if old is not None else [name for name in changed if name in RUN_BY_THEMSELVES]
    return tuple(changed) or None


def _table(trace: Trace | None, name: str) -> dict[str, object]:
    import json

    try:
        document = json.loads((trace.content or b"{}") if trace is not None else b"{}")
    except (ValueError, RecursionError):
        return {}
    table = document.get(name) if isinstance(document, dict) else None
    return table if isinstance(table, dict) else {}


def build_system(old: Trace | None, new: Trace) -> tuple[str, ...] | None:
    """Whether what builds a package has changed: unlike dependencies, that changes rarely.

    In a new package it counts if the package is built by code of its own.
    """
    if new.content is None:
        return TOO_LARGE
    before, after = _toml_table(old, "build-system"), _toml_table(new, "build-system")
    if old is None:
        return ("build-system",) if "backend-path" in after else None
    return ("build-system",) if before != after else None


def _toml_table(trace: Trace | None, name: str) -> dict[str, object]:
    import tomllib

    try:
        document = tomllib.loads(((trace.content or b"") if trace is not None else b"").decode())
    except (ValueError, RecursionError):
        return {}
    table = document.get(name)
    return table if isinstance(table, dict) else {}
