"""What the tables promise. Other tests take their rows, so that they do not miss one that is taken out."""

import textwrap

import pytest

from claudebox.features.broker.credential import OTHER_PROVIDERS
from claudebox.features.claude.configuration import KEPT_OUT
from claudebox.features.environment import LOADER_NAMES, LOADER_PREFIXES
from claudebox.features.kernel import HIDDEN, ROOT_HIDDEN, ROOT_READ_ONLY
from claudebox.features.secrets.table import IN_GIT, IN_SKIPPED, WORDS
from claudebox.features.secrets.table import ROWS as SECRETS
from claudebox.host.secrets import (
    PASS_WORDS,
    SECRET_PLACES,
    STRONG_WORDS,
    TOKEN_PREFIXES,
    WEAK_WORDS,
)
from claudebox.host.variables import KINDS, LEADING, ROUTE_OF, STAYS
from claudebox.overlay.table import AGENTS, FORGES, HARMLESS, HARMLESS_BEGINNINGS, HARMLESS_ENDS, ROWS
from golden import Golden

WIDTH = 118
TABLES: dict[str, tuple[str, ...]] = {
    "secret places": tuple(path for path, _ in SECRET_PLACES),
    "held in the project": tuple(name for _, _, *lines in ROWS for line in lines for name in line.split()),
    "directories of agents and forges": (*AGENTS, *FORGES),
    "begin with a dot, and are harmless": (*HARMLESS, *HARMLESS_ENDS, *HARMLESS_BEGINNINGS),
    "masked in the project": (
        *(name for _, _, names in SECRETS for name in names.split()),
        *(f".git/{name}" for name in IN_GIT),
        *(*IN_SKIPPED, *WORDS),
    ),
    "parts of /proc that root does not have": (*ROOT_READ_ONLY, *ROOT_HIDDEN),
    "parts of /proc that no box has": tuple(HIDDEN),
    "variables that bwrap must not have": (*LOADER_PREFIXES, *LOADER_NAMES),
    "names of secrets": (*STRONG_WORDS, *WEAK_WORDS, *PASS_WORDS),
    "beginnings of tokens": TOKEN_PREFIXES,
    "settings of Claude that do not enter": tuple(KEPT_OUT),
    "variables with which the broker is not used": OTHER_PROVIDERS,
    "variables that enter by themselves": tuple(name for name, kind in KINDS.items() if kind != STAYS),
    "credentials that never enter without their address": tuple(f"{name} {route}" for name, route in ROUTE_OF.items()),
    "variables whose change is news": tuple(LEADING),
}


@pytest.mark.parametrize("table", TABLES)
def test_nothing_is_taken_out(table: str, golden: Golden) -> None:
    rows = ", ".join(sorted(TABLES[table]))
    golden.check_scene("tables.txt", table, textwrap.fill(rows, WIDTH, break_on_hyphens=False))


def test_every_table_is_looked_at(golden: Golden) -> None:
    assert golden.scenes("tables.txt") == TABLES.keys()
