"""Finds credentials in what somebody mounts: a file enters with a warning, in a directory of the home they are hidden.

A file counts if the table of the project's secrets says that all of it is one, or knows its name and finds a token in
it. In a program's own directory, which begins with a dot, every name counts that would make a variable secret, and
every small file with a token. Elsewhere in the home are documents and source code, where `auth` may be a chapter.
"""

from __future__ import annotations

from claudebox.facts import Contribution, Draft, Facts
from claudebox.features import Feature
from claudebox.features.secrets.table import ALL, EMPTY, kind_of
from claudebox.host.secrets import SECRET_PLACES, looks_secret, secret_value
from claudebox.host.tree import Tree
from claudebox.model import HIDE, Finding, Mount, Origin
from claudebox.paths import is_below, is_inside
from claudebox.sandbox.mounts import find_appearances

LEVELS = 3  # of directories, the mounted one included
MOST = 10_000  # entries that are looked at, the nearest first
SMALL_FILE = 1 << 14
MORE_WORDS = ("authentication", "authorized", "authinfo", "identit", "keystore", "wallet")
IN_HOMES = frozenset(path[2:] for path, _ in SECRET_PLACES if path[0] == "~")  # Flatpak and Snap make small homes
# Source code, whose name says what it is about.
CODE = tuple(".c .cc .cpp .css .el .fish .go .h .html .java .js .lua .md .php .py .rb .rs .sh .ts .vim .zsh".split())


class Mounted(Feature):
    def decide(self, facts: Facts, draft: Draft) -> Contribution:
        if not draft.wished:
            return Contribution()
        tree, hides, findings = facts.tree, dict[str, Mount](), list[Finding]()
        asked = {wish.source for wish in draft.wished}
        for wish in draft.wished:
            source = wish.source
            home = next((home for home in facts.person.homes if is_below(source, home)), "")
            if not wish.is_dir and (reason := _reason(tree, source, home, is_dir=False, is_programs=True)):
                findings.append(Finding(Finding.SECRET, source, f"enters and looks secret ({reason})"))
            found, is_whole = _find(tree, source, home, facts.project) if wish.is_dir and home else ({}, True)
            if not is_whole:
                findings.append(
                    Finding(Finding.RISK, source, f"{MOST} files were searched for credentials, and not all")
                )
            # A name may be a symlink. What somebody asks for by its own name enters.
            for real, reason in found.items():
                origin = Origin.of_rule("secret", reason)
                for path in find_appearances(real, draft.mounts) if real not in asked else ():
                    hides[path] = Mount(HIDE, path, origin, is_dir=tree.is_dir(real))
        return Contribution(hides=tuple(hides.values()), pins=tuple(hides), findings=tuple(findings))


def _find(tree: Tree, top: str, home: str, project: str) -> tuple[dict[str, str], bool]:
    """What has to be hidden below a directory, with the reasons, and whether that is all. The project has own rules."""
    is_programs = top[len(home) :].startswith(("/.", "/snap/"))
    found: dict[str, str] = {}
    waiting, room = [top], MOST
    for directory in waiting:
        for name in tree.entries(directory)[:room]:
            room -= 1
            path = f"{directory}/{name}"
            real = tree.resolve(path)
            if real is None or is_inside(real, project):
                continue
            is_dir = tree.is_dir(real)
            if reason := _reason(tree, path, home, is_dir=is_dir, is_programs=is_programs):
                found[real] = reason
            elif is_dir and path == real and path.count("/") - top.count("/") < LEVELS:
                waiting.append(path)
    return found, room > 0


def _reason(tree: Tree, path: str, home: str, *, is_dir: bool, is_programs: bool) -> str:
    """Why a file or directory is a credential; "" if nothing says so."""
    kind = None if is_dir else kind_of(path, home)
    *_, above, name = path.split("/")
    is_programs = is_programs and not name.endswith(CODE)
    if kind is None and not is_programs:
        return ""
    is_named = looks_secret(name, "x") or any(word in name.lower() for word in MORE_WORDS)
    is_named = is_named or name in IN_HOMES or f"{above}/{name}" in IN_HOMES
    if (kind is not None and kind[0] in (ALL, EMPTY)) or (is_programs and is_named):
        return "its name says so"
    content = None if is_dir else tree.read(path, SMALL_FILE)
    return secret_value(content.decode(errors="replace")) if content else ""
