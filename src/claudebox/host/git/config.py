"""Reads git's configuration files without starting git.

Starting git costs more than everything else in a launch, and in a hostile repository some git commands run code.
"""

from __future__ import annotations

import posixpath

from claudebox.host.tree import Tree

DEEPEST_INCLUDE = 10
MOST_FILES = 100
SPACES = " \t\r\n"  # the characters that git takes for spaces

Pairs = list[tuple[str, str]]


def parse(text: str) -> Pairs:
    """All (`section.subsection.key`, value) pairs in order; section and key in lower case."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    pairs: Pairs = []
    prefix = ""
    position = 0
    while position < len(text):
        character = text[position]
        if character in SPACES:
            position += 1
        elif character in "#;":
            position = _line_end(text, position)
        elif character == "[":
            prefix, position = _section(text, position + 1)
        else:
            name, value, position = _pair(text, position)
            if prefix:
                pairs.append((prefix + name.lower(), value))
    return pairs


def load(tree: Tree, path: str, home: str, git_dir: str) -> Pairs:
    """The pairs of a file and of everything that it includes, in the order of git, up to a limit."""
    return _load(tree, path, home, git_dir, depth=0, opened=[])


def _load(tree: Tree, path: str, home: str, git_dir: str, *, depth: int, opened: list[str]) -> Pairs:
    opened.append(path)
    pairs: Pairs = []
    for name, value in parse(tree.text(path) or ""):
        pairs.append((name, value))
        # A file that includes itself several times would grow beyond all memory.
        if depth < DEEPEST_INCLUDE and len(opened) < MOST_FILES and value and _includes(name, home, git_dir, path):
            included = posixpath.join(posixpath.dirname(path), _home_path(value, home))
            pairs += _load(tree, included, home, git_dir, depth=depth + 1, opened=opened)
    return pairs


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _section(text: str, position: int) -> tuple[str, int]:
    """The prefix of the names below `[section "sub"]`, and where the header ends."""
    section, subsection = "", ""
    quoted = has_subsection = False
    while position < len(text) and text[position] != "\n":
        character = text[position]
        position += 1
        if character == "\\" and quoted:
            subsection += text[position : position + 1]
            position += 1
        elif character == '"':
            quoted = not quoted
            has_subsection = True
        elif quoted:
            subsection += character
        elif character == "]":
            break
        else:
            section += character
    section = section.strip().lower()
    return (f"{section}.{subsection}." if has_subsection else f"{section}." if section else ""), position


def _pair(text: str, position: int) -> tuple[str, str, int]:
    """One key with its value, and where it ends. A key without a value is true."""
    end = _line_end(text, position)
    equals = text.find("=", position, end)
    if equals < 0:
        return text[position:end].split("#")[0].split(";")[0].strip(SPACES), "true", end
    value, end = _value(text, equals + 1)
    return text[position:equals].strip(SPACES), value, end


def _value(text: str, position: int) -> tuple[str, int]:
    """A value without its quotes, escapes and comment. A backslash at the end of a line continues it."""
    value: list[str] = []  # pieces: to copy the whole for each of them would take long for a long one
    length = 0  # without the blanks at the end
    quoted = False
    while position < len(text) and text[position] != "\n":
        character = text[position]
        position += 1
        if character in SPACES and not quoted:
            value += [character] if value else []  # counts only if something follows
            continue
        if character in "#;" and not quoted:
            position = _line_end(text, position)
            break
        if character == "\\":
            following = text[position : position + 1]
            position += 1
            value += {"n": "\n", "t": "\t", "b": "\b", "\n": ""}.get(following, following)
        elif character == '"':
            quoted = not quoted
        else:
            value.append(character)
        length = len(value)
    return "".join(value[:length]), position


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
        # At the end it stands for what is below, not for the directory itself.
        least = 0 if pattern[1:] else 1
        return any(matches(pattern[1:], parts[skip:]) for skip in range(least, len(parts) + 1))
    if not parts or not _matches_name(pattern[0], parts[0]):
        return False
    return matches(pattern[1:], parts[1:])


def _matches_name(pattern: str, name: str) -> bool:
    if not any(special in pattern for special in "*?["):
        return pattern == name
    from fnmatch import fnmatchcase

    return fnmatchcase(name, pattern.replace("[^", "[!"))


def _home_path(path: str, home: str) -> str:
    return home + path[1:] if path.startswith("~/") else path


def host_configs(environ: dict[str, str], home: str) -> tuple[str, ...]:
    system = environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig")
    if environ.get("GIT_CONFIG_GLOBAL"):
        return system, environ["GIT_CONFIG_GLOBAL"]
    xdg = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    return system, f"{xdg}/git/config", f"{home}/.gitconfig"
