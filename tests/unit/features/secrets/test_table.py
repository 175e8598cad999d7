"""What names say, and that a walk finds each of them."""

from pathlib import Path

import pytest

from claudebox.features.secrets.table import IN_SKIPPED, ROWS, WANTED, kind_of
from claudebox.host.tree import Tree
from claudebox.host.walk import walk_project
from samples import ORDINARY, USUAL

pytestmark = pytest.mark.req("SEC-01")

BY_CONTENT = {"some/where/thing.md2"}


def found(root: Path, *names: str) -> set[str]:
    for name in names:
        path = root / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    entries = walk_project(Tree(str(root)), "/p", WANTED)
    return {entry.path[3:] for entry in entries if entry.kind == "file" and kind_of(entry.path, "/p")}


def test_usual_names_are_found_and_ordinary_ones_are_not(tmp_path: Path) -> None:
    names = {f"{number}/{name}": name for number, name in enumerate((*USUAL, *ORDINARY.split()))}
    assert {names[one] for one in found(tmp_path, *names)} == set(USUAL) - BY_CONTENT


def test_every_row_is_found_however_it_is_spelled(tmp_path: Path) -> None:
    rows = [name for _, reason, names in ROWS if reason for name in names.split() if name not in IN_SKIPPED]
    names = [f"{name.replace('*', 'x')}y" if name.endswith("/") else name.replace("*", "x") for name in rows]
    spelled = [one for name in names for one in (name, f"{name}~", f"{name}.bak", name.upper(), name.replace("_", "-"))]
    parts = [name.rpartition("/") for name in names]
    dotted = [f"{above}{slash}.{name}" for above, slash, name in parts if not name.startswith(".")]
    in_place = {f"{number}/{name}" for number, name in enumerate((*spelled, *dotted))}
    assert found(tmp_path, *in_place) == in_place


@pytest.mark.parametrize("name", IN_SKIPPED)
def test_file_in_a_directory_that_no_walk_enters(name: str) -> None:
    assert kind_of(f"/p/x/{name}", "/p") is not None
