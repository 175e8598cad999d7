"""Each row of the table is found by a walk, and its secret is not in the decoy. The samples come from the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claudebox.features.secrets.decoys import make_decoy
from claudebox.features.secrets.table import IN_SKIPPED, ROWS, WANTED, find
from claudebox.host.tree import Tree
from claudebox.host.walk import walk_project
from samples import CANARY, KEPT, content, rows

pytestmark = pytest.mark.req("SEC-01")


COPIES = ("", "~", ".bak", ".old", ".orig", ".save")


def write(root: Path, name: str, text: str) -> Path:
    path = root / "p" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def found(root: Path) -> dict[str, str]:
    """What is looked into, by its path in the project, with its style."""
    tree = Tree(str(root))
    return {one.path[3:]: one.style for one in find(tree, "/p", walk_project(tree, "/p", WANTED))}


@pytest.mark.parametrize("style", sorted(set(rows().values())))
def test_rows_are_found_and_masked(style: str, tmp_path: Path) -> None:
    """Each row in a project of its own. One test for each would take longer to set up than to run."""
    for number, name in enumerate(name for name, its in rows().items() if its == style):
        text = content(name, style)
        write(tmp_path / str(number), f"deep/{name}", text)
        ((path, its),) = found(tmp_path / str(number)).items()
        assert path == f"deep/{name}"
        made = (make_decoy(text.encode(), its, path.rpartition("/")[2]) or b"not masked").decode()
        assert made != "not masked", name
        assert CANARY not in made, name
        assert KEPT.get(its, "") in made, name
        if text.startswith("{"):
            assert made.startswith("#") or json.loads(made), name


def test_every_row_has_a_reason() -> None:
    assert all(reason and names for _, reason, names in ROWS)


@pytest.mark.parametrize("name", IN_SKIPPED)
def test_file_in_a_directory_that_no_walk_enters(name: str, tmp_path: Path) -> None:
    write(tmp_path, name, "x")
    assert set(found(tmp_path)) == {name}


def test_ordinary_file_is_not_looked_into(tmp_path: Path) -> None:
    names = (
        "README.md LICENSE Makefile src/token.py src/secrets.go lib/passwords.rb tokenizer.json tokenizer_config.json "
        "package.json tsconfig.json index.html .env.example .env.sample .env.template .env.dist .env.vault .env.d.ts "
        "secrets.example.yml credentials.template.json docs/secrets.md keyboard.ts nginx.conf id_rsa.pub wg.py "
        "password_reset.html reset_password.html.erb token.d.ts PasswordField.tsx secret.service.ts .environment "
        "env.d.ts secrets.yaml.enc example.env.md prod.env.example x.pem.md main.py~ .main.py.swp"
    )
    for name in names.split():
        write(tmp_path, name, "password = 'hunter2'\n")
    assert found(tmp_path) == {}


def test_copy_counts_as_the_file_itself(tmp_path: Path) -> None:
    names = [f"{name}{ending}" for name in ("database.yml", "config/secrets.yml", ".npmrc") for ending in COPIES]
    for name in names:
        write(tmp_path, name, "x")
    assert set(found(tmp_path)) == set(names)
