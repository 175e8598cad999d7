"""Which versions the shims of a version manager would run here.

The files that say so are the project's, and an agent can write them. So a version counts only if it is a plain name,
and what it chooses is one of the versions that the user has installed.
"""

from __future__ import annotations

from claudebox.features.toolchains.table import Shims
from claudebox.host.tree import Tree
from claudebox.paths import expand_home, parents

MOST_VERSIONS = 20
LARGEST = 1 << 18  # bytes of a file that is read
SECTION = "[tools]"


def chosen(tree: Tree, row: Shims, root: str, environ: dict[str, str], cwd: str, home: str) -> list[str]:
    """The directories of the versions that count in the current directory, as the user has them."""
    wanted = _wanted(tree, row, root, environ, cwd, home)
    found = [_installed(tree, root, row.installs, tool, version) for tool, version in wanted[:MOST_VERSIONS]]
    return list(dict.fromkeys(directory for directory in found if directory))


def _wanted(tree: Tree, row: Shims, root: str, environ: dict[str, str], cwd: str, home: str) -> list[tuple[str, str]]:
    """Pairs of a tool and its version. A file that names a tool hides what others further away say of it."""
    if named := environ.get(row.version_variable, "") if row.version_variable else "":
        return [("", version) for version in named.split(":")]
    places = [f"{directory}/{file}" for directory in (cwd, *parents(cwd)) for file in row.files]
    places += [expand_home(row.default, home) if row.default.startswith("~") else f"{root}/{row.default}"]
    wanted: dict[str, list[str]] = {}
    for place in places if row.default else places[:-1]:
        said: dict[str, list[str]] = {}
        for tool, version in _read(tree, place):
            said.setdefault(tool, []).append(version)
        wanted = said | wanted
    return [(tool, version) for tool, versions in wanted.items() for version in versions]


def _read(tree: Tree, path: str) -> list[tuple[str, str]]:
    content = tree.read(path, limit=LARGEST)
    if not content:
        return []
    text = content.decode(errors="replace")
    if path.endswith(".json"):
        return _in_json(text)
    if path.endswith(".toml"):
        return _in_toml(text)
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    if path.endswith(".tool-versions"):
        return [(words[0], version) for words in lines if len(words) > 1 for version in words[1:]]
    return [("", version) for words in lines for version in words]


def _in_json(text: str) -> list[tuple[str, str]]:
    """Volta's own: the default in platform.json, and what a project pins in package.json."""
    import json

    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):  # brackets in brackets: an agent can write the file
        return []
    said = whole.get("volta", whole if "name" not in whole else None) if isinstance(whole, dict) else None
    if not isinstance(said, dict):
        return []
    node = said.get("node")
    said = {**said, **({"node": node.get("runtime"), "npm": node.get("npm")} if isinstance(node, dict) else {})}
    tools = ("node", "npm", "yarn", "pnpm")
    return [(tool, version) for tool in tools if isinstance(version := said.get(tool), str)]


def _in_toml(text: str) -> list[tuple[str, str]]:
    """The table of tools of mise, if it is written plainly: `node = "22"` or `python = ["3.12", "3.11"]`."""
    found, is_inside = [], False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            is_inside = line == SECTION
        elif is_inside and "=" in line and not line.startswith("#"):
            tool, _, value = line.partition("=")
            words = value.partition("#")[0].strip(" []").split(",")
            found += [(tool.strip().strip("'\""), word.strip().strip("'\"")) for word in words]
    return [(tool, version) for tool, version in found if version]


def _installed(tree: Tree, root: str, pattern: str, tool: str, version: str) -> str:
    """Where this version is; "" if it is not installed. `3.12` stands for the latest that begins like that."""
    if not _is_plain(version) or (tool and not _is_plain(tool)):
        return ""
    path = f"{root}/{pattern.format(tool=tool, version=version)}"
    if tree.is_dir(path):
        return path
    above = path.rpartition("/")[0]
    similar = [name for name in tree.entries(above) if name.startswith(f"{version}.")]
    return f"{above}/{max(similar, key=_number)}" if similar else ""


def _is_plain(name: str) -> bool:
    return bool(name) and "/" not in name and not name.startswith(".") and name.isprintable()


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isascii() and part.isdigit() else -1 for part in version.split("."))
