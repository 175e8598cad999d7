"""Each row of the tables does what it says: what is held, what is named when it appears, what in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from claudebox.features.guard import ordinary, table
from claudebox.features.guard.ordinary import is_tools
from claudebox.features.guard.table import spelled_out
from claudebox.host.walk import SKIPPED
from hosts.machine import plant
from unit.features.guard.test_changes import P, change
from unit.features.guard.test_decide import held

HELD = [
    *(name for _, _, names in (*table.ANYWHERE, *table.IN_ROOTS) for name in spelled_out(names)),
    *(f"{beginning}x" for beginning, _ in table.BEGINNINGS),
    *(f"x{end}" for end, _ in table.ENDS),
]
ORDINARY = [
    *(name for _, _, names in ordinary.ROWS for name in spelled_out(names)),
    *(f"{beginning}x" for beginning, _ in ordinary.BEGINNINGS),
    *(f"x{end}" for end, _ in ordinary.ENDS),
]
TAKEN_UP = [name for group, _, names in ordinary.ROWS if group == ordinary.TAKEN_UP for name in spelled_out(names)]
# Of these, only what runs by itself is news in a new file.
CONTENTS = {
    "package.json": '{"scripts": {"postinstall": "x"}}',
    "pyproject.toml": '[build-system]\nbackend-path = ["."]\n',
}


def test_some_of_it_is_held_below_the_root_too(tmp_path: Path) -> None:
    anywhere = [name for _, _, names in table.ANYWHERE for name in spelled_out(names)]
    tree = plant(tmp_path, "\n".join(f"~/shop/a/b/{name}" for name in HELD))
    assert {f"a/b/{name}" for name in anywhere} <= set(held(tree))
    assert "a/b/lefthook.yml" not in held(tree)


def test_nothing_that_is_ordinary_is_held(tmp_path: Path) -> None:
    assert held(plant(tmp_path, "\n".join(f"~/shop/{name}" for name in ORDINARY))) == []


@pytest.mark.parametrize("name", [".foorc", ".foo/config.toml", ".foo/hooks/run.sh", ".unheardof", ".x.yml"])
def test_what_belongs_to_an_unknown_tool_is_named_once(tmp_path: Path, name: str) -> None:
    files = [(name, "x"), (f"{name}.2", "x")] if "/" in name else [(name, "x")]
    assert [(one.path, one.is_ordinary) for one in change(tmp_path, *files, before="~/shop/x")] == [
        (f"{P}/{name.partition('/')[0]}", True)
    ]
    assert change(tmp_path / "nested", (f"sub/{name}", "x"), before="~/shop/x") == []


def test_what_tools_share_is_named_for_each(tmp_path: Path) -> None:
    found = change(tmp_path, (".config/nextest.toml", "x"), (".config/mise.toml", "x"), before="~/shop/x")
    assert [(one.path, one.is_ordinary) for one in found] == [
        (f"{P}/.config/mise.toml", False),
        (f"{P}/.config/nextest.toml", True),
    ]


@pytest.mark.parametrize(
    "name",
    """.gitignore .gitkeep .editorconfig .nvmrc .python-version .eslintcache .coverage .coverage.host.1 .DS_Store
    .env.example .env.local .prettierignore .pytest_cache .venv .next .mailmap .pnp.cjs""".split(),
)
def test_what_is_no_tools_configuration_is_no_news(tmp_path: Path, name: str) -> None:
    assert not is_tools(name) or name in SKIPPED
    assert change(tmp_path, (name, "x"), before="~/shop/x") == []
