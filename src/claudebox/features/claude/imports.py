"""Finds `@imports` of CLAUDE.md that lead out of the box: Claude leaves them out without a word."""

from __future__ import annotations

import posixpath

from claudebox.facts import Facts
from claudebox.features.claude import instructions
from claudebox.features.claude.configuration import Runnable
from claudebox.model import Finding
from claudebox.paths import expand_home, normalize, shorten_home

DEEPEST = 5  # files that import each other, as Claude follows them
MOST_NAMED, MOST_LOOKED_AT = 10, 100
LARGEST = 1 << 18  # bytes


def find_lost_imports(facts: Facts, box: Runnable) -> list[Finding]:
    """What the user's and the project's own instructions import, exists on this host, and is not in the box."""
    findings = []
    for file in instructions(facts):
        lost: list[str] = []
        _look_at(facts, box, file, DEEPEST, {file}, lost)
        names = [shorten_home(path, facts.home) for path in lost]
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            text = f"{shorten_home(file, facts.home)} imports {', '.join(names[:MOST_NAMED])}{more}"
            findings.append(Finding(Finding.NOTE, "left out", f"{text}: not in the box; --mount-ro PATH shows it"))
    return findings


def _look_at(facts: Facts, box: Runnable, file: str, depth: int, seen: set[str], lost: list[str]) -> None:
    """Look at each file once: an agent may have written thousands that import each other."""
    tree, claude = facts.tree, facts.claude
    for word in dict.fromkeys(imports((tree.read(file, limit=LARGEST) or b"").decode(errors="replace"))):
        path = normalize(posixpath.join(posixpath.dirname(file), expand_home(word, facts.home)))
        if path in seen or len(seen) > MOST_LOOKED_AT or not tree.is_file(path):
            continue
        seen.add(path)
        # The user's own directory of Claude has another place in the box.
        inside = path.replace(claude.users, claude.place, 1) if path.startswith(f"{claude.users}/") else path
        if not box.is_there(inside):
            lost.append(path)
        elif depth > 1:
            _look_at(facts, box, path, depth - 1, seen, lost)


def imports(text: str) -> list[str]:
    """The paths behind an `@`, outside of code. Whether they are meant so, only their existence tells."""
    words, is_code = [], False
    for line in text.splitlines() if "@" in text else ():
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code:
            prose = " ".join(line.split("`")[::2])
            words += [word[1:].partition("#")[0] for word in prose.split() if word.startswith("@")]
    return [word for word in words if word and word.isprintable()]
