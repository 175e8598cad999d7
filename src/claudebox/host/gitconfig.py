"""Git's configuration files, read without starting git.

Starting git costs more than everything else the launcher does, and in a hostile repository some git
commands run code.
"""

from __future__ import annotations

import posixpath

from claudebox.host.tree import Tree

MAX_INCLUDES = 10

Pairs = list[tuple[str, str]]


def parse(text: str) -> Pairs:
    """All (`section.subsection.key`, value) pairs in order; section and key in lower case."""
    pairs: Pairs = []
    prefix = ""
    for line in _logical_lines(text):
        rest = line.strip()
        if rest.startswith("["):
            header, rest = _split_header(rest)
            prefix = _section_prefix(header)
            rest = rest.strip()
        if not rest or rest[0] in "#;" or not prefix:
            continue
        key, has_value, value = rest.partition("=")
        name = key.strip().lower()
        if not has_value:
            name = name.split("#")[0].split(";")[0].strip()
        pairs.append((prefix + name, _unquote(value) if has_value else "true"))
    return pairs


def load(tree: Tree, path: str, home: str, git_dir: str, depth: int = 0) -> Pairs:
    """A file with everything that it includes, in the order in which git would see it."""
    pairs: Pairs = []
    for name, value in parse(tree.text(path) or ""):
        pairs.append((name, value))
        if depth < MAX_INCLUDES and value and _includes(name, home, git_dir, path):
            included = posixpath.join(posixpath.dirname(path), _home_path(value, home))
            pairs += load(tree, included, home, git_dir, depth + 1)
    return pairs


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending = ""
    for line in text.split("\n"):
        line = pending + line.removesuffix("\r")
        pending = ""
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            pending = line[:-1]
        else:
            lines.append(line)
    return [*lines, pending] if pending else lines


def _split_header(line: str) -> tuple[str, str]:
    """`[section "sub"] rest` as (`section "sub"`, ` rest`)."""
    quoted = False
    position = 1
    while position < len(line):
        character = line[position]
        if character == "\\" and quoted:
            position += 1
        elif character == '"':
            quoted = not quoted
        elif character == "]" and not quoted:
            return line[1:position], line[position + 1 :]
        position += 1
    return "", ""


def _section_prefix(header: str) -> str:
    name, _, subsection = header.strip().partition('"')
    section = name.strip().lower()
    if not subsection:
        return f"{section}." if section else ""
    plain = subsection.removesuffix('"').replace('\\"', '"').replace("\\\\", "\\")
    return f"{section}.{plain}."


def _unquote(text: str) -> str:
    """A value without its quotes, escapes and comment."""
    value = ""
    kept = 0  # trailing blanks count only inside quotes
    quoted = False
    characters = iter(text.lstrip())
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            value += {"n": "\n", "t": "\t", "b": "\b"}.get(following, following)
            kept = len(value)
        elif character == '"':
            quoted = not quoted
            kept = len(value)
        elif character in "#;" and not quoted:
            break
        else:
            value += character
            if quoted or not character.isspace():
                kept = len(value)
    return value[:kept]


def _includes(name: str, home: str, git_dir: str, path: str) -> bool:
    if name == "include.path":
        return True
    if not (name.startswith("includeif.") and name.endswith(".path")):
        return False
    kind, _, pattern = name.removeprefix("includeif.").removesuffix(".path").partition(":")
    if kind not in ("gitdir", "gitdir/i") or not git_dir:
        return False
    return _matches_git_dir(pattern, git_dir, home, path, ignore_case=kind.endswith("/i"))


def _matches_git_dir(pattern: str, git_dir: str, home: str, path: str, *, ignore_case: bool) -> bool:
    if pattern.startswith("./"):
        pattern = posixpath.join(posixpath.dirname(path), pattern[2:])
    pattern = _home_path(pattern, home)
    if not pattern.startswith("/"):
        pattern = f"**/{pattern}"
    if pattern.endswith("/"):
        pattern += "**"
    if ignore_case:
        pattern, git_dir = pattern.lower(), git_dir.lower()
    return matches(pattern.split("/"), git_dir.split("/"))


def matches(pattern: list[str], parts: list[str]) -> bool:
    """Match path components; `**` stands for any number of them."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(matches(pattern[1:], parts[skip:]) for skip in range(len(parts) + 1))
    if not parts or not _matches_name(pattern[0], parts[0]):
        return False
    return matches(pattern[1:], parts[1:])


def _matches_name(pattern: str, name: str) -> bool:
    if not any(special in pattern for special in "*?["):
        return pattern == name
    from fnmatch import fnmatchcase

    return fnmatchcase(name, pattern)


def _home_path(path: str, home: str) -> str:
    return home + path[1:] if path.startswith("~/") else path
