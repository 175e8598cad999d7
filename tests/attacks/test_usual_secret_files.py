"""Every file in which secrets usually lie: none shows its secret in a box. The files come from the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from samples import CANARY, content, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conftest import Account, Box

pytestmark = [pytest.mark.req("SEC-01"), pytest.mark.root_differs("root can read all of them")]

PATTERN = f"[{CANARY[0]}]{CANARY[1:]}"  # the canary is not in the command itself
SEARCH = f"grep -rla '{PATTERN}' . 2>/dev/null | sort; true"
AT_ONCE = 240  # a box has room for 300 masks
ROWS = sorted(rows().items())
PARTS = [ROWS[start : start + AT_ONCE] for start in range(0, len(ROWS), AT_ONCE)]


@pytest.mark.parametrize("part", range(len(PARTS)))
def test_no_usual_file_shows_its_secret(box: Box, project: Path, account: Account, part: int) -> None:
    for number, (name, style) in enumerate(PARTS[part]):
        account.write(project / str(number) / name, content(name, style))
    assert box.sh(SEARCH) == ""
    if part == 0:
        shown = box.sh(SEARCH, options=("--reveal", "."))
        assert len(shown.splitlines()) == len(PARTS[part]), "the search would find each of them"
