"""Where things are kept below ~/.claudebox, as the module, its docstring and the document say."""

from __future__ import annotations

import ast
from pathlib import Path

import claudebox
from claudebox import state
from claudebox.paths import is_inside
from claudebox.state import SHOWN, Instance, State
from syntax import nodes

SOURCE = Path(claudebox.__file__).parent
DOCUMENT = SOURCE.parent.parent / "docs" / "state.md"
INSTANCE = Instance("instances/NAME", "/home/alice/shop")
SAMPLE = "anything"


def properties(kind: type, of: object) -> list[str]:
    names = [name for name, value in vars(kind).items() if isinstance(value, property)]
    return [getattr(of, name) for name in names]


def known() -> set[str]:
    """Every path that the module can give, without what hangs on a name."""
    below = {path.removeprefix("~/.claudebox/") for path in properties(State, SHOWN)} - {SHOWN.directory}
    inside = {path.removeprefix("instances/NAME/") for path in properties(Instance, INSTANCE)}
    return below | inside | {f"{state.WRITABLE}*"}


def documented() -> set[str]:
    rows = [line.split("|")[1].strip() for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")]
    return {row.strip("`").removesuffix("/") for row in rows}


def test_document_has_a_row_for_every_path() -> None:
    assert documented() == known()


def test_docstring_names_every_path() -> None:
    docstring = state.__doc__ or ""
    names = known() - {"instances", f"auth/{state.LOGIN_FILE}", f"claude/{state.LOGIN_FILE}"}
    assert [name for name in names if name not in docstring] == []
    assert "instances/NAME/" in docstring


def test_what_hangs_on_a_name_is_in_a_known_directory() -> None:
    for path in (SHOWN.package(SAMPLE), SHOWN.package_root(SAMPLE), SHOWN.closure((SAMPLE,))):
        assert is_inside(path, SHOWN.packages)
    assert is_inside(SHOWN.instance(SAMPLE).writable(SAMPLE), SHOWN.instances)


def test_layout_is_what_earlier_versions_left() -> None:
    """Names that are hashes cannot be seen in the document."""
    kept = State("/home/alice")
    shop = kept.instance("/home/alice/shop")
    assert shop.directory == "/home/alice/.claudebox/instances/c3085d9538be063a"
    assert shop.writable("/home/alice/shop") == f"{shop.directory}/writable-c3085d9538be063a"


def texts(path: Path) -> list[str]:
    """The texts of a file that are not docstrings or other sentences that stand alone."""
    prose = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]


def test_nobody_else_spells_the_directory() -> None:
    spelled = {
        path.relative_to(SOURCE).as_posix()
        for path in sorted(SOURCE.rglob("*.py"))
        for text in texts(path)
        if ".claudebox/" in text or text.endswith(".claudebox")
    }
    assert spelled == {"state.py", "view/help.py", "settings/mistakes.py"}  # what is read as it is written
